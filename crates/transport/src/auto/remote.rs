//! The transport of an `auto` endpoint for peers that share no memory with it: `udp`, or one that
//! looks like `udp` to its peers.
//!
//! Called by the halves of `auto`.

use dunlin_core::transport::{Lane, LanePacket, TxSeq};

use crate::connect::Connect;
use crate::udp::Udp;

/// A transport that `auto` can use for peers without shared memory.
///
/// Its offers are those of `udp`, so a peer does not see which one it is. Its ids leave the top bit
/// to `auto`: it ignores that bit in the ids that it gets.
pub trait Remote: Connect {
    /// Whether a burst that finds nothing seldom makes a system call, so that each burst of
    /// `auto` may look at both transports. A burst of `xdp` makes one after each thousand empty
    /// ones; while packets come to it through the kernel, each empty burst makes one, and with it
    /// every other burst of `auto`, also those that find packets in shared memory.
    const LOOKS_ARE_CHEAP: bool;

    /// Sends some of the packets of a lane, in order. They count in the sequence, as those of a
    /// burst do.
    fn send_staged(tx: &mut Self::Tx, lane: &Lane, packets: &[LanePacket]) -> TxSeq;
}

impl Remote for Udp {
    const LOOKS_ARE_CHEAP: bool = false;

    #[inline]
    fn send_staged(tx: &mut Self::Tx, lane: &Lane, packets: &[LanePacket]) -> TxSeq {
        tx.send_staged(lane, packets, &[])
    }
}
