//! Free cells at a ring's tail, lent by the producer for packets that leave one by one.
//!
//! One look at the producer finds that several such packets need no other work: the cells are free
//! and lie before the ring's end. A sender that keeps the lent cells at hand then writes each
//! packet without the producer.
//!
//! There are two kinds. A *clean run* has no cell that holds data (`dirty`), may be long, and is
//! for packets of one cell. A *block* is for packets of any number of cells. Its cells lie in one
//! word of the set of cells that hold data; that word is lent with them, so that such a cell is
//! cleaned when the tail comes to it, and is given back with them.
//!
//! Invariant: while cells are lent, the caller uses its producer for nothing but looks at the
//! consumer's marks; it gives the cells back first. Otherwise packets would overwrite each other,
//! though never memory outside the ring. Called by `tx`.

use std::ptr::NonNull;

use super::super::cells::{CELL, Cells, ONE_CELL, TWO_CELLS};
use super::super::staged::MOST_LINES;
use super::super::sync::Ordering;
use super::dirty::Dirty;
use super::run::{Fill, halves_after_first};
use super::{ConsumerLine, Producer};

/// Lent cells.
#[derive(Debug)]
pub(in crate::shm) struct Lent {
    /// The next cell.
    fill: Fill,
    line: NonNull<ConsumerLine>,
    /// The number of packets is the distance from here to the next cell. So this is the first lent
    /// cell until a packet of several cells was sent.
    start: usize,
    /// Index of the cell after the last.
    end: usize,
    /// Of a block, its word of the set of cells that hold data.
    data: u64,
    /// Whether this is a block.
    is_block: bool,
}

// SAFETY: as for the producer, whose cells these are.
unsafe impl Send for Lent {}

/// After some packets, a sender pauses to do the checks that it has put off. In a clean run, it
/// pauses when the index of the next cell is a multiple of this number; in a block, when the number
/// of packets in the block is such a multiple. Clean runs end at such a pause.
const PAUSE: usize = if cfg!(loom) { 2 } else { 16 };

/// After each packet of a clean run, while its peer works, a sender claims the line of the cell
/// this far after it. Such a line comes back to the sender sooner than one of which both cores have
/// a copy from the lap before (`docs/decisions/common-path.md`). The consumer prefetches the second
/// cell after each packet; if it had to wait for that line later, its answer would wait, too.
const AHEAD: usize = if cfg!(loom) { 1 } else { 4 };

/// A ring lends blocks only if it carries packets of this length, so that no length is compared.
const LONGEST: usize = if cfg!(loom) {
    TWO_CELLS
} else {
    MOST_LINES * CELL - (CELL - ONE_CELL)
};

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
            data: 0,
            is_block: false,
        }
    }

    /// Whether cells were lent, even if none is left.
    #[inline(always)]
    pub(in crate::shm) const fn are_lent(&self) -> bool {
        self.end != 0
    }

    /// Whether the cells are a block.
    pub(in crate::shm) const fn are_block(&self) -> bool {
        self.is_block
    }

    /// Whether `cells` cells are left.
    #[inline(always)]
    pub(in crate::shm) const fn have(&self, cells: usize) -> bool {
        self.end - self.fill.first >= cells
    }

    /// The number of packets that were written.
    #[inline(always)]
    pub(in crate::shm) const fn used(&self) -> usize {
        self.fill.first - self.start
    }

    /// Whether the sender pauses after the last packet. In a clean run, it always does if no cell
    /// is left.
    #[inline(always)]
    pub(in crate::shm) const fn is_pause(&self) -> bool {
        match self.is_block {
            true => self.used().is_multiple_of(PAUSE),
            false => self.fill.first.is_multiple_of(PAUSE),
        }
    }

    /// Sends a packet of one cell in a clean run; there must be a cell left. `line` has the
    /// packet's `len` bytes, and leftover bytes after them. Returns whether the sender pauses now,
    /// or the consumer has parked the ring a short while ago.
    ///
    /// # Safety
    /// A cell is left. Its ring is alive, and the producer has not been used since it lent them.
    #[inline(always)]
    pub(in crate::shm) unsafe fn push(&mut self, line: &[u8; ONE_CELL], len: usize) -> bool {
        debug_assert!(self.have(1) && !self.is_block && len <= ONE_CELL);
        // SAFETY: the cell was free when it was lent, and nothing else writes there.
        unsafe { self.fill.whole(0, line, len) };
        // SAFETY: that many cells after the last lent one are free, too.
        unsafe { self.fill.cells.claim(self.fill.first + AHEAD) };
        self.fill.first += 1;
        self.seems_parked() || self.fill.first.is_multiple_of(PAUSE)
    }

    /// Sends a packet in a block, which begins in the first of these lines. `CELLS` is its number
    /// of cells, or 0 if that is more than two. Otherwise like [`Self::push`]. `None`: too few
    /// cells are left, and nothing was sent.
    ///
    /// # Safety
    /// The cells are a block, or none are lent. Their ring is alive, and the producer has not been
    /// used since it lent them.
    #[inline(always)]
    pub(in crate::shm) unsafe fn push_any<const CELLS: usize>(
        &mut self,
        [line, rest @ ..]: &[[u8; CELL]; MOST_LINES],
        len: usize,
    ) -> Option<bool> {
        let at = self.fill.first;
        let (more, halves) = match CELLS {
            1 => (0, 0),
            2 => (1, 0),
            _ => (halves_after_first(len).div_ceil(2), halves_after_first(len)),
        };
        if !self.have(1 + more) || more > rest.len() {
            return None;
        }
        debug_assert!(self.is_block, "a clean run has no word of the set");
        self.note(at, more);
        // SAFETY: the cells were free when they were lent, and nothing else writes there.
        unsafe {
            match CELLS {
                1 => {}
                2 => {
                    let cells = &self.fill.cells;
                    cells.write_second(at, &rest[0], len - ONE_CELL);
                }
                _ => self.fill.cells.write_rest(at, rest.as_ptr(), halves),
            }
            let line = line.last_chunk().expect("a line is longer");
            self.fill.whole(0, line, len);
        }
        self.fill.first = at + 1 + more;
        self.start += more;
        Some(self.seems_parked() || self.used().is_multiple_of(PAUSE))
    }

    /// Notes that the `more` cells after the cell `at` hold data, and makes sure that the word of
    /// the cell after them, where the tail will be, does not look like a packet.
    #[inline(always)]
    fn note(&mut self, at: usize, more: usize) {
        let data = ((1 << more) - 1) << (at % Dirty::RUN) << 1;
        // This is zero if that cell's bit lies in the set's next word. The producer has cleaned
        // that cell.
        let tail = 1_u64 << more << (at % Dirty::RUN) << 1;
        let is_dirty = self.data & tail != 0;
        self.data = self.data & !tail | data;
        if is_dirty {
            let word = self.fill.cells.word_at(at + 1 + more);
            word.store(0, Ordering::Relaxed);
        }
    }

    /// Whether the consumer had parked the ring a short while ago.
    #[inline(always)]
    fn seems_parked(&self) -> bool {
        // SAFETY: the line is alive as long as the ring, and consists of atomics.
        let line = unsafe { self.line.as_ref() };
        line.parked.load(Ordering::Relaxed) != 0
    }
}

