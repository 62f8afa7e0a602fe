//! The cells that hold data instead of a word: all cells of a packet except its first. The producer
//! must zero the word of such a cell before the tail reaches it, because the data may look like a
//! packet.
//!
//! Invariants: a cell whose bit is not set holds a word of ours, or zero. From the position `until`
//! on, the tail meets no cell whose bit is set: each such cell has been written again, or skipped
//! at the end of the ring, which counts as written. So from one lap after the last long packet on,
//! a packet of one cell costs only one comparison here.
//!
//! Called by `ring`, `run`, `lent` and `messages`.

use super::super::staged::MOST_LINES;

/// Bits of a word of the set.
const BITS: u32 = u64::BITS;

/// The most cells of a packet in a row. Rows come from lanes.
const CELLS: usize = MOST_LINES;

/// At index `n`, the pattern of consecutive packets of `n` cells each: one bit per cell, which is
/// set if the cell holds data. The pattern is long enough for a word of bits and one more packet.
const PATTERNS: [u128; CELLS + 1] = {
    let mut patterns = [0; CELLS + 1];
    let mut cells = 1;
    while cells <= CELLS {
        let mut at = 0;
        while at < u64::BITS as usize + CELLS {
            if at % cells != 0 {
                patterns[cells] |= 1 << at;
            }
            at += 1;
        }
        cells += 1;
    }
    patterns
};

/// The cells of a ring that hold data instead of a word.
#[derive(Debug)]
pub(super) struct Dirty {
    bits: Box<[u64]>,
    until: u64,
}

impl Dirty {
    /// The most cells that [`Self::on_run`] takes at once.
    pub(super) const RUN: usize = BITS as usize;

    /// A set for this number of cells, all clean.
    pub(super) fn new(cells: u32) -> Self {
        Self {
            bits: vec![0; cells.div_ceil(BITS) as usize].into(),
            until: 0,
        }
    }

    /// Notes that `count` cells from `first` on, at least one, were written. Those whose bits are
    /// set in `data`, from the lowest on, hold data. `until` is one lap after the tail.
    #[inline(always)]
    pub(super) fn on_run(&mut self, first: u32, count: usize, data: u64, until: u64) {
        if data == 0 {
            return;
        }
        debug_assert!((1..=Self::RUN).contains(&count), "each cell has a bit");
        let written = u64::MAX >> (Self::RUN - count);
        let (at, shift) = ((first / BITS) as usize, first % BITS);
        self.bits[at] = self.bits[at] & !(written << shift) | data << shift;
        // The other cells have their bits in the set's next word. If there are none, the shift is
        // by all bits.
        if let Some(next) = self.bits.get_mut(at + 1)
            && let (Some(written), Some(data)) = (
                written.checked_shr(BITS - shift),
                data.checked_shr(BITS - shift),
            )
        {
            *next = *next & !written | data;
        }
        self.until = until;
    }

    /// Notes that packets of `cells` cells each were written to `count` cells from `first` on,
    /// which lie before the ring's end. Otherwise like [`Self::on_run`].
    #[inline(always)]
    pub(super) fn on_row(&mut self, first: u32, count: usize, cells: usize, until: u64) {
        let (at, shift) = ((first / BITS) as usize, first % BITS);
        let (run, pattern) = (count.min((BITS - shift) as usize), PATTERNS[cells]);
        let written = u64::MAX >> (Self::RUN - run) << shift;
        #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
        let bits_from = |phase: usize| (pattern >> phase) as u64;
        let bits = &mut self.bits[at];
        *bits = *bits & !written | bits_from(0) << shift & written;
        let (mut left, mut phase, step) = (count - run, run % cells, Self::RUN % cells);
        for bits in &mut self.bits[at + 1..] {
            if left == 0 {
                break;
            }
            let written = u64::MAX >> Self::RUN.saturating_sub(left);
            *bits = *bits & !written | bits_from(phase) & written;
            left = left.saturating_sub(Self::RUN);
            phase += step;
            if phase >= cells {
                phase -= cells;
            }
        }
        self.until = until;
    }

    /// Notes that a packet was written to `count` cells from `first` on. Otherwise like
    /// [`Self::on_run`].
    #[inline(always)]
    pub(super) fn on_packet(&mut self, first: u32, count: u32, until: u64) {
        let (mut first, mut left) = (first, count as usize);
        // The first cell holds a word.
        let mut data = !1;
        while left > Self::RUN {
            self.on_run(first, Self::RUN, data, until);
            (first, left, data) = (first + BITS, left - Self::RUN, u64::MAX);
        }
        self.on_run(first, left, data & u64::MAX >> (Self::RUN - left), until);
    }

    /// Notes that `count` cells from `at` on, at least one, hold data, and that the tail was at the
    /// cell before them.
    #[inline(always)]
    pub(super) fn on_lone(&mut self, at: usize, count: usize, until: u64) {
        debug_assert!((1..=Self::RUN).contains(&count), "each cell has a bit");
        let data = u64::MAX >> (Self::RUN - count);
        let (place, shift) = (at / Self::RUN, at % Self::RUN);
        self.bits[place] |= data << shift;
        // These are the bits in the set's next word. There are two shifts, because one by all bits
        // would overflow.
        let over = data >> 1 >> (Self::RUN - 1 - shift);
        if count > 1 && over != 0 {
            self.bits[place + 1] |= over;
        }
        self.until = until;
    }

    /// Notes that the cell `at` holds data, and clears the mark of the cell `after` it (the next
    /// cell, or the ring's first), where the tail is now. True if that cell was marked; then the
    /// caller must clean it now.
    #[inline(always)]
    pub(super) fn on_second(&mut self, at: usize, after: u32, until: u64) -> bool {
        self.until = until;
        let data = 1_u64 << (at % Self::RUN);
        let bits = &mut self.bits[at / Self::RUN];
        // This is zero if the next cell's bit lies in the set's next word.
        let next = data << 1;
        if next == 0 || after == 0 {
            *bits |= data;
            return self.take(after);
        }
        let dirty = *bits & next != 0;
        *bits = *bits & !next | data;
        dirty
    }

    /// The word of the set that has the bit of the cell `at`.
    pub(super) fn word_of(&self, at: usize) -> u64 {
        self.bits[at / Self::RUN]
    }

    /// Replaces that word.
    pub(super) fn set_word_of(&mut self, at: usize, word: u64) {
        self.bits[at / Self::RUN] = word;
    }

    /// Notes that the tail may meet cells that hold data up to the position `until`, which is one
    /// lap after the tail.
    pub(super) const fn reach(&mut self, until: u64) {
        self.until = until;
    }

    /// False if the cell at this position of the tail is certainly clean.
    #[inline(always)]
    pub(super) const fn is_possible(&self, position: u64) -> bool {
        position < self.until
    }

    /// Clears the mark of the cell `at`. True if it was set; the caller must clean the cell now.
    #[inline]
    pub(super) fn take(&mut self, at: u32) -> bool {
        let (bits, bit) = (&mut self.bits[(at / BITS) as usize], 1 << (at % BITS));
        let dirty = *bits & bit != 0;
        *bits &= !bit;
        dirty
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
