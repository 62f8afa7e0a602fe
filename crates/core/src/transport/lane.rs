//! Lanes: staged lines that a transport lends for short packets to one peer, so that an endpoint
//! writes a packet where it will be sent from, and no queue lies between.
//!
//! Invariants: nothing of a lane is on its way before [`Tx::publish`](super::Tx::publish) has it
//! back. So a lane that is dropped, or whose peer is gone, leaves nothing half done, and whatever
//! else is sent to the peer meanwhile goes first.
//!
//! Made by transports, filled by the endpoint.

use dunlin_msgbuf::{BufRef, MsgBuf};
use dunlin_wire::HEADER_LEN;

use super::{MAX_INLINE, PeerId, TxItem};

/// Most packets in a lane.
pub const LANE_PACKETS: usize = super::RX_BURST;

/// Longest message in a packet of a lane, in bytes.
pub const LANE_MESSAGE: usize = MAX_INLINE - HEADER_LEN;

/// Words of a header.
const HEADER_WORDS: usize = HEADER_LEN / size_of::<u64>();

/// Room for short packets to one peer.
#[derive(Debug)]
pub struct Lane {
    lines: Box<[LanePacket; LANE_PACKETS]>,
    len: usize,
    limit: usize,
}

/// A packet in a lane: a cache line of memory that no other processor reads.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct LanePacket {
    len: u64,
    bytes: [u8; MAX_INLINE],
}

const _: () = assert!(size_of::<LanePacket>() == 64);
const _: () = assert!(HEADER_LEN.is_multiple_of(size_of::<u64>()));

impl Default for Lane {
    fn default() -> Self {
        Self::new()
    }
}

impl Lane {
    /// An empty lane, for a transport to lend.
    pub fn new() -> Self {
        let empty = LanePacket {
            len: 0,
            bytes: [0; MAX_INLINE],
        };
        Self {
            lines: Box::new([empty; LANE_PACKETS]),
            len: 0,
            limit: 0,
        }
    }

    /// Empties the lane, and makes room for up to `most` packets. Called by transports.
    #[inline]
    pub fn reset(&mut self, most: usize) {
        self.len = 0;
        self.limit = most.min(LANE_PACKETS);
    }

    /// Writes one more packet: a header of these words, as it travels, and a message. False, and
    /// nothing is written, if there is no room or the message is longer than [`LANE_MESSAGE`].
    #[inline(always)]
    pub fn push(&mut self, header: [u64; HEADER_WORDS], message: &MsgBuf) -> bool {
        if self.len >= self.limit {
            return false;
        }
        let Some(line) = self.lines.get_mut(self.len) else {
            return false;
        };
        let (head, body) = line.bytes.split_at_mut(HEADER_LEN);
        let (Some(body), (head, _)) =
            (body.first_chunk_mut::<LANE_MESSAGE>(), head.as_chunks_mut())
        else {
            return false;
        };
        let Some(len) = message.copy_short(body) else {
            return false;
        };
        for (place, word) in head.iter_mut().zip(header) {
            *place = word.to_le_bytes();
        }
        line.len = u64::from(len) + HEADER_LEN as u64;
        self.len += 1;
        true
    }

    /// Takes back all packets but the first `count`.
    #[inline]
    pub fn truncate(&mut self, count: usize) {
        self.len = self.len.min(count);
    }

    /// How many more packets fit.
    #[inline]
    pub const fn room(&self) -> usize {
        self.limit - self.len
    }

    /// The packets, in order.
    #[inline]
    pub fn packets(&self) -> &[LanePacket] {
        &self.lines[..self.len]
    }
}

impl LanePacket {
    /// The packet's bytes.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "a packet is short")]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..(self.len as usize).min(MAX_INLINE)]
    }

    /// The packet as an item, for transports that send lanes as they send bursts.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a packet is short")]
    pub const fn to_item(&self, peer: PeerId) -> TxItem {
        TxItem {
            peer,
            inline_len: self.len as u32,
            inline: self.bytes,
            data: BufRef::EMPTY,
        }
    }
}

#[cfg(test)]
mod tests;