impl Producer {
    /// Lends cells from the tail on, for packets of one cell: a clean run, or a block if cells may
    /// hold data. There may be none.
    pub(in crate::shm) fn lend(&mut self) -> Lent {
        // After a clean cell, all cells are clean: no long packet is sent meanwhile.
        if self.dirty.is_possible(self.tail + 1) {
            return self.lend_block();
        }
        let fill = self.fill();
        let free = fill.first.saturating_add(self.left()).min(self.count());
        self.lent(fill, free.saturating_sub(AHEAD) / PAUSE * PAUSE, None)
    }

    /// Lends cells from the tail on, for packets of any number of cells. There may be none.
    pub(in crate::shm) fn lend_block(&mut self) -> Lent {
        if (self.longest as usize) < LONGEST {
            return Lent::none();
        }
        let fill = self.fill();
        let block_end = (fill.first / Dirty::RUN + 1) * Dirty::RUN;
        let end = fill.first.saturating_add(self.left());
        let end = end.min(block_end).min(self.count());
        if end > fill.first {
            // The tail will be at the cell after the last, which is free, too.
            self.clean(self.tail + (end - fill.first) as u64);
        }
        self.lent(fill, end, Some(self.dirty.word_of(fill.first)))
    }

    fn lent(&self, fill: Fill, end: usize, block: Option<u64>) -> Lent {
        if end <= fill.first {
            return Lent::none();
        }
        Lent {
            fill,
            line: self.line,
            start: fill.first,
            end,
            data: block.unwrap_or(0),
            is_block: block.is_some(),
        }
    }

    /// The number of cells from the tail on that may be written, as far as is known.
    fn left(&self) -> usize {
        let left = self.limit.saturating_sub(self.tail + 1);
        usize::try_from(left).unwrap_or(usize::MAX)
    }

    fn count(&self) -> usize {
        self.cells.count() as usize
    }

    /// Takes lent cells back. Returns the number of packets in them.
    pub(in crate::shm) fn take_back(&mut self, lent: &Lent) -> u64 {
        if !lent.are_lent() {
            return 0;
        }
        let first = self.cells.index(self.tail) as usize;
        let (cells, packets) = (lent.fill.first - first, lent.used());
        self.tail += cells as u64;
        if lent.is_block {
            self.dirty.set_word_of(first, lent.data);
        }
        if cells > packets {
            self.dirty.reach(self.lap_after(self.tail));
        }
        packets as u64
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
