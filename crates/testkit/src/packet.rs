//! Packets as a transport in memory handles them.

use dunlin_core::transport::{
    LANE_COPIED, LANE_LINE, LANE_WORD, Lane, LanePacket, Messages, TxItem,
};
use dunlin_wire::{HEADER_LEN, Header};

/// The bytes of a packet at this moment.
///
/// # Panics
/// If one of the packet's msgbufs has been released: it is lent until the transport is done.
pub fn bytes_of(item: &TxItem) -> Vec<u8> {
    let mut bytes = item.inline[..item.inline_len as usize].to_vec();
    if !item.data.is_empty() {
        dunlin_msgbuf::regions::read(item.data, &mut bytes)
            .expect("a msgbuf is lent until the transport is done");
    }
    bytes
}

/// Bytes of a packet before its data; `None` if it is not a packet.
pub fn front_of(bytes: &[u8]) -> Option<usize> {
    let header = Header::decode(bytes).ok()?;
    Some(HEADER_LEN + header.extension_len())
}

/// The packets of a lane that are all like the first, as a transport without a list of them gets
/// them. A packet whose message is gone has no header.
pub fn packets_alike<'a>(
    lane: &'a Lane,
    first: LanePacket,
    messages: impl Messages<'a>,
) -> impl Iterator<Item = Vec<u8>> {
    let (lines, size) = (lane.all_lines(), first.size());
    let each = lines.len() / lane.len();
    let bytes_at = move |(place, lines): (usize, &'a [[u8; LANE_LINE]])| {
        let own = &lines.as_flattened()[LANE_WORD..];
        if size <= LANE_COPIED {
            return own[..size].to_vec();
        }
        let message = lane.message(place, messages);
        match HEADER_LEN + message.len() == size {
            true => [&own[..HEADER_LEN], message].concat(),
            false => vec![0; size],
        }
    };
    lines.chunks_exact(each).enumerate().map(bytes_at)
}
