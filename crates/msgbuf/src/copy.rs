//! Copies of short messages, without a call and without waiting for the stores that have just
//! filled them. Called by `buf`.
//!
//! What a user may have written a moment ago is read in words (`pair` says why), and stored in
//! pairs of them where that takes no loop.

use std::hint::cold_path;

use crate::pair::{PAIR, Pair};

/// Bytes of a word.
const WORD: usize = size_of::<u64>();

/// Bytes of a message that is stored as two pairs.
const TWO: usize = 2 * PAIR;

/// A word at any address.
#[derive(Clone, Copy)]
#[repr(C, packed)]
struct Unaligned(u64);

/// Copies a message that lies in lines which were written a while ago.
#[inline(always)]
pub(crate) fn settled(to: &mut [u8], from: &[u8]) {
    match from.len() {
        TWO => all::<TWO>(to, from),
        33..=64 => both_ends::<TWO>(to, from),
        8..16 => both_ends::<8>(to, from),
        16..32 => both_ends::<16>(to, from),
        // As a cold way, it does not make the caller move to memory what will be needed after it.
        _ => {
            cold_path();
            to.copy_from_slice(from);
        }
    }
}

/// Copies a message that may have been written a moment ago, in words: one that is as long as `to`
/// without a call. False if it is longer.
#[inline(always)]
pub(crate) fn fresh(to: &mut [u8; TWO], from: &[u8]) -> bool {
    if let Ok(from) = from.try_into() {
        two_pairs(to, from);
        return true;
    }
    let to = to.get_mut(..from.len());
    to.is_some_and(|to| {
        fresh_shorter(to, from);
        true
    })
}

/// The same for any length, as the first and the last words of it. Of a message of more than 128
/// bytes, the user wrote most a while ago.
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
        words(to, from);
    }
    if let (Some(to), Some(from)) = (to.last_chunk_mut::<N>(), from.last_chunk::<N>()) {
        words(to, from);
    }
}

#[inline(never)]
fn fresh_shorter(to: &mut [u8], from: &[u8]) {
    assert_eq!(to.len(), from.len(), "the caller made room for the message");
    let ((to, to_rest), (from, from_rest)) = (to.as_chunks_mut(), from.as_chunks());
    for (to, from) in to.iter_mut().zip(from) {
        words::<WORD>(to, from);
    }
    to_rest.copy_from_slice(from_rest);
}

/// Copies an array with a load for each of its words, and two stores.
#[inline(always)]
fn two_pairs(to: &mut [u8; TWO], from: &[u8; TWO]) {
    let (first, second) = (Pair::load::<0, TWO>(from), Pair::load::<PAIR, TWO>(from));
    let (places, _) = to.as_chunks_mut();
    for (place, pair) in places.iter_mut().zip([first, second]) {
        pair.store(place);
    }
}

/// Copies an array with a load for each of its words.
#[inline(always)]
fn words<const N: usize>(to: &mut [u8; N], from: &[u8; N]) {
    let (from, _) = from.as_chunks::<WORD>();
    for (to, from) in to.as_chunks_mut::<WORD>().0.iter_mut().zip(from) {
        let from = std::ptr::from_ref(from).cast::<Unaligned>();
        // SAFETY: it points to as many initialised bytes, and needs no alignment. The load is
        // volatile so that the compiler does not make one wide load of several.
        *to = unsafe { from.read_volatile() }.0.to_ne_bytes();
    }
}

/// Copies slices of `N` bytes.
#[inline(always)]
fn all<const N: usize>(to: &mut [u8], from: &[u8]) {
    if let (Some(to), Some(from)) = (to.first_chunk_mut::<N>(), from.first_chunk::<N>()) {
        *to = *from;
    }
}

/// Copies the first and the last `N` bytes of slices of one length, which leaves no gap in what is
/// `N` to 2 × `N` bytes long.
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
