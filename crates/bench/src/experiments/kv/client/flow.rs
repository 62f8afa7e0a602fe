//! The operations of a step: which ones are in flight, when the next one is due, and how long they
//! took.
//!
//! Random times between two operations are drawn from an exponential distribution, so that the
//! number of operations in any span has a Poisson distribution. The duration of an operation counts
//! from the moment when it was due, so it includes the time by which the client itself was late.

use std::time::Duration;

use anyhow::{bail, ensure};

use super::{Outcome, Pace, Step};
use crate::harness::items::{Draws, Items, Mix, Operation};
use crate::harness::rtt::Recorder;
use crate::harness::ticks::{self, Stretch};

/// Operations that are drawn before the first step. A step with more operations repeats them. Their
/// items together do not fit into any cache.
const DRAWN: usize = 1 << 21;

/// The most operations in flight, a power of two: the number of calls that may wait at a session.
pub(super) const MOST: usize = 1024;

/// The operations to come, and the operations in flight.
#[derive(Debug)]
pub(super) struct Flow {
    drawn: Vec<Operation>,
    /// The place in `drawn` of the next operation.
    next: usize,
    draws: Draws,
    /// For each slot: where in `drawn` its operation is, and when it was due, in ticks.
    slots: Vec<(usize, u64)>,
    free: Vec<u32>,
    /// Keys of an operation.
    keys: usize,
    timing: Timing,
    ended: u64,
    counted: u64,
    recorder: Option<Recorder>,
    clock: Stretch,
    wrong: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Timing {
    /// No operation begins.
    Stopped,
    /// This many operations begin together, as soon as that many slots are free.
    Batches(usize),
    /// The next operation is due at tick `due`. `mean` is the mean time between two, in ticks.
    Random { due: u64, mean: f64 },
}

impl Flow {
    /// A flow without a step.
    pub(super) fn new(items: Items, mix: Mix) -> Self {
        let mut draws = Draws::new(mix, items.count, 11);
        Self {
            drawn: (0..DRAWN).map(|_| draws.draw()).collect(),
            next: 0,
            draws,
            slots: Vec::new(),
            free: Vec::new(),
            keys: 1,
            timing: Timing::Stopped,
            ended: 0,
            counted: 0,
            recorder: None,
            clock: Stretch::begin(),
            wrong: None,
        }
    }

    /// Begins a step, while nothing is in flight.
    ///
    /// # Errors
    /// The step's pace is a percentage of a rate that was not measured.
    pub(super) fn begin(&mut self, step: &Step, largest: f64) -> anyhow::Result<()> {
        let slots = match step.pace {
            Pace::Closed { window, batch } => {
                self.timing = Timing::Batches(batch);
                window
            }
            Pace::Open { percent } => {
                let per_s = largest * f64::from(percent) / 100.0;
                ensure!(per_s > 0.0, "the largest rate is unknown");
                self.timing = Timing::Random {
                    due: ticks::now(),
                    mean: 1e9 / per_s / self.clock.ns_per_tick(),
                };
                MOST
            }
        };
        self.keys = step.keys;
        self.slots = vec![(0, 0); slots];
        self.free = (0..u32::try_from(slots)?).rev().collect();
        self.recorder = step.is_timed.then(|| Recorder::skipping(0));
        Ok(())
    }

    /// Begins no more operations.
    pub(super) fn stop(&mut self) {
        self.timing = Timing::Stopped;
    }

    /// Forgets the counts of the warm-up.
    pub(super) fn forget(&mut self) {
        self.counted = 0;
        self.recorder = self.recorder.take().map(|_| Recorder::skipping(0));
    }

    /// The result since [`Self::forget`].
    #[expect(clippy::cast_precision_loss, reason = "counts of a run are small")]
    pub(super) fn outcome(&self, took: Duration) -> Outcome {
        let [p50, p99, p999, mean] = match &self.recorder {
            Some(it) => {
                let [p50, p99, p999] = it.quantiles();
                [p50, p99, p999, it.mean()]
            }
            None => [0.0; 4],
        };
        Outcome {
            per_s: self.counted as f64 * self.keys as f64 / took.as_secs_f64(),
            p50,
            p99,
            p999,
            mean,
        }
    }

    /// True if nothing is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    /// Operations that have ended in all steps.
    pub(super) const fn ended(&self) -> u64 {
        self.ended
    }

    /// Checks that no result was wrong.
    ///
    /// # Errors
    /// A result was wrong.
    pub(super) fn check(&mut self) -> anyhow::Result<()> {
        match self.wrong.take() {
            Some(wrong) => bail!(wrong),
            None => Ok(()),
        }
    }

    /// The most operations that may begin now.
    #[inline]
    pub(super) fn due(&self) -> usize {
        match self.timing {
            Timing::Stopped => 0,
            Timing::Batches(batch) => self.free.len() / batch * batch,
            Timing::Random { .. } => self.free.len(),
        }
    }

    /// Takes a slot for the next operation, if one is due.
    #[inline]
    pub(super) fn take(&mut self) -> Option<u32> {
        let begin = match &mut self.timing {
            Timing::Random { due, mean } => {
                let begin = *due;
                if begin > ticks::now() {
                    return None;
                }
                *due = begin + gap(*mean, self.draws.unit());
                begin
            }
            _ if self.recorder.is_some() => ticks::now(),
            _ => 0,
        };
        let slot = self.free.pop()?;
        self.slots[slot as usize] = (self.next, begin);
        self.next += self.keys;
        if self.next + self.keys > DRAWN {
            self.next = 0;
        }
        Some(slot)
    }

    /// The operation of a slot; for a multi-get, one get for each key.
    #[inline]
    pub(super) fn operations(&self, slot: u32) -> &[Operation] {
        let (at, _) = self.slots[slot as usize];
        &self.drawn[at..at + self.keys]
    }

    /// Counts the end of an operation.
    #[inline]
    pub(super) fn on_end(&mut self, slot: u32) {
        let (_, begin) = self.slots[slot as usize];
        if let Some(recorder) = &mut self.recorder {
            recorder.record(ticks::now().saturating_sub(begin));
        }
        self.ended += 1;
        self.counted += 1;
        self.free.push(slot);
    }

    /// Notes a wrong result.
    #[cold]
    pub(super) fn on_wrong(&mut self, what: String) {
        self.wrong.get_or_insert(what);
    }
}

/// An exponentially distributed time with this mean. `unit` is a uniform draw from 0 to 1.
#[inline]
fn gap(mean: f64, unit: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is not negative, and far below 2^63"
    )]
    let gap = (-(1.0 - unit).ln() * mean) as u64;
    gap
}

#[cfg(test)]
mod tests;
