//! The memory of a ring: cells of 64 bytes, one cache line each.
//!
//! The first eight bytes of a packet's first cell are its *word*; the packet's bytes begin after it
//! and continue in the following cells, whose first eight bytes are then plain data. A 24-byte
//! header and 32 bytes of data are exactly one cell (design §4).
//!
//! Invariants: the cells outlive this view of them; indices are below the count. `ring`, the only
//! caller, decides which end may write where, and when.

#[cfg(not(loom))]
use std::hint::select_unpredictable;
use std::ptr::NonNull;

use super::sync::{AtomicU64, Ordering};

/// Bytes of a cell.
pub(super) const CELL: usize = 64;

/// Bytes of a cell's word.
pub(super) const WORD: usize = 8;

/// Bytes of half a cell, which one or two moves copy.
pub(super) const HALF: usize = CELL / 2;

/// The most bytes of a packet that takes one cell.
pub(super) const ONE_CELL: usize = CELL - WORD;

/// The most bytes of a packet that takes two cells.
pub(super) const TWO_CELLS: usize = 2 * CELL - WORD;

/// The number of cells that a packet of `len` bytes takes.
#[inline]
pub(super) const fn cells_of(len: u32) -> u32 {
    const ROUND_UP: u32 = 8 + 63;
    const { assert!(CELL == 64 && ROUND_UP as usize == WORD + CELL - 1) };
    (len + ROUND_UP) / 64
}

/// The number of cells for a packet that needs several. The computation shows the compiler that the
/// result is more than one.
#[inline(always)]
pub(super) const fn cells_of_long(len: u32) -> usize {
    const { assert!(ONE_CELL == 56 && CELL == 64) };
    (len - 57) as usize / 64 + 2
}

#[cfg(not(loom))]
type Body = std::cell::UnsafeCell<[u8; ONE_CELL]>;
#[cfg(loom)]
type Body = loom::cell::UnsafeCell<[u8; ONE_CELL]>;

/// One cell. A cell of zeros is empty.
#[repr(C, align(64))]
#[derive(Debug)]
pub(super) struct Cell {
    word: AtomicU64,
    body: Body,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Cell>() == CELL && align_of::<Cell>() == CELL);

impl Default for Cell {
    fn default() -> Self {
        Self {
            word: AtomicU64::new(0),
            body: Body::new([0; ONE_CELL]),
        }
    }
}

/// A row of cells, whose number is a power of two.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cells {
    first: NonNull<Cell>,
    mask: u32,
    shift: u32,
}

impl Cells {
    /// # Safety
    /// `first` is the first of `count` cells that outlive the value; `count` is a power of two.
    pub(super) unsafe fn new(first: NonNull<Cell>, count: u32) -> Self {
        assert!(count.is_power_of_two(), "positions are masked");
        Self {
            first,
            mask: count - 1,
            shift: count.trailing_zeros(),
        }
    }

    /// The number of cells.
    #[inline]
    pub(super) const fn count(&self) -> u32 {
        self.mask + 1
    }

    /// The cell of a position. Positions never wrap.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the mask has 32 bits")]
    pub(super) const fn index(&self, position: u64) -> u32 {
        position as u32 & self.mask
    }

    /// The number of laps round the ring up to a position.
    #[inline]
    pub(super) const fn lap(&self, position: u64) -> u64 {
        position >> self.shift
    }

    /// The word of a cell.
    #[inline]
    pub(super) fn word(&self, at: u32) -> &AtomicU64 {
        self.word_at(at as usize)
    }

    /// The address of a cell's word, from which the other cells can be reached.
    #[inline(always)]
    pub(super) fn word_ptr(&self, at: u32) -> NonNull<AtomicU64> {
        debug_assert!(at <= self.mask);
        // SAFETY: the index is below the count, and a cell begins with its word.
        unsafe { self.first.add(at as usize).cast() }
    }

    /// The word of a cell whose index the caller has compared with the count.
    #[inline(always)]
    pub(super) fn word_at(&self, at: usize) -> &AtomicU64 {
        &self.cell(at).word
    }

    /// The number of cells from `first` on whose packets, of `step` cells each, all have this word.
    /// At most `most` cells are looked at, a multiple of `step`, before the ring's end.
    #[inline(always)]
    pub(super) fn run_of(&self, first: usize, most: usize, step: usize, word: u64) -> usize {
        debug_assert!(first + most <= self.mask as usize + 1 && most.is_multiple_of(step));
        // SAFETY: these are cells of the ring, which outlive us, or the place after its last.
        unsafe {
            let (first, mut at) = (self.first.add(first), self.first.add(first));
            let end = first.add(most);
            // Acquire: the packets' bytes were written before their words.
            while at != end && at.as_ref().word.load(Ordering::Acquire) == word {
                at = at.add(step);
            }
            at.offset_from_unsigned(first)
        }
    }

    #[inline(always)]
    fn cell(&self, at: usize) -> &Cell {
        debug_assert!(at <= self.mask as usize);
        // SAFETY: the index is below the count, and the cells outlive us. Only atomics and an
        // `UnsafeCell` are changed by other threads and processes.
        unsafe { self.first.add(at).as_ref() }
    }
}

#[cfg(not(loom))]
impl Cells {
    /// The address of the first byte of a packet whose first cell is `at`.
    #[inline]
    pub(super) fn bytes(&self, at: u32) -> NonNull<u8> {
        self.bytes_at(at as usize)
    }

