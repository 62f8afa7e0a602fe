//! The position up to which both transports are done with an `auto` endpoint's packets.
//!
//! Invariant: a position is never passed before both transports are done with all packets that they
//! got before it. A transport that always has some packets, of a long message for example, delays a
//! position only until it is done with those that it had when the position was noted. Owned by
//! `tx`.

use dunlin_core::transport::TxSeq;

/// A position in the sequence of the endpoint's packets, and those of the transports at the same
/// time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct SentPositions {
    pub(super) own: TxSeq,
    pub(super) shm: TxSeq,
    pub(super) remote: TxSeq,
}

impl SentPositions {
    /// Whether transports that are done up to these positions have passed this place.
    #[inline]
    fn is_passed(&self, shm: TxSeq, remote: TxSeq) -> bool {
        shm >= self.shm && remote >= self.remote
    }
}

/// How far both transports are.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Released {
    done: TxSeq,
    /// The next place to pass.
    noted: SentPositions,
}

impl Released {
    /// Takes the positions up to which the transports are done, and the place after all packets.
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
