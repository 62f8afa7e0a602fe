//! Copies of short messages, without a call and without waiting for the stores that have just
//! filled them. Called by `buf`.
//!
//! A processor hands a value from a store to a load only if that one store covers all that the load
//! asks for. A load of 32 bytes right after four stores of 8 waits until they have left the store
//! buffer, which takes hundreds of nanoseconds if stores to a line of another core are in front of
//! them. So what a user may have written a moment ago is read in words.

/// Bytes of a word.
const WORD: usize = size_of::<u64>();

/// A word at any address.
#[derive(Clone, Copy)]
#[repr(C, packed)]
struct Unaligned(u64);

/// Copies a message that lies in lines which were written a while ago.
#[inline]
pub(crate) fn settled(to: &mut [u8], from: &[u8]) {
    match from.len() {
        32..=64 => both_ends::<32>(to, from),
        8..16 => both_ends::<8>(to, from),
        16..32 => both_ends::<16>(to, from),
        _ => to.copy_from_slice(from),
    }
}

/// Copies a message that may have been written a moment ago, in words: those of a message of `N`
/// bytes, which is what `to` has room for, without a call. False if it is longer.
#[inline(always)]
pub(crate) fn fresh<const N: usize>(to: &mut [u8; N], from: &[u8]) -> bool {
    const { assert!(N.is_multiple_of(WORD)) };
    if let Ok(from) = from.try_into() {
        words::<N>(to, from);
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
