//! The moment: the protocol's present time, and the times from which it measures spans. The event
//! loop notes when an iteration begins; everything below the loop asks here.
//!
//! Invariant: `burst_time <= now` within an iteration.

use crate::time::Nanos;

/// The times of an iteration of the event loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// When this iteration began, or a later reading of the clock, such as after a slow handler.
    now: Nanos,
    /// When this iteration's burst was taken. Round trips and residences count from it, and packets
    /// count as received then, however long handlers have taken since.
    burst_time: Nanos,
    /// `now`, on the clock that measures silence.
    present_now: Nanos,
    /// `burst_time`, on that clock.
    came: Nanos,
    /// Time since the previous burst, for round-trip samples (rule S10).
    away: Nanos,
    /// How long this endpoint has not run while it should have (rule S11).
    absent: Nanos,
    /// The caller uses the endpoint between two iterations, so the time at which packets will leave
    /// is not known yet.
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

    /// Begins an iteration; the one before began at `last_burst`.
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

    /// Takes a reading of the clock for one packet of the burst.
    pub(crate) fn begin_packet(&mut self, now: Nanos) {
        self.advance(now);
        (self.burst_time, self.came) = (now, self.present_now);
    }

    /// Notes that time has passed within an iteration, or that an idle iteration has read the
    /// clock.
    #[inline]
    pub(crate) fn advance(&mut self, now: Nanos) {
        (self.now, self.present_now) = (now, self.present(now));
    }

    /// Notes that the caller uses the endpoint between two iterations.
    pub(crate) fn leave_iteration(&mut self, now: Nanos) {
        self.advance(now);
        self.between_iterations = true;
    }

    /// Notes that this endpoint did not run for a time in which it should have.
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

    /// A time on the clock that measures silence: that clock stands still while this endpoint does
    /// not run, because the endpoint's own absence is not the peer's silence (rule S11).
    #[inline]
    pub(crate) fn present(&self, at: Nanos) -> Nanos {
        at.since(self.absent)
    }

    /// The present time on the clock that measures silence.
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
