//! The moment: what time it is for the protocol, and what counts from when. The event loop says
//! when an iteration begins; everything below it asks.
//!
//! Invariant: `burst_time <= now` within an iteration.

use crate::time::Nanos;

/// The times of an iteration of the event loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// The time: of this iteration, or later, after a slow handler.
    now: Nanos,
    /// When this iteration's burst was taken. Round trips, residences and what was received count
    /// from it, however long handlers have taken since.
    burst_time: Nanos,
    /// `now`, on the clock on which silence is measured.
    present_now: Nanos,
    /// `burst_time`, on that clock.
    came: Nanos,
    /// How long ago the previous burst was taken, for round-trip samples (rule S10).
    away: Nanos,
    /// How long this endpoint has not run while it should have (rule S11).
    absent: Nanos,
    /// The endpoint is used between two iterations: when its packets will leave is open.
    between_iterations: bool,
}

impl Moment {
    pub(crate) const fn new(now: Nanos) -> Self {
        Self {
            now,
            burst_time: Nanos::ZERO,
            present_now: now,
            came: Nanos::ZERO,
            away: Nanos::ZERO,
            absent: Nanos::ZERO,
            between_iterations: false,
        }
    }

    /// An iteration begins; the one before began at `last_burst`.
    #[inline]
    pub(crate) fn begin_iteration(&mut self, now: Nanos, last_burst: Nanos) {
        let present = self.present(now);
        *self = Self {
            now,
            burst_time: now,
            present_now: present,
            came: present,
            away: now.since(last_burst),
            absent: self.absent,
            between_iterations: false,
        };
    }

    /// A packet of the burst has a reading of the clock of its own.
    pub(crate) fn begin_packet(&mut self, now: Nanos) {
        self.advance(now);
        (self.burst_time, self.came) = (now, self.present_now);
    }

    /// Time has passed within an iteration, or in one that does nothing.
    #[inline]
    pub(crate) fn advance(&mut self, now: Nanos) {
        (self.now, self.present_now) = (now, self.present(now));
    }

    /// The endpoint is used between two iterations.
    pub(crate) fn leave_iteration(&mut self, now: Nanos) {
        self.advance(now);
        self.between_iterations = true;
    }

    /// This endpoint did not run for a time in which it should have.
    pub(crate) fn on_absence(&mut self, span: Nanos) {
        self.absent += span;
        self.advance(self.now);
        self.came = self.present(self.burst_time);
    }

    #[inline]
    pub(crate) fn now(&self) -> Nanos {
        self.now
    }

    #[inline]
    pub(crate) fn burst_time(&self) -> Nanos {
        self.burst_time
    }

    #[inline]
    pub(crate) fn away(&self) -> Nanos {
        self.away
    }

    #[inline]
    pub(crate) fn is_between_iterations(&self) -> bool {
        self.between_iterations
    }

    /// Whether no time has passed since the burst was taken: no slow handler has run.
    #[inline]
    pub(crate) fn is_at_burst(&self) -> bool {
        self.now == self.burst_time
    }

    /// A time on the clock on which silence is measured: it stands still while this endpoint does
    /// not run, because its own absence is not the peer's silence (rule S11).
    #[inline]
    pub(crate) fn present(&self, at: Nanos) -> Nanos {
        at.since(self.absent)
    }

    /// The time on that clock.
    #[inline]
    pub(crate) fn present_now(&self) -> Nanos {
        self.present_now
    }

    /// When this iteration's burst was taken, on that clock.
    #[inline]
    pub(crate) fn came(&self) -> Nanos {
        self.came
    }
}

#[cfg(test)]
mod tests;
