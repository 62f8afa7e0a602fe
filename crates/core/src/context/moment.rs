//! The moment: the protocol's present time, and the times from which it measures spans. The event
//! loop notes when an iteration begins; all code below the loop asks here.
//!
//! If a thread did not run, the packets that it finds have waited for the thread, not in the
//! network. The moment knows which bursts brought such packets: no round trip is taken from them
//! (rules W4, S10).
//!
//! Invariant: `burst_time <= now` within an iteration.

use crate::time::Nanos;
use crate::transport::RX_BURST;

/// A thread that has not looked for packets for longer than this did not run: its own work between
/// two bursts is shorter, and another thread's turn on its processor is longer.
const LONGEST_TURN: Nanos = Nanos::from_micros(500);

/// The times of an iteration of the event loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// When this iteration began, or the last later reading of the clock, such as after a slow
    /// handler.
    now: Nanos,
    /// The same as `now`, on the clock that measures silence.
    present_now: Nanos,
    /// When this iteration's burst was taken, if time has passed since. Otherwise that time is
    /// `now`, which saves each iteration a store. Round trips and residences count from it, and
    /// packets count as received then, however long handlers have run since.
    burst_time: Nanos,
    /// The same as `burst_time`, on the clock that measures silence.
    came: Nanos,
    /// When the previous burst was taken.
    before: Nanos,
    /// Total time for which this endpoint should have run but did not (rule S11).
    absent: Nanos,
    /// Time has passed since the burst was taken.
    has_passed: bool,
    /// The caller uses the endpoint between two iterations, so the time at which packets will leave
    /// is not known yet.
    between_iterations: bool,
    /// When the thread last woke up.
    woke: Nanos,
    backlog: Backlog,
}

/// The bursts whose packets may have waited for this thread: the first burst after a time in which
/// the thread did not run, and the next ones, until one shows that the queue was short.
#[derive(Clone, Copy, Debug)]
struct Backlog {
    /// When the last burst before these was taken.
    since: Nanos,
    /// When the first and the last of these bursts were taken.
    first: Nanos,
    last: Nanos,
    /// The number of frames received by then.
    received: (u64, u64),
    /// The last of these bursts may have left packets in the queue.
    goes_on: bool,
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
            woke: Nanos::ZERO,
            backlog: Backlog {
                since: Nanos::ZERO,
                first: Nanos::ZERO,
                last: Nanos::ZERO,
                received: (0, 0),
                goes_on: false,
            },
        }
    }

    /// Begins an iteration.
    #[inline]
    pub(crate) fn begin_iteration(&mut self, now: Nanos) {
        // The absences add up to less than the clock's time.
        (self.now, self.present_now) = (now, Nanos(now.0.wrapping_sub(self.absent.0)));
        (self.has_passed, self.between_iterations) = (false, false);
    }

    /// Sets when the burst before this one was taken, for [`Self::away`].
    #[inline]
    pub(crate) fn set_before(&mut self, last_burst: Nanos) {
        self.before = last_burst;
    }

    /// Takes the clock reading of one packet of the burst.
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

    /// Now, and now on the clock that measures silence. No time may have passed since the burst was
    /// taken; so the common path saves the check.
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

    /// Notes that the thread has slept until a packet came or something was due.
    pub(crate) fn wake_up(&mut self, now: Nanos) {
        self.woke = now;
    }

    /// Time from the previous burst to this one.
    fn away(&self) -> Nanos {
        self.burst_time().since(self.before)
    }

    /// Finds out whether packets of this burst may have waited for the thread. `received`: the
    /// number of frames so far, including this burst. Only iterations that measure something ask,
    /// so the others need not count their frames.
    pub(crate) fn look_for_backlog(&mut self, received: u64) {
        let burst = self.burst_time();
        let away = burst.since(self.before.max(self.woke));
        let backlog = &mut self.backlog;
        if away > LONGEST_TURN {
            *backlog = Backlog {
                since: self.before,
                first: burst,
                last: burst,
                received: (received, received),
                goes_on: true,
            };
        } else if backlog.goes_on && self.before == backlog.last {
            let (first, before) = backlog.received;
            // A transport may begin with bursts of one frame each.
            let begins = received - first < RX_BURST as u64;
            backlog.goes_on = begins || received - before >= RX_BURST as u64;
            backlog.last = burst;
            backlog.received.1 = received;
        }
    }

    /// Whether a packet of the burst that was taken at `came` may have waited for the thread.
    pub(crate) fn has_waited(&self, came: Nanos) -> bool {
        let Backlog { first, last, .. } = self.backlog;
        (first..=last).contains(&came) && last != Nanos::ZERO
    }

    /// How long packets of this burst may have waited (for round-trip samples, rule S10).
    pub(crate) fn waited(&self) -> Nanos {
        let burst = self.burst_time();
        match self.has_waited(burst) {
            true => burst.since(self.backlog.since),
            false => self.away(),
        }
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

    /// A time on the clock that measures silence. That clock stands still while this endpoint does
    /// not run, because the endpoint's own absence is no silence of the peer (rule S11).
    #[inline]
    pub(crate) fn present(&self, at: Nanos) -> Nanos {
        at.since(self.absent)
    }

    /// The present time on the clock that measures silence.
    #[inline]
    pub(crate) fn present_now(&self) -> Nanos {
        self.present_now
    }

    /// When this iteration's burst was taken, on the clock that measures silence.
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
