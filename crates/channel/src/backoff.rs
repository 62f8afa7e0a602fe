//! Pauses before a further try, with full jitter: a random time between the shortest pause and a
//! bound that grows with each failure. So clients that failed at the same time do not try again at
//! the same time.

use dunlin_core::{Nanos, Rng};

/// The range of the pauses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Backoff {
    /// The shortest pause.
    pub least: Nanos,
    /// The bound of the first pause.
    pub first: Nanos,
    /// The factor by which the bound grows with each failure; at least 2. For pauses that do not
    /// grow, set `first` to `most`.
    pub factor: u32,
    /// The longest pause.
    pub most: Nanos,
}

impl Backoff {
    /// Whether the bound grows with each failure, as it must.
    pub const fn grows(&self) -> bool {
        self.factor >= 2
    }

    /// Refuses a bound that does not grow.
    pub(crate) fn check(&self) {
        let factor = self.factor;
        assert!(
            self.grows(),
            "the factor of a pause is {factor}; set it to 2 or more"
        );
    }

    /// Draws the pause that follows this number of failures, which is at least one.
    pub(crate) fn pause(&self, failures: u32, rng: &mut Rng) -> Nanos {
        let mut bound = self.first.min(self.most);
        for _ in 1..failures {
            if bound >= self.most {
                break;
            }
            bound = bound.times(u64::from(self.factor)).min(self.most);
        }
        let width = bound.since(self.least).0;
        let wide = u128::from(rng.next_u64()) * (u128::from(width) + 1);
        let jitter = u64::try_from(wide >> 64).expect("it is at most the width");
        self.least.min(self.most) + Nanos(jitter)
    }
}

#[cfg(test)]
mod tests;
