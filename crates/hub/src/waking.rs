//! When a thread wakes the tasks whose calls it has ended.
//!
//! A runtime costs a system call each time that another thread wakes one of its tasks, and if the
//! runtime's thread shares the processor with the hub's thread, the kernel switches to it at once,
//! for a single call. So the thread waits until a burst of ends is over, and then wakes only the
//! first task, which wakes the others from inside its runtime (`dunlin_mailbox`). If only one call
//! has ended, its task is woken immediately.
//!
//! Pure; called by `thread.rs` after each turn that leaves tasks to be woken.

use dunlin_core::Nanos;

/// The longest time for which a burst is collected, and the longest time that the first task may
/// take to wake the others: about as long as a wake-up on another processor.
const LONGEST: Nanos = Nanos::from_micros(20);

/// The time after which the thread yields its processor, because the first task may wait for it.
const PAUSE: Nanos = Nanos::from_micros(2);

/// The thread's next action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    Wait,
    WakeFirst,
    /// Lets other threads of this processor run.
    GiveWay,
    WakeAll,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Stage {
    #[default]
    Idle,
    /// Ends of a burst are being collected.
    Collecting,
    /// The first task was woken.
    Woken,
    /// The first task was woken, and this thread has yielded to it.
    GaveWay,
}

/// The wake-ups of one thread.
#[derive(Debug, Default)]
pub(crate) struct Waking {
    stage: Stage,
    /// The time at which the stage began; for `GaveWay`, the time of the wake-up.
    since: Nanos,
}

impl Waking {
    /// The next step. `is_new`: no task of the burst was woken; `more_come`: the turn brought
    /// packets, and more answers are expected.
    pub(crate) fn next(&mut self, is_new: bool, more_come: bool, now: Nanos) -> Step {
        match (is_new, self.stage) {
            (true, Stage::Collecting) if !more_come || self.lasts(LONGEST, now) => {
                self.enter(Stage::Woken, now)
            }
            (true, Stage::Collecting) => Step::Wait,
            (true, _) if more_come => self.enter(Stage::Collecting, now),
            (true, _) => self.enter(Stage::Woken, now),
            (false, _) if self.lasts(LONGEST, now) => self.enter(Stage::Idle, now),
            (false, Stage::Woken) if self.lasts(PAUSE, now) => {
                self.stage = Stage::GaveWay;
                Step::GiveWay
            }
            (false, _) => Step::Wait,
        }
    }

    fn lasts(&self, span: Nanos, now: Nanos) -> bool {
        now.since(self.since) >= span
    }

    fn enter(&mut self, stage: Stage, now: Nanos) -> Step {
        (self.stage, self.since) = (stage, now);
        match stage {
            Stage::Idle => Step::WakeAll,
            Stage::Collecting => Step::Wait,
            Stage::Woken => Step::WakeFirst,
            Stage::GaveWay => Step::GiveWay,
        }
    }
}

#[cfg(test)]
mod tests;
