//! The kernel's side of the rings, as both halves of an endpoint see it.
//!
//! [`Socket`](crate::socket::Socket) is the real one. Tests put a kernel in user space in its
//! place, which plays the other end of the four rings.

use std::fmt;
use std::os::fd::BorrowedFd;

/// The answer to a kick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kicked {
    /// The kernel has taken the packets of the transmit ring.
    Done,
    /// It has taken some of them, or has no memory; the caller must kick it again.
    Again,
    /// The interface is down, or gone.
    Down,
}

/// The kernel's counters (`XDP_STATISTICS`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    /// Packets dropped because the receive ring was full, or because they fit no frame.
    pub rx_dropped: u64,
    /// Packets dropped because the fill ring had no frame for them. The kernel counts them for all
    /// sockets of a queue together.
    pub rx_unfilled: u64,
    /// Entries of the fill ring that the kernel refused.
    pub rx_invalid: u64,
    /// Entries of the transmit ring that the kernel refused.
    pub tx_invalid: u64,
}

impl Statistics {
    /// The sum of each counter of `self` and `other`.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            rx_dropped: self.rx_dropped + other.rx_dropped,
            rx_unfilled: self.rx_unfilled + other.rx_unfilled,
            rx_invalid: self.rx_invalid + other.rx_invalid,
            tx_invalid: self.tx_invalid + other.tx_invalid,
        }
    }
}

/// The other end of the rings.
pub trait Device: Send + Sync + fmt::Debug {
    /// Asks the kernel to send the packets in the transmit ring.
    fn kick(&self) -> Kicked;

    /// Asks the kernel to use the frames in the fill ring.
    fn kick_fill(&self);

    /// The descriptor that is readable when the receive ring has packets; `None` if there is none.
    fn fd(&self) -> Option<BorrowedFd<'_>>;

    /// The kernel's counters.
    fn statistics(&self) -> Statistics;

    /// Clears an error of the socket, which would keep the descriptor readable. True if there was
    /// one.
    fn take_error(&self) -> bool;
}
