//! The position up to which both transports are done with an `auto` endpoint's packets.
//!
//! Invariant: a position is never passed before both transports are done with all packets that they
//! got before it. If a transport always has some packets, of a long message for example, it delays
//! a position only until it is done with the packets that it had when the position was noted. Owned
//! by `tx`.

use dunlin_core::transport::TxSeq;

/// A position in the endpoint's sequence of packets, and the transports' positions at the same
/// time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct SentPositions {
    pub(super) own: TxSeq,
    pub(super) shm: TxSeq,
    pub(super) remote: TxSeq,
}

impl SentPositions {
    /// Whether transports that are done up to `shm` and `remote` have passed this position.
    #[inline]
    fn is_passed(&self, shm: TxSeq, remote: TxSeq) -> bool {
        shm >= self.shm && remote >= self.remote
    }
}

/// The position up to which both transports are done, and the next position to pass.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Released {
    done: TxSeq,
    /// The next position to pass.
    noted: SentPositions,
}

impl Released {
    /// Takes the positions up to which the transports are done, and the position after all packets.
    /// Returns the position up to which both are done.
    #[inline]
    pub(super) fn look(&mut self, given: SentPositions, shm: TxSeq, remote: TxSeq) -> TxSeq {
        if given.is_passed(shm, remote) {
            self.done = given.own;
        } else if self.noted.is_passed(shm, remote) {
            self.done = self.done.max(self.noted.own);
            self.noted = given;
        }
        self.done
    }
}

#[cfg(test)]
mod tests;
