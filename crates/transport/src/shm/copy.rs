//! Copies of a few bytes without a call: the lengths are those of a small packet, and `memcpy`
//! costs as much as the packet itself. Called by `cells`.
//!
//! A packet that fills its cell is copied by narrow loads and wide stores. Its bytes were stored as
//! words a moment ago, and a load that is wider than such a store waits until that has left the
//! store buffer; of stores to a line that the other core has, the fewest are best.

use std::ptr;

use super::cells::ONE_CELL;

/// Longest copy that [`short`] makes.
pub(super) const SHORT: usize = 64;

/// Copies `len` bytes, at most [`SHORT`]: two moves that overlap, whatever the length.
///
/// # Safety
/// `from` is good for reading and `to` for writing `len` bytes, and they do not overlap.
#[inline(always)]
pub(super) unsafe fn short(from: *const u8, to: *mut u8, len: usize) {
    debug_assert!(len <= SHORT);
    // SAFETY: each arm moves the first and the last bytes of a range that is at least as long as
    // its type, and at most twice as long, so that the moves stay inside and leave no gap.
    unsafe {
        match len {
            32.. => both_ends::<[u8; 32]>(from, to, len),
            16..32 => both_ends::<[u8; 16]>(from, to, len),
            8..16 => both_ends::<[u8; 8]>(from, to, len),
            4..8 => both_ends::<[u8; 4]>(from, to, len),
            2..4 => both_ends::<[u8; 2]>(from, to, len),
            1 => both_ends::<[u8; 1]>(from, to, len),
            0 => {}
        }
    }
}

/// # Safety
/// As for [`short`], and `len` is from one to two times the size of `T`.
#[inline(always)]
unsafe fn both_ends<T>(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller promises that the range is at least as long as `T`.
    unsafe {
        let last = len - size_of::<T>();
        ptr::copy_nonoverlapping(from, to, size_of::<T>());
        ptr::copy_nonoverlapping(from.add(last), to.add(last), size_of::<T>());
    }
}

/// A word at any address.
#[derive(Clone, Copy)]
#[repr(C, packed)]
struct Unaligned(u64);

/// Bytes of a word.
const WORD: usize = size_of::<Unaligned>();

/// Copies a packet that fills a cell.
///
/// # Safety
/// `to` is good for writing as many bytes, outside of `from`.
#[inline(always)]
pub(super) unsafe fn whole(from: &[u8; ONE_CELL], to: *mut u8) {
    const { assert!(ONE_CELL == 7 * WORD) };
    let from = from.as_ptr().cast::<Unaligned>();
    // SAFETY: seven words are read and written, at any alignment.
    unsafe {
        for first in [5, 3, 1] {
            pair(
                load(from.add(first)),
                load(from.add(first + 1)),
                to.add(first * WORD),
            );
        }
        to.cast::<Unaligned>().write(Unaligned(load(from)));
    }
}

/// Loads a word; volatile, so that the compiler does not make one wide load of several.
///
/// # Safety
/// `from` is good for reading a word.
#[inline(always)]
unsafe fn load(from: *const Unaligned) -> u64 {
    // SAFETY: as the caller promises; the type needs no alignment.
    unsafe { from.read_volatile() }.0
}

/// Stores two words at once.
///
/// # Safety
/// `to` is good for writing two words.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn pair(low: u64, high: u64, to: *mut u8) {
    use std::arch::x86_64::{_mm_set_epi64x, _mm_storeu_si128};
    // SAFETY: every x86-64 has the instructions. The caller promises the place, and the store needs
    // no alignment.
    unsafe {
        let both = _mm_set_epi64x(high.cast_signed(), low.cast_signed());
        _mm_storeu_si128(to.cast(), both);
    }
}

/// Stores two words.
///
/// # Safety
/// `to` is good for writing two words.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
unsafe fn pair(low: u64, high: u64, to: *mut u8) {
    // SAFETY: as the caller promises; the type needs no alignment.
    unsafe {
        to.cast::<[Unaligned; 2]>()
            .write([Unaligned(low), Unaligned(high)])
    };
}

#[cfg(test)]
mod tests;
