//! Copies of a few bytes without a call. For the lengths of small packets, a call of `memcpy` costs
//! as much as the rest of the packet's work. Called by `cells`.
//!
//! A packet of a lane is copied in whole lines or halves, by narrow loads and wide stores. Its
//! bytes were stored as words a moment ago, and a load that is wider than such a store must wait
//! until the store has left the store buffer. The stores go to a line that another core holds;
//! there, fewer stores are faster.

use std::hint::select_unpredictable;
use std::ptr;

use dunlin_msgbuf::{PAIR, Pair};

use super::cells::{CELL, HALF, ONE_CELL};

/// Longest copy that [`short`] makes.
pub(super) const SHORT: usize = 64;

/// Copies `len` bytes, at most [`SHORT`], with two overlapping moves.
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

/// Bytes of a word.
const WORD: usize = size_of::<u64>();

/// Copies a packet that fills a cell.
///
/// # Safety
/// `to` is good for writing as many bytes as `from` has, and lies outside of `from`.
#[inline(always)]
pub(super) unsafe fn whole(from: &[u8; ONE_CELL], to: *mut u8) {
    const { assert!(ONE_CELL == WORD + 3 * PAIR) };
    let first = *from.first_chunk::<WORD>().expect("it is longer");
    // The header's words were stored one by one, the message's words in pairs.
    let pairs = [
        (5 * WORD, Pair::load_stored::<{ 5 * WORD }, _>(from)),
        (3 * WORD, Pair::load_stored::<{ 3 * WORD }, _>(from)),
        (WORD, Pair::load::<WORD, _>(from)),
    ];
    // SAFETY: a word and three pairs are written, at any alignment.
    unsafe {
        for (place, pair) in pairs {
            to.add(place).cast::<Pair>().write_unaligned(pair);
        }
        to.cast::<[u8; WORD]>().write(first);
    }
}

/// Copies a packet that fills a cell, as [`whole`] does, with wider loads: for a packet that was
/// stored some time ago. No store crosses a half of the cell's line: with two stores of half a line
/// that overlap, packets between two cores take a tenth longer.
///
/// # Safety
/// As there.
#[inline(always)]
pub(super) unsafe fn settled(from: &[u8; ONE_CELL], to: *mut u8) {
    if !WIDE {
        // SAFETY: as the caller promises.
        return unsafe { whole(from, to) };
    }
    let first = *from.first_chunk::<WORD>().expect("it is longer");
    let pair = Pair::load_stored::<WORD, _>(from);
    // SAFETY: a word, a pair and the packet's last half of a line are written, at any alignment.
    unsafe {
        half(from.as_ptr(), to, ONE_CELL - HALF);
        to.add(WORD).cast::<Pair>().write_unaligned(pair);
        to.cast::<[u8; WORD]>().write(first);
    }
}

/// Copies this number of halves of a line, with zeros after them. No jump depends on the number.
///
/// # Safety
/// `to` is good for writing a line, outside of `from`.
#[inline(always)]
pub(super) unsafe fn some_halves(from: &[u8; CELL], halves: usize, to: *mut u8) {
    const NOTHING: [u8; HALF] = [0; HALF];
    let (first, second) = from.split_first_chunk::<HALF>().expect("two halves");
    let second = second.first_chunk().expect("two halves");
    // Halves that are not wanted are not read: a line that begins with a header was stored word by
    // word, and pairs of these words would have to wait until they have left the store buffer.
    let first = select_unpredictable(halves > 0, first, &NOTHING);
    let second = select_unpredictable(halves > 1, second, &NOTHING);
    // SAFETY: four pairs are a line, and need no alignment.
    unsafe {
        for (place, half) in [(HALF, second), (0, first)] {
            let pairs = [
                Pair::load_stored::<0, _>(half),
                Pair::load_stored::<PAIR, _>(half),
            ];
            to.add(place).cast::<[Pair; 2]>().write_unaligned(pairs);
        }
    }
}

/// Copies the first half of a line, and the other half if any of the `len` bytes are there.
///
/// # Safety
/// `to` is good for writing a line, outside of `from`.
#[inline(always)]
pub(super) unsafe fn halves(from: &[u8; CELL], to: *mut u8, len: usize) {
    const { assert!(HALF == 2 * PAIR) };
    // SAFETY: four pairs are a line, and need no alignment.
    unsafe {
        if len > HALF {
            let pairs = [
                Pair::load::<HALF, _>(from),
                Pair::load::<{ HALF + PAIR }, _>(from),
            ];
            to.add(HALF).cast::<[Pair; 2]>().write_unaligned(pairs);
        }
        let pairs = [Pair::load::<0, _>(from), Pair::load::<PAIR, _>(from)];
        to.cast::<[Pair; 2]>().write_unaligned(pairs);
    }
}

