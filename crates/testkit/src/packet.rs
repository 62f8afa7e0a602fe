//! Packets as a transport in memory handles them.

use dunlin_core::transport::TxItem;
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
