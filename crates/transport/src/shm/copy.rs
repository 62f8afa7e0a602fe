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
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[derive(Clone, Copy)]
#[repr(C, packed)]
struct Unaligned(u64);

/// Bytes of a word.
const WORD: usize = size_of::<u64>();

/// Copies a packet that fills a cell.
///
/// # Safety
/// `to` is good for writing as many bytes, outside of `from`.
#[inline(always)]
pub(super) unsafe fn whole(from: &[u8; ONE_CELL], to: *mut u8) {
    const { assert!(ONE_CELL == 7 * WORD) };
    let (first, pairs) = load(from);
    // SAFETY: seven words are written, at any alignment.
    unsafe {
        for (place, pair) in [5, 3, 1].into_iter().zip(pairs) {
            to.add(place * WORD).cast::<Pair>().write_unaligned(pair);
        }
        to.cast::<u64>().write_unaligned(first);
    }
}

/// Two words that are stored together.
#[cfg(target_arch = "x86_64")]
type Pair = std::arch::x86_64::__m128i;
#[cfg(not(target_arch = "x86_64"))]
type Pair = [u64; 2];

/// Loads the first word of a packet, and the others in pairs, the last pair first: with a load for
/// each word, of which the compiler would make wider ones.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
fn load(from: &[u8; ONE_CELL]) -> (u64, [Pair; 3]) {
    let (first, last, middle, second): (u64, Pair, Pair, Pair);
    // SAFETY: the instructions read the seven words of `from`, at any alignment, and are there: the
    // code is compiled for processors that have them.
    #[cfg(target_feature = "avx")]
    unsafe {
        std::arch::asm!(
            "vmovq {last}, qword ptr [{from} + 40]",
            "vmovhps {last}, {last}, qword ptr [{from} + 48]",
            "vmovq {middle}, qword ptr [{from} + 24]",
            "vmovhps {middle}, {middle}, qword ptr [{from} + 32]",
            "vmovq {second}, qword ptr [{from} + 8]",
            "vmovhps {second}, {second}, qword ptr [{from} + 16]",
            "mov {first}, qword ptr [{from}]",
            from = in(reg) from.as_ptr(),
            first = out(reg) first,
            last = out(xmm_reg) last,
            middle = out(xmm_reg) middle,
            second = out(xmm_reg) second,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    // SAFETY: as above; every x86-64 has these.
    #[cfg(not(target_feature = "avx"))]
    unsafe {
        std::arch::asm!(
            "movq {last}, qword ptr [{from} + 40]",
            "movhps {last}, qword ptr [{from} + 48]",
            "movq {middle}, qword ptr [{from} + 24]",
            "movhps {middle}, qword ptr [{from} + 32]",
            "movq {second}, qword ptr [{from} + 8]",
            "movhps {second}, qword ptr [{from} + 16]",
            "mov {first}, qword ptr [{from}]",
            from = in(reg) from.as_ptr(),
            first = out(reg) first,
            last = out(xmm_reg) last,
            middle = out(xmm_reg) middle,
            second = out(xmm_reg) second,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    (first, [last, middle, second])
}

/// The same without instructions of our choice.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline(always)]
fn load(from: &[u8; ONE_CELL]) -> (u64, [Pair; 3]) {
    let from = from.as_ptr().cast::<Unaligned>();
    // SAFETY: the place is one of the seven words, which need no alignment. The load is volatile,
    // so that the compiler does not make one wide load of several.
    let word = |place| unsafe { from.add(place).read_volatile() }.0;
    (
        word(0),
        [5, 3, 1].map(|place| both(word(place), word(place + 1))),
    )
}

/// A pair of these words.
#[cfg(all(target_arch = "x86_64", miri))]
#[inline(always)]
fn both(low: u64, high: u64) -> Pair {
    // SAFETY: every x86-64 has the instruction.
    unsafe { std::arch::x86_64::_mm_set_epi64x(high.cast_signed(), low.cast_signed()) }
}

/// A pair of these words.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn both(low: u64, high: u64) -> Pair {
    [low, high]
}

#[cfg(test)]
mod tests;
