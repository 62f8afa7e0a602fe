//! Terms of a session: what both sides agreed on at the handshake.

use dunlin_wire::ReqNum;

use crate::config::MAX_PACKETS;
use crate::transport::PeerId;

/// What both sides have agreed on, and where packets go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Terms {
    pub(crate) peer: PeerId,
    /// Concurrent requests in each direction, a power of two.
    pub(crate) window: u32,
    /// Most data bytes in a packet.
    pub(crate) data_size: u32,
    /// Largest message in bytes.
    pub(crate) max_message: u32,
    /// Packets in flight at most.
    pub(crate) credits: u32,
    /// Start of the request numbers.
    pub(crate) first_req: ReqNum,
}

/// The largest message within the limit whose packets can be numbered (rule W7).
pub(crate) fn largest_message(limit: u32, data_size: u32) -> u32 {
    limit.min(data_size.saturating_mul(MAX_PACKETS))
}
