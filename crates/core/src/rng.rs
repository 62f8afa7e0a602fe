//! Randomness as an argument: a small generator, seeded by the endpoint's owner.
//!
//! [`Rng`] serves handlers through `Cx::rng`: a peer that sees some of its numbers can compute the
//! others. Session tokens therefore come from [`Tokens`], whose sequence cannot be computed in
//! either direction without the seed. Neither is cryptographically secure (rule W5); the same seed
//! gives the same run.

use std::hash::{DefaultHasher, Hasher};

use dunlin_wire::Token;

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator whose whole sequence follows from `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// 32 random bits.
    #[inline]
    pub const fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    /// A number below `bound`, which must not be 0. The bias is below 2⁻³².
    #[inline]
    pub const fn below(&mut self, bound: u32) -> u32 {
        ((self.next_u32() as u64 * bound as u64) >> 32) as u32
    }
}

/// Session tokens: a keyed hash of a counter.
#[derive(Clone)]
pub(crate) struct Tokens {
    seed: u64,
    issued: u64,
}

impl Tokens {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, issued: 0 }
    }

    pub(crate) fn next(&mut self) -> Token {
        self.issued += 1;
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.seed);
        hasher.write_u64(self.issued);
        Token((hasher.finish() >> 32) as u32)
    }
}

impl std::fmt::Debug for Tokens {
    /// Hides the seed, which must not reach a log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens")
            .field("issued", &self.issued)
            .finish_non_exhaustive()
    }
}
