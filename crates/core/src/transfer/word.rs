//! Whether the peer of a session answers: one record, which all large messages of the session share
//! (rule S8).
//!
//! A packet without an answer after a round trip may be lost, or may still wait in a queue.
//! Therefore, it counts as lost only once a packet that left a while later has been answered. If
//! the peer stops answering, one message probes on behalf of all messages of the session.
//!
//! Called by `transfer/transfers.rs`.

use crate::time::Nanos;

/// The recorded longest time decays: after this many answers, about a third of it is left.
const KEPT_MEMORY: u64 = 256;

/// The last answers, and the probes since then.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Word {
    /// The latest time at which an answered packet left.
    newest: Nanos,
    /// When a packet was last answered, or a message last probed.
    last: Nanos,
    /// The longest recent time for which the peer kept response packets that this side had asked
    /// for (rule S13). It outlasts the messages.
    kept: Nanos,
    /// The number of probes since a packet was last answered.
    asks: u8,
}

impl Word {
    /// Notes that a packet that had left at `sent` was answered.
    #[inline]
    pub(super) fn on_answer(&mut self, sent: Nanos, now: Nanos) {
        self.newest = self.newest.max(sent);
        self.last = now;
        self.asks = 0;
    }

    /// Notes how long the peer kept a packet that this side had asked for.
    pub(super) fn on_kept(&mut self, residence: Nanos) {
        self.kept = Nanos(self.kept.0 - self.kept.0 / KEPT_MEMORY).max(residence);
    }

    /// How much longer than a round trip the answer to an RFR may take, because the peer keeps
    /// packets that are asked for.
    pub(super) fn kept(&self) -> Nanos {
        self.kept.times(2)
    }

    /// A new record for a session whose first large message begins now. The old record may belong
    /// to another session, or be very old, so only the time for which the peer kept packets is
    /// copied: if it is wrong, that only delays a probe.
    pub(super) fn anew(&self) -> Self {
        Self {
            kept: self.kept,
            ..Self::default()
        }
    }

    /// Notes that a message probes.
    pub(super) fn on_ask(&mut self, now: Nanos) {
        self.last = now;
        self.asks = self.asks.saturating_add(1);
    }

    /// The number of probes since a packet was last answered.
    pub(super) fn asks(&self) -> u8 {
        self.asks
    }

    /// Until when a missing answer to a packet that left at `sent` is no sign of loss; `None` if it
    /// already is one. `patience` is the time for which a peer may answer no packet at all.
    pub(super) fn excuses(&self, sent: Nanos, patience: Nanos) -> Option<Nanos> {
        let passed = self.newest >= sent + Nanos(patience.0 / 2);
        (!passed).then_some(self.last + patience)
    }
}

#[cfg(test)]
mod tests;
