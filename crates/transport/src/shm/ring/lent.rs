//! Free cells at a ring's tail, lent by the producer for packets of one cell that leave one by one.
//!
//! One look at the producer finds that several such packets need no other work: the cells are free,
//! lie before the ring's end, and are clean (`dirty`). A sender that keeps the lent cells at hand
//! then writes each packet without the producer.
//!
//! Invariant: while cells are lent, the caller uses its producer for nothing but looks at the
//! consumer's marks; it gives the cells back first. Otherwise packets would overwrite each other,
//! though never memory outside the ring. Called by `tx`.

use std::ptr::NonNull;

use super::super::cells::{Cells, ONE_CELL};
use super::super::sync::Ordering;
use super::run::Fill;
use super::{ConsumerLine, Producer};

/// Lent cells.
#[derive(Debug)]
pub(in crate::shm) struct Lent {
    /// The next cell.
    fill: Fill,
    line: NonNull<ConsumerLine>,
    /// Indices of the first lent cell, and of the cell after the last.
    start: usize,
    end: usize,
}

// SAFETY: as for the producer, whose cells these are.
unsafe impl Send for Lent {}

/// A sender pauses after a packet if the index of the next cell is a multiple of this, to check
/// what it put off. Lent cells end at such a pause.
const PAUSE: usize = if cfg!(loom) { 2 } else { 16 };

/// After each packet, while its peer works, a sender claims the line of the cell this far after it.
/// A claimed line comes back to the sender sooner than one of which both cores have a copy from the
/// lap before (`docs/decisions/common-path.md`). The consumer prefetches the second cell after each
/// packet; if it had to wait for that line later, its answer would wait, too.
const AHEAD: usize = if cfg!(loom) { 1 } else { 4 };

impl Lent {
    /// No cells.
    pub(in crate::shm) fn none() -> Self {
        // SAFETY: no cell is lent, so none is used.
        let cells = unsafe { Cells::new(NonNull::dangling(), 1) };
        Self {
            fill: Fill::nowhere(cells),
            line: NonNull::dangling(),
            start: 0,
            end: 0,
        }
    }

    /// Whether cells were lent, even if none is left.
    #[inline(always)]
    pub(in crate::shm) const fn are_lent(&self) -> bool {
        self.end != 0
    }

    /// Whether a cell is left.
    #[inline(always)]
    pub(in crate::shm) const fn has_room(&self) -> bool {
        self.fill.first != self.end
    }

    /// The number of packets that were written.
    #[inline(always)]
    pub(in crate::shm) const fn used(&self) -> usize {
        self.fill.first - self.start
    }

    /// Whether the sender pauses after the last packet. It always does if no cell is left.
    #[inline(always)]
    pub(in crate::shm) const fn is_pause(&self) -> bool {
        self.fill.first.is_multiple_of(PAUSE)
    }

    /// Sends a packet of one cell; there must be a cell left. `line` has the packet's `len` bytes,
    /// and leftover bytes after them. Returns whether the sender pauses now, or the consumer has
    /// parked the ring a short while ago.
    ///
    /// # Safety
    /// A cell is left. Its ring is alive, and the producer has not been used since it lent them.
    #[inline(always)]
    pub(in crate::shm) unsafe fn push(&mut self, line: &[u8; ONE_CELL], len: usize) -> bool {
        debug_assert!(self.has_room() && len <= ONE_CELL);
        // SAFETY: the cell was free when it was lent, and nothing else writes there.
        unsafe { self.fill.whole(0, line, len) };
        // SAFETY: that many cells after the last lent one are free, too.
        unsafe { self.fill.cells.claim(self.fill.first + AHEAD) };
        self.fill.first += 1;
        // SAFETY: the line is alive as long as the ring, and consists of atomics.
        let line = unsafe { self.line.as_ref() };
        line.parked.load(Ordering::Relaxed) != 0 || self.is_pause()
    }
}

impl Producer {
    /// Lends cells from the tail on, unless a packet of one cell would need other work.
    pub(in crate::shm) fn lend(&self) -> Lent {
        let fill = self.fill();
        let room = self.limit.saturating_sub(self.tail + 1);
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        let all = self.cells.count() as usize;
        let free = fill.first.saturating_add(room).min(all);
        let end = free.saturating_sub(AHEAD) / PAUSE * PAUSE;
        // After a clean cell, all cells are clean: no long packet is sent meanwhile.
        if end <= fill.first || self.dirty.is_possible(self.tail + 1) {
            return Lent::none();
        }
        Lent {
            fill,
            line: self.line,
            start: fill.first,
            end,
        }
    }

    /// Takes lent cells back. Returns the number of packets in them.
    pub(in crate::shm) fn take_back(&mut self, lent: &Lent) -> u64 {
        let used = lent.used() as u64;
        self.tail += used;
        used
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
