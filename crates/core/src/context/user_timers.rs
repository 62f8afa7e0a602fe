//! The user's timers (`Cx::timer`): a heap, because they are few and never cancelled.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::handle::TimerToken;
use crate::time::Nanos;

/// Timers in order of time; equal times fire in the order of their tokens.
#[derive(Debug, Default)]
pub(crate) struct UserTimers(BinaryHeap<Reverse<(Nanos, TimerToken)>>);

impl UserTimers {
    pub(crate) fn insert(&mut self, at: Nanos, token: TimerToken) {
        self.0.push(Reverse((at, token)));
    }

    /// The number of waiting timers.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The next timer that is due.
    pub(crate) fn pop_due(&mut self, now: Nanos) -> Option<TimerToken> {
        if self.next_due() > now {
            return None;
        }
        self.0.pop().map(|Reverse((_, token))| token)
    }

    #[inline]
    pub(crate) fn next_due(&self) -> Nanos {
        self.0.peek().map_or(Nanos::MAX, |Reverse((at, _))| *at)
    }
}

#[cfg(test)]
mod tests;
