//! The layout of a region's memory, which another process must know to map the region.
//!
//! Invariant: an extent that [`Extent::is_sound`] accepts lies inside the memory. Made by `region`,
//! checked by `peer`.

use std::sync::atomic::AtomicU32;

/// The layout of a region's memory: blocks, and generations after them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Extent {
    /// Bytes of the memory.
    pub mapped: usize,
    /// Bytes from its start in which blocks lie. The generations follow them.
    pub bytes: usize,
    /// Number of generations.
    pub generations: usize,
}

/// Bytes of a generation.
pub(crate) const GENERATION: usize = size_of::<AtomicU32>();

impl Extent {
    /// True if blocks and generations fit into the memory and do not overlap.
    pub(crate) fn is_sound(self) -> bool {
        let generations = self.generations.checked_mul(GENERATION);
        let end = generations.and_then(|len| len.checked_add(self.bytes));
        self.bytes.is_multiple_of(GENERATION) && end.is_some_and(|end| end <= self.mapped)
    }
}
