//! The places of things in the memory of a region, as a process must know them to map it.
//!
//! Invariant: what [`Extent::is_sound`] has let through lies inside the memory. Made by `region`,
//! checked by `peer`.

use std::sync::atomic::AtomicU32;

/// The places of things in the memory of a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Extent {
    /// Bytes of the memory.
    pub mapped: usize,
    /// Bytes from its start that blocks lie in. The generations stand behind them.
    pub bytes: usize,
    /// How many generations there are.
    pub generations: usize,
}

/// Bytes of a generation.
pub(crate) const GENERATION: usize = size_of::<AtomicU32>();

impl Extent {
    /// True if blocks and generations fit into the memory as they should.
    pub(crate) fn is_sound(self) -> bool {
        let generations = self.generations.checked_mul(GENERATION);
        let end = generations.and_then(|len| len.checked_add(self.bytes));
        self.bytes.is_multiple_of(GENERATION) && end.is_some_and(|end| end <= self.mapped)
    }
}
