//! Numbers that a peer gets and must not be able to continue: secrets of heartbeats, nonces, bytes
//! of challenges. One of [`Rng`](dunlin_core::Rng)'s numbers shows all others to the peer that has
//! it; of these, a peer that has many still needs the seed.

use std::fmt;
use std::hash::{DefaultHasher, Hasher};

/// A keyed hash of a counter. It is no cryptography; the same seed gives the same numbers.
pub(crate) struct Secrets {
    seed: u64,
    issued: u64,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

impl Secrets {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { seed, issued: 0 }
    }

    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.issued += 1;
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.seed);
        hasher.write_u64(self.issued);
        hasher.finish()
    }
}

#[cfg(test)]
mod tests;
