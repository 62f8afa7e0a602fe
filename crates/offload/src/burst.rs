//! Wakes the dispatcher once for a burst of requests.
//!
//! Waking a task of a runtime takes a system call. If the endpoint's thread and the runtime share a
//! processor, the kernel also switches to the runtime at once. So the endpoint passes on all
//! requests of a burst before it wakes the dispatcher. The future of the burst's first request does
//! this: until the burst is over, it asks to be polled after each iteration of the endpoint.
//!
//! Invariant: while a burst is being collected, there is one [`Leader`], and the dispatcher is
//! woken at the latest when the leader is dropped.

use std::cell::Cell;
use std::thread;

use dunlin_core::Nanos;

use crate::desk::Desk;

/// The longest time for which a burst is collected.
const LONGEST: Nanos = Nanos::from_micros(20);

/// The time after which the endpoint yields its processor again, because the dispatcher may still
/// be waiting for it.
const PAUSE: Nanos = Nanos::from_micros(2);

/// Requests that were passed on.
#[derive(Debug, Default)]
pub(crate) struct Bursts {
    /// The number of requests so far; it wraps around.
    posted: Cell<u32>,
    /// A burst has a leader.
    is_led: Cell<bool>,
}

/// Wakes the dispatcher when the burst that its request began is over.
#[derive(Debug)]
pub(crate) struct Leader<'a> {
    bursts: &'a Bursts,
    desk: &'a Desk,
    stage: Stage,
    /// The time at which the stage began.
    since: Nanos,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// The burst is being collected. The number of all requests at the last look.
    Collecting(u32),
    /// The dispatcher was woken.
    Woken,
}

impl Bursts {
    /// Notes a request that was passed on. Returns the leader of its burst if the request is the
    /// first one.
    pub(crate) fn on_post<'a>(
        &'a self,
        desk: &'a Desk,
        now: impl FnOnce() -> Nanos,
    ) -> Option<Leader<'a>> {
        let posted = self.posted.get();
        self.posted.set(posted.wrapping_add(1));
        if self.is_led.replace(true) {
            return None;
        }
        Some(Leader {
            bursts: self,
            desk,
            // Not the present number: the iteration under way may bring more requests.
            stage: Stage::Collecting(posted),
            since: now(),
        })
    }
}

impl Leader<'_> {
    /// Acts after an iteration of the endpoint. Returns false if there is nothing left to do.
    pub(crate) fn act(&mut self, now: Nanos) -> bool {
        let lasted = now.since(self.since);
        match self.stage {
            Stage::Collecting(seen) if seen != self.bursts.posted.get() && lasted < LONGEST => {
                self.stage = Stage::Collecting(self.bursts.posted.get());
                true
            }
            Stage::Collecting(_) => {
                self.ring();
                thread::yield_now();
                (self.stage, self.since) = (Stage::Woken, now);
                self.must_look_again()
            }
            Stage::Woken if lasted < PAUSE => self.must_look_again(),
            Stage::Woken => {
                if self.must_look_again() {
                    thread::yield_now();
                }
                false
            }
        }
    }

    /// Whether the dispatcher has not taken the requests yet.
    fn must_look_again(&self) -> bool {
        !self.desk.mailbox().is_empty()
    }

    fn ring(&self) {
        self.bursts.is_led.set(false);
        self.desk.ring();
    }
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        if matches!(self.stage, Stage::Collecting(_)) {
            self.ring();
        }
    }
}

#[cfg(test)]
mod tests;
