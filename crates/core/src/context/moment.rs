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
    /// `now`, on the clock that measures silence.
    present_now: Nanos,
    /// If time has passed since this iteration's burst was taken: when that was. Otherwise it was
    /// `now`, so that an iteration writes one time less. Round trips and residences count from it,
    /// and packets count as received then, however long handlers have taken since.
    burst_time: Nanos,
    /// The same, on the clock that measures silence.
    came: Nanos,
    /// When the previous burst was taken.
    before: Nanos,
    /// How long this endpoint has not run while it should have (rule S11).
    absent: Nanos,
    /// Time has passed since the burst was taken.
    has_passed: bool,
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
            before: Nanos::ZERO,
            absent: Nanos::ZERO,
            has_passed: false,
            between_iterations: false,
        }
    }

    /// Begins an iteration.
    #[inline]
    pub(crate) fn begin_iteration(&mut self, now: Nanos) {
        // The endpoint was never absent for longer than its clock runs.
        (self.now, self.present_now) = (now, Nanos(now.0.wrapping_sub(self.absent.0)));
        (self.has_passed, self.between_iterations) = (false, false);
    }

    /// Sets when the burst before this one was taken, for [`Self::away`].
    #[inline]
    pub(crate) fn set_before(&mut self, last_burst: Nanos) {
        self.before = last_burst;
    }

    /// Takes a reading of the clock for one packet of the burst.
    pub(crate) fn begin_packet(&mut self, now: Nanos) {
        (self.now, self.present_now) = (now, self.present(now));
        self.has_passed = false;
    }

    /// Notes that time has passed within an iteration, or that an idle iteration has read the
    /// clock.
    #[inline]
    pub(crate) fn advance(&mut self, now: Nanos) {
        self.keep_burst_time();
        (self.now, self.present_now) = (now, self.present(now));
    }

    /// Notes that time passes now: keeps the time of the burst.
    #[inline]
    fn keep_burst_time(&mut self) {
        if !self.has_passed {
            (self.burst_time, self.came) = (self.now, self.present_now);
            self.has_passed = true;
        }
    }

    /// Notes that the caller uses the endpoint between two iterations.
    pub(crate) fn leave_iteration(&mut self, now: Nanos) {
        self.advance(now);
        self.between_iterations = true;
    }

    /// Notes that this endpoint did not run for a time in which it should have.
    pub(crate) fn on_absence(&mut self, span: Nanos) {
        self.absent += span;
        let now = self.now;
        self.advance(now);
        self.came = self.present(self.burst_time);
    }

    #[inline]
    pub(crate) fn now(&self) -> Nanos {
        self.now
    }

    /// Now, and now on the clock that measures silence, while no time has passed since the burst
    /// was taken: the common path need not ask whether it has.
    #[inline(always)]
    pub(crate) fn at_burst(&self) -> (Nanos, Nanos) {
        debug_assert!(!self.has_passed, "slow handlers run after the common path");
        (self.now, self.present_now)
    }

    #[inline]
    pub(crate) fn burst_time(&self) -> Nanos {
        match self.has_passed {
            true => self.burst_time,
            false => self.now,
        }
    }

    /// Time from the previous burst to this one, for round-trip samples (rule S10).
    pub(crate) fn away(&self) -> Nanos {
        self.burst_time().since(self.before)
    }

    #[inline]
    pub(crate) fn is_between_iterations(&self) -> bool {
        self.between_iterations
    }

    /// Whether no time has passed since the burst was taken: no slow handler has run.
    #[inline]
    pub(crate) fn is_at_burst(&self) -> bool {
        self.now == self.burst_time()
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
        match self.has_passed {
            true => self.came,
            false => self.present_now,
        }
    }
}

#[cfg(test)]
mod tests;
