//! Copies short messages without a function call, and without waiting for the stores that have just
//! written them. Called by `buf`.
//!
//! The user may have written the message a moment ago, so it is read in words (`pair` explains
//! why). The words are stored in pairs where that takes no loop.

use std::hint::cold_path;

use crate::pair::{PAIR, Pair, word};

/// Bytes of a chunk: two pairs. Messages are copied chunk by chunk.
pub(crate) const CHUNK: usize = 2 * PAIR;

/// Copies a message that was stored in whole chunks, or a while ago. No load spans two chunks.
#[inline(always)]
pub(crate) fn settled(to: &mut [u8], from: &[u8]) {
    match from.len() {
        CHUNK => all::<CHUNK>(to, from),
        ..CHUNK => settled_shorter(to, from),
        33..=64 => {
            all::<CHUNK>(to, from);
            settled_shorter(&mut to[CHUNK..], &from[CHUNK..]);
        }
        _ => settled_slowly(to, from),
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

/// A function call here would make the compiler keep the caller's values in memory; a call in a
/// cold branch does so only there.
#[inline(always)]
fn settled_slowly(to: &mut [u8], from: &[u8]) {
    cold_path();
    to.copy_from_slice(from);
}

/// Copies a message that may have been written a moment ago, in words, and writes zeros after it.
/// Handles only a message of a chunk or a word, because these take few instructions; false for
/// other lengths.
#[inline(always)]
pub(crate) fn fresh_usual(to: &mut [u8; CHUNK], from: &[u8]) -> bool {
    if let Ok(from) = from.try_into() {
        chunk(to, from);
        return true;
    }
    if let Ok(from) = from.try_into() {
        // After the test for a chunk.
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

/// Like [`fresh_usual`], for a message of one to two chunks; false if it has another length.
#[inline(always)]
pub(crate) fn fresh_two(to: &mut [u8; 2 * CHUNK], from: &[u8]) -> bool {
    to[CHUNK..].fill(0);
    let Some(to) = to.get_mut(..from.len()) else {
        return false;
    };
    if let (Some(to), Some(from)) = (to.first_chunk_mut(), from.first_chunk()) {
        chunk(to, from);
    }
    if let (Some(to), Some(from)) = (to.last_chunk_mut(), from.last_chunk()) {
        chunk(to, from);
    }
    from.len() >= CHUNK
}

/// Longest message that is read in words.
const IN_WORDS: usize = 4 * CHUNK;

/// Copies the bytes of a message of any length to the start of `to`. Only a message of up to 128
/// bytes is read in words, as the user has just written it, and followed by zeros up to a multiple
/// of 32 bytes: the user wrote most bytes of a longer one a while ago. Panics unless `to` has room
/// for that.
pub fn fresh_chunks(to: &mut [u8], from: &[u8]) {
    if from.len() > IN_WORDS {
        to[..from.len()].copy_from_slice(from);
        return;
    }
    let ((places, _), (whole, rest)) = (to.as_chunks_mut(), from.as_chunks());
    let (filled, others) = places.split_at_mut(whole.len());
    for (place, from) in filled.iter_mut().zip(whole) {
        chunk(place, from);
    }
    if let (Some(place), false) = (others.first_mut(), rest.is_empty()) {
        fresh_shorter(place, rest);
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
            // The upper bytes of the last word are those of the rest.
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
    let (places, _) = to.as_chunks_mut();
    let (from, _) = from.as_chunks::<PAIR>();
    for (place, from) in places.iter_mut().zip(from) {
        Pair::load::<0, PAIR>(from).store(place);
    }
}

/// Copies the first `N` bytes, if there are as many.
#[inline(always)]
fn all<const N: usize>(to: &mut [u8], from: &[u8]) {
    if let (Some(to), Some(from)) = (to.first_chunk_mut::<N>(), from.first_chunk::<N>()) {
        *to = *from;
    }
}

/// Copies the first and the last `N` bytes of slices of one length. The two parts leave no gap if
/// the length is `N` to 2 × `N` bytes.
#[inline(always)]
fn both_ends<const N: usize>(to: &mut [u8], from: &[u8]) {
    all::<N>(to, from);
    if let (Some(to), Some(from)) = (to.last_chunk_mut::<N>(), from.last_chunk::<N>()) {
        *to = *from;
    }
}

#[cfg(test)]
mod tests;
