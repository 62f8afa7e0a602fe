//! The budget of repeats: a bucket that each call and each second fill a little. So a failing
//! server gets little more than its ordinary load.
//!
//! Invariant: in any period, the number of repeats is at most the content of the bucket when the
//! period begins, plus one for every ten calls, plus ten for every second.

use dunlin_core::Nanos;

/// The parts in the bucket that make one repeat. A nanosecond adds a whole number of parts,
/// [`PER_NANO`], so nothing is rounded.
const REPEAT: u64 = 1_000_000_000;
const PER_CALL: u64 = REPEAT / 10;
const PER_NANO: u64 = 10;
const MOST: u64 = 100 * REPEAT;

/// A second adds ten repeats.
const _: () = assert!(PER_NANO * 1_000_000_000 == 10 * REPEAT);

#[derive(Clone, Debug)]
pub(crate) struct Budget {
    parts: u64,
    /// When time was last added.
    filled: Nanos,
    /// Calls that are not added yet.
    calls: u64,
}

impl Budget {
    pub(crate) const fn full(now: Nanos) -> Self {
        Self {
            parts: MOST,
            filled: now,
            calls: 0,
        }
    }

    /// Counts a call. [`Self::take`] adds the parts of all counted calls before it takes any.
    #[inline]
    pub(crate) const fn on_call(&mut self) {
        self.calls += 1;
    }

    /// Takes one repeat out; false if there is none.
    pub(crate) fn take(&mut self, now: Nanos) -> bool {
        let calls = std::mem::take(&mut self.calls);
        self.add(calls.saturating_mul(PER_CALL));
        self.add(now.since(self.filled).times(PER_NANO).0);
        self.filled = self.filled.max(now);
        let is_enough = self.parts >= REPEAT;
        if is_enough {
            self.parts -= REPEAT;
        }
        is_enough
    }

    fn add(&mut self, parts: u64) {
        self.parts = self.parts.saturating_add(parts).min(MOST);
    }
}

#[cfg(test)]
mod tests;
