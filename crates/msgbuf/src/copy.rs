//! Copies of short messages, without a function call, and without waiting for the stores that have
//! just filled them. Called by `buf`.
//!
//! The user may have written the message a moment ago, so it is read in words (`pair` explains
//! why). The words are stored in pairs where that takes no loop.

use std::hint::cold_path;

use crate::pair::{PAIR, Pair, copy_word};

/// Bytes of two pairs.
const TWO: usize = 2 * PAIR;

/// Copies a message from cache lines that were written a while ago.
#[inline(always)]
pub(crate) fn settled(to: &mut [u8], from: &[u8]) {
    match from.len() {
        TWO => all::<TWO>(to, from),
        33..=64 => both_ends::<TWO>(to, from),
        8..16 => both_ends::<8>(to, from),
        16..32 => both_ends::<16>(to, from),
        // A function call here would make the compiler keep the caller's values in memory. In a
        // cold branch, it costs that only there.
        _ => {
            cold_path();
            to.copy_from_slice(from);
        }
    }
}

/// Copies a message that may have been written a moment ago, in words. A message as long as `to`
/// takes no function call. False if the message is longer than `to`.
#[inline(always)]
pub(crate) fn fresh(to: &mut [u8; TWO], from: &[u8]) -> bool {
    if let Ok(from) = from.try_into() {
        pairs(to, from);
        return true;
    }
    let to = to.get_mut(..from.len());
    to.is_some_and(|to| {
        fresh_shorter(to, from);
        true
    })
}

/// The same for any length. Up to 128 bytes, it copies the first and the last part in words; of a
/// longer message, the user wrote most bytes a while ago.
#[inline]
pub(crate) fn fresh_any(to: &mut [u8], from: &[u8]) {
    match from.len() {
        32..=64 => fresh_ends::<32>(to, from),
        65..=128 => fresh_ends::<64>(to, from),
        ..32 => fresh_shorter(to, from),
        _ => to.copy_from_slice(from),
    }
}

/// Copies the first and the last `N` bytes of slices of one length, in words.
#[inline(always)]
fn fresh_ends<const N: usize>(to: &mut [u8], from: &[u8]) {
    assert_eq!(to.len(), from.len(), "the caller made room for the message");
    if let (Some(to), Some(from)) = (to.first_chunk_mut::<N>(), from.first_chunk::<N>()) {
        pairs(to, from);
    }
    if let (Some(to), Some(from)) = (to.last_chunk_mut::<N>(), from.last_chunk::<N>()) {
        pairs(to, from);
    }
}

#[inline(never)]
fn fresh_shorter(to: &mut [u8], from: &[u8]) {
    assert_eq!(to.len(), from.len(), "the caller made room for the message");
    let ((to, to_rest), (from, from_rest)) = (to.as_chunks_mut(), from.as_chunks());
    for (to, from) in to.iter_mut().zip(from) {
        copy_word(to, from);
    }
    to_rest.copy_from_slice(from_rest);
}

/// Copies an array of pairs, with a load for each word and a store for each pair.
#[inline(always)]
fn pairs<const N: usize>(to: &mut [u8; N], from: &[u8; N]) {
    const { assert!(N.is_multiple_of(PAIR)) };
    let ((places, _), (from, _)) = (to.as_chunks_mut(), from.as_chunks::<PAIR>());
    for (place, from) in places.iter_mut().zip(from) {
        Pair::load::<0, PAIR>(from).store(place);
    }
}

/// Copies slices of `N` bytes.
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
    if let (Some(to), Some(from)) = (to.first_chunk_mut::<N>(), from.first_chunk::<N>()) {
        *to = *from;
    }
    if let (Some(to), Some(from)) = (to.last_chunk_mut::<N>(), from.last_chunk::<N>()) {
        *to = *from;
    }
}

#[cfg(test)]
mod tests;
