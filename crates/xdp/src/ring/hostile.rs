//! The memory of a ring as its other side has it, which may write anything to any part of it at any
//! time. Used by `check`.

use super::{Memory, RingEntry, read, write};
use crate::sync::Ordering;

impl<E: RingEntry> Memory<E> {
    /// The producer's position.
    pub(crate) fn produced(&self) -> u32 {
        self.producer().load(Ordering::Acquire)
    }

    /// The consumer's position.
    pub(crate) fn consumed(&self) -> u32 {
        self.consumer().load(Ordering::Acquire)
    }

    /// Moves the producer's position.
    pub(crate) fn produce(&self, position: u32) {
        self.producer().store(position, Ordering::Release);
    }

    /// Moves the consumer's position.
    pub(crate) fn consume(&self, position: u32) {
        self.consumer().store(position, Ordering::Release);
    }

    /// Sets the flags.
    pub(crate) fn set_flags(&self, flags: u32) {
        self.flags().store(flags, Ordering::Relaxed);
    }

    /// The number of entries.
    pub(crate) fn capacity(&self) -> u32 {
        self.count
    }

    /// The entry at a position.
    pub(crate) fn entry(&self, position: u32) -> E {
        read(self.place(position))
    }

    /// Writes the entry at a position.
    pub(crate) fn put(&self, position: u32, entry: E) {
        write(self.place(position), entry);
    }
}
