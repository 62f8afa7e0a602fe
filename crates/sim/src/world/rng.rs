//! The only source of randomness in the simulator: xoshiro256** (Blackman and Vigna), seeded by
//! SplitMix64, which is also the endpoint's own generator.
//!
//! Invariant: the numbers depend only on the seed and are the same on every machine.

/// Parts per million: how often a thing happens.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Ppm(pub u32);

impl Ppm {
    /// Never.
    pub const NEVER: Self = Self(0);
    /// Every time.
    pub const ALWAYS: Self = Self(1_000_000);

    /// `n` in a hundred.
    pub const fn percent(n: u32) -> Self {
        Self(n * 10_000)
    }
}

/// A stream of pseudo-random numbers.
#[derive(Clone, Debug)]
pub struct Rng([u64; 4]);

impl Rng {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Self {
        let mut seeds = dunlin_core::Rng::new(seed);
        Self(std::array::from_fn(|_| seeds.next_u64()))
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.0;
        let out = s[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        out
    }

    /// The next 32 bits.
    pub fn next_u32(&mut self) -> u32 {
        u32::try_from(self.next_u64() >> 32).expect("the upper half of 64 bits is 32 bits")
    }

    /// A number below `n`; 0 if `n` is 0. The bias is below 2⁻³² for every `n` used here.
    pub fn below(&mut self, n: u64) -> u64 {
        let wide = u128::from(self.next_u64()) * u128::from(n);
        u64::try_from(wide >> 64).expect("a product of two 64-bit numbers is 128 bits long")
    }

    /// An index below `len`; 0 if `len` is 0.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).expect("it is below a usize")
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// A number from `low` to `high`, both included. All orders of magnitude are equally likely.
    pub fn log_between(&mut self, low: u64, high: u64) -> u64 {
        let (low_bits, high_bits) = (64 - low.leading_zeros(), 64 - high.leading_zeros());
        let bits = self.between(u64::from(low_bits), u64::from(high_bits));
        let top = if bits >= 64 {
            u64::MAX
        } else {
            (1 << bits) - 1
        };
        self.between(low, high.min(top.max(low)))
    }

    /// True `often` times in a million.
    pub fn chance(&mut self, often: Ppm) -> bool {
        // No number is drawn for "never", so that switching a fault off costs nothing.
        often.0 != 0 && self.below(1_000_000) < u64::from(often.0)
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// A non-negative number from an exponential distribution with this mean. It is drawn by
    /// comparisons (von Neumann, "Various techniques used in connection with random digits"), so it
    /// does not depend on a machine's logarithm function.
    pub fn exponential(&mut self, mean: u64) -> u64 {
        let mut whole = 0;
        loop {
            let first = self.next_u64();
            let (mut last, mut falls) = (first, 1_u32);
            loop {
                let next = self.next_u64();
                if next >= last {
                    break;
                }
                (last, falls) = (next, falls + 1);
            }
            if falls % 2 == 1 {
                let part = (u128::from(first) * u128::from(mean)) >> 64;
                return mean * whole + u64::try_from(part).expect("it is below the mean");
            }
            whole += 1;
        }
    }

    /// One of `items`, which is not empty.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.index(items.len())]
    }

    /// An independent stream, so that more draws in one part of a run do not shift another part.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self::new(self.next_u64())
    }

    /// Fills `out`.
    pub fn fill(&mut self, out: &mut [u8]) {
        for chunk in out.chunks_mut(8) {
            let word = self.next_u64().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests;
