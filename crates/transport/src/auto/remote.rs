//! The transport of an `auto` endpoint for peers that share no memory with it: `udp`, or a
//! transport that looks like `udp` to its peers.
//!
//! Called by the halves of `auto`.

use dunlin_core::transport::{Lane, LanePacket, TxSeq};

use crate::connect::Connect;
use crate::udp::Udp;

/// A transport that `auto` can use for peers without shared memory.
///
/// It makes the same offers as `udp`, so a peer cannot distinguish them; a program in which its
/// [`Connect::KIND`] differs from that of `udp` does not compile. Its ids leave the top bit to
/// `auto`, and it ignores that bit in the ids that it gets.
pub trait Remote: Connect {
    /// Whether a burst that finds nothing rarely makes a system call. Then every burst of `auto`
    /// looks at both transports. An empty burst of `xdp` makes a system call once in a thousand
    /// times. But while packets come to `xdp` through the kernel, each empty burst of `xdp` makes
    /// one; so does each burst of `auto` then, even if it finds packets in shared memory.
    fn looks_are_cheap(rx: &Self::Rx) -> bool;

    /// Sends these packets of a lane, in order. Returns the position after the last one, as a burst
    /// does.
    fn send_staged(tx: &mut Self::Tx, lane: &Lane, packets: &[LanePacket]) -> TxSeq;
}

/// Whether a transport makes offers of the same kind as `udp`. To peers, the offers of a [`Remote`]
/// transport are of that kind.
pub(super) const fn offers_as_udp<C: Connect>() -> bool {
    C::KIND == Udp::KIND
}

impl Remote for Udp {
    fn looks_are_cheap(_: &Self::Rx) -> bool {
        false
    }

    #[inline]
    fn send_staged(tx: &mut Self::Tx, lane: &Lane, packets: &[LanePacket]) -> TxSeq {
        tx.send_staged(lane, packets, &[])
    }
}
