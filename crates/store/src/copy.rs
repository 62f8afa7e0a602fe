//! Copies keys and short values without a function call, because calling `memcpy` costs more than
//! copying them. Called by the table, and by the key-value service for keys and values in messages.

/// Copies `from` to the front of `to`.
///
/// ```
/// let mut room = *b"0123456789";
/// dunlin_store::copy_short(&mut room, b"dunlin");
/// assert_eq!(&room, b"dunlin6789");
/// ```
///
/// # Panics
/// If `to` is shorter.
#[inline]
pub fn copy_short(to: &mut [u8], from: &[u8]) {
    let to = &mut to[..from.len()];
    match from.len() {
        8..=16 => ends::<8>(to, from),
        17..=32 => ends::<16>(to, from),
        _ => to.copy_from_slice(from),
    }
}

/// Copies the first and the last `N` bytes between slices of equal length; the two parts may
/// overlap.
#[inline]
fn ends<const N: usize>(to: &mut [u8], from: &[u8]) {
    if let (Some(first), Some(last)) = (from.first_chunk::<N>(), from.last_chunk::<N>()) {
        let (first, last) = (*first, *last);
        if let Some(to) = to.first_chunk_mut() {
            *to = first;
        }
        if let Some(to) = to.last_chunk_mut() {
            *to = last;
        }
    }
}

#[cfg(test)]
mod tests;
