//! A watch: the place of a consumer's next packet, with all that a look there needs. Called by `rx`
//! and `consumer`.

use std::ptr::NonNull;

#[cfg(not(loom))]
use super::super::cells::CELL;
use super::super::cells::Cell;
use super::super::sync::{AtomicU64, Ordering};
use super::{LEN_SHIFT, low};

/// The place where a consumer will find its next packet, for a receiver that polls many rings
/// without touching the consumers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::shm) struct Watch {
    pub(super) word: NonNull<AtomicU64>,
    pub(super) sequence: u32,
}

impl Watch {
    /// The place of a packet that begins this number of cells later, in the same lap.
    ///
    /// # Safety
    /// The ring has that cell.
    #[inline(always)]
    pub(in crate::shm) unsafe fn later(self, cells: usize) -> Self {
        Self {
            // SAFETY: as the caller promises; the address was made from that of all cells.
            word: unsafe { self.word.cast::<Cell>().add(cells).cast() },
            sequence: self.sequence,
        }
    }

    /// Prefetches the cell after this one, which may lie beyond the ring.
    ///
    /// # Safety
    /// The cells of the ring are alive.
    #[cfg(not(loom))]
    #[inline(always)]
    pub(in crate::shm) unsafe fn prefetch_after(self) {
        // SAFETY: as the caller promises.
        dunlin_msgbuf::prefetch_line(unsafe { self.word.as_ref() }, 1);
    }

    /// The place after the packet at this place, which has `cells` cells. `None` if another packet
    /// follows, or if a cell of the packet does not lie before the address `end`. A packet that has
    /// just come may be missed.
    ///
    /// # Safety
    /// The cells of the ring are alive, and `end` is 0 or comes from `Consumer::end_of_run`.
    #[inline(always)]
    pub(in crate::shm) unsafe fn after_lone(self, cells: usize, end: usize) -> Option<Self> {
        if self.addr() + (cells - 1) * size_of::<Cell>() >= end {
            return None;
        }
        // SAFETY: the end is not after the ring's last cell, so the ring has the cell after the
        // packet, too. The cells are alive.
        unsafe {
            let next = self.later(cells);
            (!next.has_come()).then_some(next)
        }
    }

    /// The address of the packet's first cell.
    #[inline(always)]
    pub(in crate::shm) fn addr(self) -> usize {
        self.word.addr().get()
    }

    /// The packet's first cell.
    #[cfg(not(loom))]
    #[inline(always)]
    pub(in crate::shm) const fn cell(self) -> NonNull<[u8; CELL]> {
        self.word.cast()
    }

    /// The length of the packet there, with its flags in the bits above the length.
    ///
    /// # Safety
    /// The cells of the ring are alive.
    #[inline(always)]
    pub(in crate::shm) unsafe fn next(&self) -> Option<u32> {
        // SAFETY: as the caller promises.
        let word = unsafe { self.word.as_ref() }.load(Ordering::Acquire);
        (low(word) == self.sequence).then_some(low(word >> LEN_SHIFT))
    }

    /// True if a packet is there. Its bytes may not be visible yet.
    ///
    /// # Safety
    /// The cells of the ring are alive.
    #[inline(always)]
    pub(in crate::shm) unsafe fn has_come(&self) -> bool {
        // SAFETY: as the caller promises.
        low(unsafe { self.word.as_ref() }.load(Ordering::Relaxed)) == self.sequence
    }

    /// True if a packet is there.
    ///
    /// # Safety
    /// The cells of the ring are alive.
    #[inline]
    pub(in crate::shm) unsafe fn has_next(&self) -> bool {
        // SAFETY: as the caller promises.
        low(unsafe { self.word.as_ref() }.load(Ordering::Acquire)) == self.sequence
    }
}
