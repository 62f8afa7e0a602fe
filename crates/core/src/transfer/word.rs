//! Word of a peer: what the large messages of one session know together of whether its other side
//! answers (rule S8).
//!
//! A packet that is not answered for a round trip may be lost, or may wait with all that arrived
//! before it. So it counts as lost only if one that left a while later has been answered; and if
//! nothing at all is answered any more, one message asks for all of them.
//!
//! Called by `transfer/transfers.rs`.

use crate::time::Nanos;

/// The last answers, and questions since.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Word {
    /// Of the packets that were answered, when the last left.
    newest: Nanos,
    /// When a packet was answered, or a message asked for an answer.
    last: Nanos,
    /// How often messages have asked since a packet was answered.
    asks: u8,
}

impl Word {
    /// A packet that had left at `sent` was answered.
    #[inline]
    pub(super) fn on_answer(&mut self, sent: Nanos, now: Nanos) {
        self.newest = self.newest.max(sent);
        self.last = now;
        self.asks = 0;
    }

    /// A message asks for an answer.
    pub(super) fn on_ask(&mut self, now: Nanos) {
        self.last = now;
        self.asks = self.asks.saturating_add(1);
    }

    /// How often messages have asked since a packet was answered.
    pub(super) fn asks(&self) -> u8 {
        self.asks
    }

    /// Until when a packet that left at `sent` is excused for having no answer; `None`: it is not.
    /// `patience`: how long no packet may be answered.
    pub(super) fn excuses(&self, sent: Nanos, patience: Nanos) -> Option<Nanos> {
        let passed = self.newest >= sent + Nanos(patience.0 / 2);
        (!passed).then_some(self.last + patience)
    }
}

#[cfg(test)]
mod tests;
