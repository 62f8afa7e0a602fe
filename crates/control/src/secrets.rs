//! Numbers that peers see, but from which they must not be able to compute further ones: secrets of
//! heartbeats, nonces, bytes of challenges. From one number of [`Rng`](dunlin_core::Rng), a peer
//! could compute all others. Even a peer that has many of these numbers cannot compute another one
//! without the seed.

use std::fmt;
use std::hash::{DefaultHasher, Hasher};

/// A keyed hash of a counter. It is not cryptographically secure. The same seed gives the same
/// numbers.
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
