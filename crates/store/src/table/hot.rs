//! The keys that clients read most, found by sampling about one get in [`MEAN_GAP`], at random
//! distances, so that a client that reads its keys in a fixed order does not hide some of them.
//!
//! A fixed number of counters follows the most-sampled keys (the algorithm "space saving":
//! Metwally, Agrawal and El Abbadi, "Efficient computation of frequent and top-k elements in data
//! streams", 2005). A key with more than one in [`HOT_KEYS`] of the samples always has a counter,
//! and no counter is too high by more than that share. A get that is not sampled costs one
//! decrement and one branch; a sampled get scans all counters.

use super::key::Key;
use crate::config::MAX_KEY;
use crate::hash::Seed;

/// The number of keys that are followed.
pub const HOT_KEYS: usize = 32;

/// The mean number of gets from one sample to the next.
const MEAN_GAP: u64 = 64;

/// After this number of samples all counters are halved, so that they show only the last minutes.
const HALVED_AT: u64 = 1 << 17;

#[derive(Debug)]
pub(super) struct Hot {
    /// Gets until the next sample.
    left: u64,
    /// The state of the random generator that chooses the samples.
    random: u64,
    samples: u64,
    /// The hashes of the followed keys, and how often each key was sampled. They are stored apart
    /// from the keys, so that a sample reads few cache lines.
    hashes: Vec<u64>,
    counts: Vec<u64>,
    names: Vec<Name>,
}

/// A key that is followed.
struct Name {
    len: u8,
    key: [u8; MAX_KEY],
}

impl Hot {
    pub(super) fn new(seed: Seed) -> Self {
        Self {
            left: MEAN_GAP,
            random: seed.hash(b"samples"),
            samples: 0,
            hashes: Vec::with_capacity(HOT_KEYS),
            counts: Vec::with_capacity(HOT_KEYS),
            names: Vec::with_capacity(HOT_KEYS),
        }
    }

    /// Notes a get.
    #[inline]
    pub(super) fn on_get(&mut self, key: &Key<'_>) {
        self.left -= 1;
        if self.left == 0 {
            self.sample(key);
        }
    }

    /// Keys with their numbers of samples, out of [`Self::samples`], in descending order.
    pub(super) fn keys(&self) -> Vec<(&[u8], u64)> {
        let names = self.names.iter().map(Name::key);
        let keys = names.zip(self.counts.iter().copied());
        let mut keys: Vec<(&[u8], u64)> = keys.collect();
        keys.sort_by_key(|(_, samples)| std::cmp::Reverse(*samples));
        keys
    }

    pub(super) const fn samples(&self) -> u64 {
        self.samples
    }

    #[cold]
    fn sample(&mut self, key: &Key<'_>) {
        // Knuth's constants for a linear congruential generator. Its upper bits are the better
        // ones.
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.left = 1 + (self.random >> 32) % (2 * MEAN_GAP - 1);
        self.samples += 1;
        self.count(key);
        if self.samples == HALVED_AT {
            self.samples /= 2;
            self.counts.iter_mut().for_each(|count| *count /= 2);
        }
    }

    fn count(&mut self, key: &Key<'_>) {
        let is_it =
            |(at, hash): (usize, &u64)| *hash == key.hash() && self.names[at].key() == key.bytes();
        if let Some(at) = self.hashes.iter().enumerate().position(is_it) {
            self.counts[at] += 1;
        } else if self.names.len() < HOT_KEYS {
            self.hashes.push(key.hash());
            self.counts.push(1);
            self.names.push(Name::new(key));
        } else if let Some(at) = (0..HOT_KEYS).min_by_key(|at| self.counts[*at]) {
            self.hashes[at] = key.hash();
            self.counts[at] += 1;
            self.names[at] = Name::new(key);
        }
    }
}

impl Name {
    fn new(key: &Key<'_>) -> Self {
        let mut bytes = [0; MAX_KEY];
        bytes[..key.bytes().len()].copy_from_slice(key.bytes());
        Self {
            len: u8::try_from(key.bytes().len()).expect("a key has at most 250 bytes"),
            key: bytes,
        }
    }

    fn key(&self) -> &[u8] {
        &self.key[..self.len.into()]
    }
}

impl std::fmt::Debug for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.key().escape_ascii())
    }
}

#[cfg(test)]
mod tests;