/// Whether the processor that the program is built for can move half a line at once. Otherwise
/// `memcpy`, which looks for wider moves at run time, takes fewer stores.
const WIDE: bool = cfg!(any(target_feature = "avx", not(target_arch = "x86_64")));

/// Copies half of a line, except for its first word.
///
/// # Safety
/// `to` is good for writing that many bytes, outside of `from`.
#[inline(always)]
pub(super) unsafe fn header(from: &[u8; HALF], to: *mut u8) {
    const { assert!(HALF == 2 * WORD + PAIR) };
    let first = *from[WORD..].first_chunk::<WORD>().expect("it is longer");
    let pair = Pair::load::<{ 2 * WORD }, _>(from);
    // SAFETY: a word and a pair are written, at any alignment.
    unsafe {
        to.add(WORD).cast::<Pair>().write_unaligned(pair);
        to.cast::<[u8; WORD]>().write(first);
    }
}

/// Copies a message of more than four halves of lines, from its end on. The last four halves end
/// with the message, and may overlap those before, so few branches serve all lengths.
///
/// # Safety
/// `from` is good for reading and `to` for writing `len` bytes, and they do not overlap.
#[inline(always)]
pub(super) unsafe fn message(from: *const u8, to: *mut u8, len: usize) {
    const FOUR: usize = 4 * HALF;
    debug_assert!(len >= FOUR);
    // SAFETY: as the caller promises; no move begins before the first byte or ends after the last.
    unsafe {
        if !WIDE {
            return ptr::copy_nonoverlapping(from, to, len);
        }
        four(from, to, len - FOUR);
        let mut at = len / (2 * FOUR) * (2 * FOUR);
        if len & FOUR != 0 {
            four(from, to, at);
        }
        // The halves are copied one by one: a compiler would turn a loop over all of them into a
        // call.
        while at != 0 {
            at -= 2 * FOUR;
            four(from, to, at);
            four(from, to, at + FOUR);
        }
    }
}

/// Copies lines up to their last half, with a move for each half: in fewer instructions than a call
/// of `memcpy` takes, and no move is wider than the stores that filled a lane's longer packets.
///
/// # Safety
/// `from` is good for reading and `to` for writing this number of halves of lines, and they do not
/// overlap.
#[inline(always)]
pub(super) unsafe fn many_halves(from: *const u8, to: *mut u8, halves: usize) {
    if !WIDE {
        // SAFETY: as the caller promises.
        return unsafe { by_calls(from, to, halves) };
    }
    let (mut at, eights) = (0, halves / 8 * (8 * HALF));
    // SAFETY: as the caller promises; each half is copied once.
    unsafe {
        // The halves are copied one by one, because a compiler turns a loop over all of them into a
        // call.
        while at < eights {
            four(from, to, at);
            four(from, to, at + 4 * HALF);
            at += 8 * HALF;
        }
        if halves & 4 != 0 {
            four(from, to, at);
            at += 4 * HALF;
        }
        if halves & 2 != 0 {
            half(from, to, at);
            half(from, to, at + HALF);
            at += 2 * HALF;
        }
        if halves & 1 != 0 {
            half(from, to, at);
        }
    }
}

/// Copies halves of lines by calls of `memcpy`, at most a KiB each: for several KiB, `memcpy` uses
/// an instruction that starts slowly.
///
/// # Safety
/// As for [`many_halves`].
#[inline(always)]
unsafe fn by_calls(from: *const u8, to: *mut u8, halves: usize) {
    const MOST: usize = 1024;
    let (mut at, end) = (0, halves * HALF);
    while at < end {
        let len = MOST.min(end - at);
        // SAFETY: as the caller promises.
        unsafe { ptr::copy_nonoverlapping(from.add(at), to.add(at), len) };
        at += len;
    }
}

/// # Safety
/// `from` is good for reading and `to` for writing four halves of lines at this place.
#[inline(always)]
unsafe fn four(from: *const u8, to: *mut u8, at: usize) {
    // SAFETY: as the caller promises.
    unsafe {
        half(from, to, at);
        half(from, to, at + HALF);
        half(from, to, at + 2 * HALF);
        half(from, to, at + 3 * HALF);
    }
}

/// # Safety
/// `from` is good for reading and `to` for writing half of a line at this place.
#[inline(always)]
unsafe fn half(from: *const u8, to: *mut u8, at: usize) {
    // SAFETY: as the caller promises.
    unsafe { ptr::copy_nonoverlapping(from.add(at), to.add(at), HALF) };
}

#[cfg(test)]
mod tests;
