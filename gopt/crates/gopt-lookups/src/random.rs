//! Random numbers for tables and queries: fast, repeatable, not for secrets.

/// A generator that a seed determines (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The generator of this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// 64 random bits.
    #[inline]
    pub const fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.state)
    }

    /// A number below `limit`, or 0 if `limit` is 0.
    #[inline]
    pub fn below(&mut self, limit: u64) -> u64 {
        let scaled = (u128::from(self.bits()) * u128::from(limit)) >> 64;
        u64::try_from(scaled).expect("less than the limit")
    }

    /// An index below `len`, or 0 if `len` is 0.
    #[inline]
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).expect("less than a usize")
    }
}

/// A bijection that makes every bit depend on every other (the finalizer of SplitMix64).
#[inline(always)]
#[must_use]
pub const fn mix(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}
