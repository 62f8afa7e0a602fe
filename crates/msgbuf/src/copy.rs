//! Copies short messages without a function call, and without waiting for the stores that have just
//! written them. Called by `buf`.
//!
//! The user may have written the message a moment ago, so it is read in words (`pair` explains
//! why). Where that needs no loop, two words are stored at a time.

use std::hint::cold_path;

use crate::pair::{PAIR, Pair, word};

/// Bytes of a chunk: two pairs. Messages are copied chunk by chunk.
const CHUNK: usize = 2 * PAIR;

/// Copies a message that was stored in whole chunks, or some time ago. No load spans two chunks.
#[inline(always)]
pub(crate) fn settled(to: &mut [u8], from: &[u8]) {
    match from.len() {
        CHUNK => all::<CHUNK>(to, from),
        ..CHUNK => settled_shorter(to, from),
        33..=64 => {
            all::<CHUNK>(to, from);
            settled_shorter(&mut to[CHUNK..], &from[CHUNK..]);
        }
        _ => {
            cold_path();
            settled_longer(to, from);
        }
    }
}

/// Copies a message of several chunks without calling `memcpy`, which would take one and a half
/// times as many instructions.
#[inline(never)]
fn settled_longer(to: &mut [u8], from: &[u8]) {
    debug_assert_eq!(to.len(), from.len());
    // Tells the compiler that the lengths are equal, so that nothing here can panic: for a panic,
    // the caller would keep values in memory.
    let Some(to) = to.get_mut(..from.len()) else {
        return;
    };
    let ((places, rest), (chunks, from)) = (to.as_chunks_mut(), from.as_chunks());
    many(places, chunks);
    few_bytes(rest, from);
}

/// Whether the target processor moves a chunk with one instruction. Otherwise `memcpy`, which
/// checks at run time for wider moves, takes fewer stores.
const WIDE: bool = cfg!(any(target_feature = "avx", not(target_arch = "x86_64")));

/// Copies two or more chunks, each with one move. Both slices have the same length. The last chunks
/// overlap earlier ones, so a few branches serve all lengths.
#[inline(always)]
fn many(to: &mut [[u8; CHUNK]], from: &[[u8; CHUNK]]) {
    if !WIDE {
        if to.len() == from.len() {
            to.copy_from_slice(from);
        }
        return;
    }
    match from.len() {
        ..4 => ends::<2>(to, from),
        4..=8 => ends::<4>(to, from),
        _ => {
            if let ([to @ .., _], [from @ .., _]) = (&mut *to, from) {
                let ((eights, _), (others, _)) = (to.as_chunks_mut(), from.as_chunks());
                for (to, from) in eights.iter_mut().zip(others) {
                    eight(to, from);
                }
            }
            if let (Some(to), Some(from)) = (to.last_chunk_mut(), from.last_chunk()) {
                eight(to, from);
            }
        }
    }
}

/// Copies the first `N` chunks and the last `N`, where `N` is 2 or 4.
#[inline(always)]
fn ends<const N: usize>(to: &mut [[u8; CHUNK]], from: &[[u8; CHUNK]]) {
    if let (Some(to), Some(from)) = (to.first_chunk_mut::<N>(), from.first_chunk::<N>()) {
        *to = *from;
    }
    if let (Some(to), Some(from)) = (to.last_chunk_mut::<N>(), from.last_chunk::<N>()) {
        *to = *from;
    }
}

/// Copies eight chunks, one by one: a compiler would turn a loop over all chunks into a call of
/// `memcpy`, and would unroll a loop over a few.
#[inline(always)]
fn eight([a, b, c, d, e, f, g, h]: &mut [[u8; CHUNK]; 8], from: &[[u8; CHUNK]; 8]) {
    let [i, j, k, l, m, n, o, p] = from;
    (*a, *b) = (*i, *j);
    (*c, *d) = (*k, *l);
    (*e, *f) = (*m, *n);
    (*g, *h) = (*o, *p);
}