    /// The same address as [`Self::bytes`], for an index that the caller has compared with the
    /// count.
    #[inline(always)]
    pub(super) fn bytes_at(&self, at: usize) -> NonNull<u8> {
        debug_assert!(at <= self.mask as usize);
        // SAFETY: the index is below the count, and a cell is longer than its word.
        unsafe { self.first.add(at).cast::<u8>().add(WORD) }
    }

    /// Writes bytes of the packet whose first cell is `at`, from its byte `offset` on.
    ///
    /// # Safety
    /// `from` is good for reading `len` bytes, which lie outside the ring. The cells of the packet
    /// end within the ring, belong to the caller, and contain the range that is written.
    #[inline(always)]
    pub(super) unsafe fn write(&self, at: usize, offset: usize, from: *const u8, len: usize) {
        // SAFETY: as the caller promises.
        unsafe {
            let to = self.bytes_at(at).as_ptr().add(offset);
            if len <= super::copy::SHORT {
                super::copy::short(from, to, len);
            } else {
                std::ptr::copy_nonoverlapping(from, to, len);
            }
        }
    }

    /// Writes a packet that fills the cell `at`.
    ///
    /// # Safety
    /// The cell belongs to the caller.
    #[inline(always)]
    pub(super) unsafe fn write_whole(&self, at: usize, from: &[u8; ONE_CELL]) {
        // SAFETY: the cell has room for that many bytes after its word.
        unsafe { super::copy::whole(from, self.bytes_at(at).as_ptr()) };
    }

    /// Writes a packet that fills the cell `at` and was stored some time ago.
    ///
    /// # Safety
    /// The cell belongs to the caller.
    #[inline(always)]
    pub(super) unsafe fn write_settled(&self, at: usize, from: &[u8; ONE_CELL]) {
        // SAFETY: the cell has room for that many bytes after its word.
        unsafe { super::copy::settled(from, self.bytes_at(at).as_ptr()) };
    }

    /// As [`Self::write_second`] for a packet of `len` bytes, if it has a second cell. Otherwise,
    /// the same instructions write `nowhere`.
    ///
    /// # Safety
    /// `nowhere` is good for writing. The cell after `at` belongs to the caller if the packet has
    /// two cells.
    #[inline(always)]
    pub(super) unsafe fn write_possible_second(
        &self,
        at: usize,
        from: &[u8; CELL],
        len: usize,
        nowhere: *mut [u8; CELL],
    ) {
        let second = self.first.as_ptr().wrapping_add(at + 1).cast();
        let to = select_unpredictable(len > ONE_CELL, second, nowhere);
        let halves = len.saturating_sub(ONE_CELL).div_ceil(HALF);
        // SAFETY: both places are as long as the line.
        unsafe { super::copy::some_halves(from, halves, to.cast()) };
    }

    /// Writes the first half of the cell after `at`, and its second half if any of the packet's
    /// `len` bytes in this cell lie there.
    ///
    /// # Safety
    /// That cell belongs to the caller.
    #[inline(always)]
    pub(super) unsafe fn write_second(&self, at: usize, from: &[u8; CELL], len: usize) {
        // SAFETY: the cell is as long as the line.
        unsafe { super::copy::halves(from, self.bytes_at(at).as_ptr().add(ONE_CELL), len) };
    }

    /// Writes this number of halves of the cells after the cell `at`.
    ///
    /// # Safety
    /// Those cells belong to the caller, and `from` is the first of as many lines.
    #[inline(always)]
    pub(super) unsafe fn write_rest(&self, at: usize, from: *const [u8; CELL], halves: usize) {
        // SAFETY: the cells are as long as the lines.
        unsafe {
            let to = self.bytes_at(at).as_ptr().add(ONE_CELL);
            super::copy::many_halves(from.cast(), to, halves);
        }
    }

    /// Writes the last bytes of the cell `at`, so that this core gets its line.
    ///
    /// # Safety
    /// The cell belongs to the caller.
    #[inline(always)]
    pub(super) unsafe fn claim(&self, at: usize) {
        // SAFETY: a cell is that long.
        unsafe {
            let last = self.bytes_at(at).as_ptr().add(ONE_CELL - WORD);
            last.cast::<u64>().write(0);
        }
    }

    /// Writes the header of a packet whose first cell is `at`: half of the cell, without its word.
    ///
    /// # Safety
    /// The cell belongs to the caller.
    #[inline(always)]
    pub(super) unsafe fn write_header(&self, at: usize, from: &[u8; HALF]) {
        // SAFETY: the cell has room for that many bytes after its word.
        unsafe { super::copy::header(from, self.bytes_at(at).as_ptr()) };
    }

    /// Writes the second half of the cell `at`, and as much of the cells after it as a message of
    /// `len` bytes takes.
    ///
    /// # Safety
    /// Those cells belong to the caller, and `from` is good for reading `len` bytes, more than four
    /// halves.
    #[inline(always)]
    pub(super) unsafe fn write_message(&self, at: usize, from: *const u8, len: usize) {
        // SAFETY: as the caller promises.
        unsafe { super::copy::message(from, self.bytes_at(at).as_ptr().add(HALF - WORD), len) };
    }

    /// Prefetches a cell for writing.
    #[inline]
    pub(super) fn prefetch_write(&self, at: u32) {
        let cell = std::ptr::from_ref(self.cell(at as usize));
        // Miri knows no machine code.
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: a prefetch reads nothing, and every x86-64 since 2013 takes the instruction.
        unsafe {
            std::arch::asm!("prefetchw [{}]", in(reg) cell, options(nostack, preserves_flags));
        }
        #[cfg(any(not(target_arch = "x86_64"), miri))]
        let _ = cell;
    }
}

#[cfg(loom)]
mod modelled;
