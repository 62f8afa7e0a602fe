//! Terms of a session, on which both sides agreed in the handshake.

use dunlin_wire::{ReqNum, Token};

use crate::config::MAX_PACKETS;
use crate::packet::words::Words;
use crate::transport::PeerId;

/// The terms on which both sides agreed, and the peer to which packets go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Terms {
    pub(crate) peer: PeerId,
    /// Concurrent requests in each direction, a power of two.
    pub(crate) window: u32,
    /// The most data bytes in a packet.
    pub(crate) data_size: u32,
    /// Largest message in bytes.
    pub(crate) max_message: u32,
    /// The most packets in flight.
    pub(crate) credits: u32,
    /// Start of the request numbers.
    pub(crate) first_req: ReqNum,
}

/// The common part of the answers to all requests of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Template {
    /// The first word of the header of a response of one packet.
    pub(crate) head: u64,
    pub(crate) token: Token,
    pub(crate) peer: PeerId,
    /// Longest response that is a single packet.
    pub(crate) single: u32,
}

impl Template {
    /// The header of a response of `len` bytes to the request with this number.
    #[inline(always)]
    pub(crate) fn words(&self, len: usize, req: ReqNum) -> Words {
        [
            self.head,
            (len as u64) << 32 | u64::from(self.token.0),
            u64::from(req.0) << 32,
        ]
    }
}

/// The largest message within the limit for whose packets there are enough numbers (rule W7).
pub(crate) fn largest_message(limit: u32, data_size: u32) -> u32 {
    limit.min(data_size.saturating_mul(MAX_PACKETS))
}
