//! The memory of rings in tests under loom.

use loom::sync::Arc;

use super::*;

/// Number of entries of a ring.
pub(crate) const COUNT: u32 = 2;

/// The memory of a ring with two entries.
pub(crate) struct Shared {
    positions: [AtomicU32; 3],
    words: Vec<AtomicU64>,
}

impl Shared {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            positions: [0; 3].map(AtomicU32::new),
            words: (0..2 * COUNT).map(|_| AtomicU64::new(0)).collect(),
        })
    }

    pub(crate) fn memory<E: RingEntry>(&self) -> Memory<E> {
        let [producer, consumer, flags] = &self.positions;
        // SAFETY: every thread that uses the ring holds the `Arc`, and an entry has two words or
        // one.
        unsafe { Memory::over([producer, consumer, flags], &self.words, COUNT) }
    }
}