/// Copies less than a chunk. No load spans more than these bytes.
#[inline(always)]
fn few_bytes(to: &mut [u8], from: &[u8]) {
    match from.len() {
        16.. => both_ends::<16>(to, from),
        8.. => both_ends::<8>(to, from),
        4.. => both_ends::<4>(to, from),
        2.. => both_ends::<2>(to, from),
        _ => both_ends::<1>(to, from),
    }
}

/// Copies at most a chunk.
#[inline(always)]
fn settled_shorter(to: &mut [u8], from: &[u8]) {
    match from.len() {
        16..=CHUNK => both_ends::<16>(to, from),
        8..16 => both_ends::<8>(to, from),
        _ => settled_slowly(to, from),
    }
}

/// Keeps a function call in a cold branch: elsewhere, the call would make the compiler keep the
/// caller's values in memory.
#[inline(always)]
fn settled_slowly(to: &mut [u8], from: &[u8]) {
    cold_path();
    to.copy_from_slice(from);
}

/// Copies a message that may have been written a moment ago, in words, and writes zeros after it.
/// Handles only messages of exactly one chunk or one word, which take few instructions; returns
/// false for other lengths.
#[inline(always)]
pub fn fresh_usual(to: &mut [u8; CHUNK], from: &[u8]) -> bool {
    if let Ok(from) = from.try_into() {
        chunk(to, from);
        return true;
    }
    if let Ok(from) = from.try_into() {
        // This branch counts as cold, so that the test for a chunk comes first.
        cold_path();
        store(to, [word(from), 0, 0, 0]);
        return true;
    }
    false
}

/// Like [`fresh_usual`], for a message of up to a chunk; false if it is longer.
#[inline(always)]
pub(crate) fn fresh(to: &mut [u8; CHUNK], from: &[u8]) -> bool {
    if fresh_usual(to, from) {
        return true;
    }
    if from.len() > CHUNK {
        return false;
    }
    fresh_shorter(to, from);
    true
}

/// Like [`fresh_usual`], for a message longer than one chunk and at most two chunks long; false for
/// other lengths.
#[inline(always)]
pub fn fresh_two(to: &mut [u8; 2 * CHUNK], from: &[u8]) -> bool {
    const MORE: usize = CHUNK + 1;
    if !(MORE..=2 * CHUNK).contains(&from.len()) {
        return false;
    }
    to[CHUNK..].fill(0);
    // The message's last chunk overlaps its first one, so it needs no branch for any length. It is
    // stored first, so that a later load from the first chunk depends on only one store, and does
    // not wait.
    if let (Some(to), Some(from)) = (to[..from.len()].last_chunk_mut(), from.last_chunk()) {
        chunk(to, from);
    }
    if let (Some(to), Some(from)) = (to.first_chunk_mut(), from.first_chunk()) {
        chunk(to, from);
    }
    true
}

/// Longest message that is read in words.
const IN_WORDS: usize = 3 * CHUNK;

/// Copies a message of any length to the front of these chunks, and writes zeros after it, at least
/// up to the end of its last chunk. Only a message of up to 96 bytes is read in words, because the
/// user may have just written it; most bytes of a longer one were written some time ago. If there
/// are too few chunks, this returns false and writes nothing. It never panics: for a panic, the
/// caller would keep values in memory.
#[inline(always)]
pub fn fresh_chunks(to: &mut [[u8; CHUNK]], from: &[u8]) -> bool {
    if from.len() > size_of_val(to) {
        return false;
    }
    let (whole, rest) = from.as_chunks();
    if from.len() <= IN_WORDS {
        cold_path();
        for (place, from) in to.iter_mut().zip(whole) {
            chunk(place, from);
        }
        let is_whole = rest.is_empty() && !whole.is_empty();
        if let (Some(place), false) = (to.get_mut(whole.len()), is_whole) {
            fresh_rest(place, rest);
        }
        return true;
    }
    if let Some(after) = to.get_mut(whole.len()) {
        *after = [0; CHUNK];
    }
    let Some(to) = to.as_flattened_mut().get_mut(..from.len()) else {
        return false;
    };
    match from.len() {
        ..=FOUR if WIDE => both_ends::<{ FOUR / 2 }>(to, from),
        ..=EIGHT if WIDE => both_ends::<FOUR>(to, from),
        _ => {
            let ((places, _), (whole, _)) = (to.as_chunks_mut(), from.as_chunks());
            many(places, whole);
            // The message's last chunk overlaps the one before, and needs no branch for any length.
            if let (Some(to), Some(from)) = (to.last_chunk_mut::<CHUNK>(), from.last_chunk()) {
                *to = *from;
            }
        }
    }
    true
}

