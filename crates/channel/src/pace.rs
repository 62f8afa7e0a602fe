//! The time that a server takes for an answer, smoothed. The picker compares the paces of two
//! servers; the table of addresses owns one for each.
//!
//! Invariant: a pace is known only after [`ENOUGH`] answers, so that a few slow calls do not make a
//! server slow.

use dunlin_core::{Nanos, Rng};

/// After this many answers, a pace is known; each further answer has this part of its weight. With
/// fewer, chance alone makes one of two equal servers look twice as slow.
const ENOUGH: u64 = 32;

/// A slow server's outstanding calls count at most this many times, so a pace that is wrong, for
/// example because one server got all long calls, does limited harm.
pub(crate) const MOST_WEIGHT: u64 = 4;

/// The smoothed time of a server's answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pace {
    time: Nanos,
    answers: u64,
}

/// The number of calls outstanding at a server, and its pace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Load {
    pub(crate) outstanding: u32,
    pub(crate) pace: Pace,
}

impl Pace {
    pub(crate) const fn new() -> Self {
        Self {
            time: Nanos::ZERO,
            answers: 0,
        }
    }

    /// Counts an answer that took `span`.
    pub(crate) fn on_answer(&mut self, span: Nanos) {
        self.answers = (self.answers + 1).min(ENOUGH);
        let before = self.time.0 - self.time.0 / self.answers;
        self.time = Nanos(before + span.0 / self.answers);
    }

    /// At least 1.
    const fn known(self) -> Option<u64> {
        match self.answers {
            ENOUGH => Some(if self.time.0 == 0 { 1 } else { self.time.0 }),
            _ => None,
        }
    }
}

impl Load {
    /// Nothing is outstanding, and the pace is unknown.
    pub(crate) const NONE: Self = Self {
        outstanding: 0,
        pace: Pace::new(),
    };

    /// The planted bug: the calls of slow servers count like others.
    #[cfg(feature = "mutants")]
    pub(crate) fn without_pace(self) -> Self {
        Self {
            pace: Pace::new(),
            ..self
        }
    }

    /// Whether a call goes here, and not to `other`: if fewer calls are outstanding here, each of
    /// which counts as often as this server takes the other one's time. If the counts are equal,
    /// each server gets calls as often as it is quick.
    pub(crate) fn is_less(self, other: Self, rng: &mut Rng) -> bool {
        let Some((own, others)) = self.pace.known().zip(other.pace.known()) else {
            return self.outstanding < other.outstanding;
        };
        let weigh =
            |load: Self, times: u64| u64::from(load.outstanding) * times.clamp(1, MOST_WEIGHT);
        let (here, there) = (weigh(self, own / others), weigh(other, others / own));
        here < there || here == there && rng.next_u64() % own.saturating_add(others) < others
    }
}

#[cfg(test)]
mod tests;
