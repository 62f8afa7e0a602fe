//! The time that a server takes for an answer, smoothed. The picker compares the paces of two
//! servers; the table of addresses owns one for each.
//!
//! Invariant: a pace is known only after [`ENOUGH`] answers, so that a few slow calls do not make a
//! server slow.

use dunlin_core::{Nanos, Rng};

/// After this many answers, a pace is known; from then on, each answer has one 32nd of the weight.
/// With fewer, chance alone makes one of two equal servers look twice as slow.
const ENOUGH: u64 = 32;

/// A slow server's outstanding calls count at most this many times, so a pace that is wrong, for
/// example because one server got all long calls, does limited harm.
const MOST_WEIGHT: u64 = 4;

/// Parts of a nanosecond, so that the averages of short times are not rounded to zero.
const PARTS: u64 = 1 << 10;

/// The smoothed time of a server's answers, in parts of a nanosecond.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pace {
    time: u64,
    /// The time of an answer, divided by the number of calls that were outstanding when its call
    /// began. If a server answers one call after the other, this quotient does not depend on its
    /// load; the time does.
    each: u64,
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
            time: 0,
            each: 0,
            answers: 0,
        }
    }

    /// Counts an answer that took `span`. `outstanding`: the number of calls at the server just
    /// after the answered call had begun, including that call.
    pub(crate) fn on_answer(&mut self, span: Nanos, outstanding: u32) {
        self.answers = (self.answers + 1).min(ENOUGH);
        let time = span.times(PARTS).0;
        let each = time / u64::from(outstanding.max(1));
        for (average, new) in [(&mut self.time, time), (&mut self.each, each)] {
            *average = *average - *average / self.answers + new / self.answers;
        }
    }

    /// How many times as long as `other` this server takes for a call, rounded down; 1 if it is
    /// quicker, or if one of the paces is not known yet. Both the time of a call and this time
    /// divided by the outstanding calls must be longer: a longer time may only show that more calls
    /// waited.
    fn times(self, other: Self) -> u64 {
        if self.answers.min(other.answers) < ENOUGH {
            return 1;
        }
        let times = self.time / other.time.max(1);
        times.min(self.each / other.each.max(1)).max(1)
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

    /// Whether a call goes here, and not to `other`. The server with fewer outstanding calls gets
    /// it; each call of a server that takes n times as long as the other one counts as n calls. If
    /// the counts are equal, the choice is random, and a server that takes n times as long is
    /// chosen an nth as often.
    pub(crate) fn is_less(self, other: Self, rng: &mut Rng) -> bool {
        let (own, others) = (self.pace.times(other.pace), other.pace.times(self.pace));
        let weigh = |load: Self, times: u64| u64::from(load.outstanding) * times.min(MOST_WEIGHT);
        let (here, there) = (weigh(self, own), weigh(other, others));
        here < there || here == there && rng.next_u64() % own.saturating_add(others) < others
    }
}

#[cfg(test)]
mod tests;