/// Bytes of four chunks, and of eight.
const FOUR: usize = 4 * CHUNK;
const EIGHT: usize = 8 * CHUNK;

/// Copies less than a chunk, and writes zeros after it. Lengths of whole words are fastest.
#[inline(always)]
fn fresh_rest(to: &mut [u8; CHUNK], from: &[u8]) {
    match from.as_chunks() {
        ([a, b, c], []) => store(to, [word(a), word(b), word(c), 0]),
        ([a, b], []) => store(to, [word(a), word(b), 0, 0]),
        ([a], []) => store(to, [word(a), 0, 0, 0]),
        _ => fresh_shorter(to, from),
    }
}

/// Copies less than a chunk, and writes zeros after it.
#[inline(never)]
fn fresh_shorter(to: &mut [u8; CHUNK], from: &[u8]) {
    let (whole, rest) = from.as_chunks();
    let mut words = [0; CHUNK / 8];
    for (place, from) in words.iter_mut().zip(whole) {
        *place = word(from);
    }
    if let (Some(place), false) = (words.get_mut(whole.len()), rest.is_empty()) {
        *place = match from.last_chunk() {
            // The upper bytes of this word are the rest.
            Some(last) => (u64::from_le(word(last)) >> (64 - 8 * rest.len())).to_le(),
            None => few(rest),
        };
    }
    store(to, words);
}

/// Up to seven bytes as a word.
fn few(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    for (place, byte) in word.iter_mut().zip(bytes) {
        *place = *byte;
    }
    u64::from_ne_bytes(word)
}

/// Writes the words of a chunk, with a store for each pair.
#[inline(always)]
fn store(to: &mut [u8; CHUNK], words: [u64; CHUNK / 8]) {
    let (places, _) = to.as_chunks_mut();
    let (pairs, _) = words.as_chunks();
    for (place, [lower, upper]) in places.iter_mut().zip(pairs) {
        Pair::of(*lower, *upper).store(place);
    }
}

/// Copies a chunk, with a load for each word and a store for each pair.
#[inline(always)]
fn chunk(to: &mut [u8; CHUNK], from: &[u8; CHUNK]) {
    let pairs = [Pair::load::<0, _>(from), Pair::load::<PAIR, _>(from)];
    let (places, _) = to.as_chunks_mut();
    for (place, pair) in places.iter_mut().zip(pairs) {
        pair.store(place);
    }
}

/// Copies the first `N` bytes, if both slices have them.
#[inline(always)]
fn all<const N: usize>(to: &mut [u8], from: &[u8]) {
    if let (Some(to), Some(from)) = (to.first_chunk_mut::<N>(), from.first_chunk::<N>()) {
        *to = *from;
    }
}

/// Copies the first and the last `N` bytes of slices of equal length. The two parts cover the slice
/// if it has `N` to 2 × `N` bytes.
#[inline(always)]
fn both_ends<const N: usize>(to: &mut [u8], from: &[u8]) {
    all::<N>(to, from);
    if let (Some(to), Some(from)) = (to.last_chunk_mut::<N>(), from.last_chunk::<N>()) {
        *to = *from;
    }
}

#[cfg(test)]
mod tests;
