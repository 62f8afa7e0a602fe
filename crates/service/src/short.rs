//! Short texts, as most keys and values are: checks, comparisons and copies without a call of the C
//! library, which takes more instructions than the work itself. A text of 4 to 15 bytes is handled
//! as its first and its last bytes, which may overlap, and a shorter one as three bytes, which may
//! be the same. Copies of up to 32 bytes are made in the same way.

/// The length from which on a text is not short.
const SHORT: usize = 16;

/// The length from which on the C library copies a text.
const LONG: usize = 2 * SHORT + 1;

/// Whether a key may contain a byte. A look-up is cheaper than five comparisons.
const IN_KEYS: [bool; 256] = {
    let mut all = [false; 256];
    let fit = b"abcdefghijklmnopqrstuvwxyz0123456789._-";
    let mut at = 0;
    while at < fit.len() {
        all[fit[at] as usize] = true;
        at += 1;
    }
    all
};

/// Whether a key may contain all of these bytes.
#[inline]
pub(crate) fn fit_keys(bytes: &[u8]) -> bool {
    match bytes.len() {
        SHORT.. => bytes.iter().all(|byte| IN_KEYS[usize::from(*byte)]),
        8.. => ends::<8>(bytes).is_some_and(|(first, last)| fit(first) & fit(last)),
        4.. => ends::<4>(bytes).is_some_and(|(first, last)| fit(first) & fit(last)),
        _ => bytes.iter().all(|byte| IN_KEYS[usize::from(*byte)]),
    }
}

/// Whether the bytes are UTF-8. The standard library looks at most bytes one by one.
#[inline]
pub(crate) fn is_text(bytes: &[u8]) -> bool {
    is_ascii(bytes) || std::str::from_utf8(bytes).is_ok()
}

#[inline]
fn is_ascii(bytes: &[u8]) -> bool {
    let (words, last) = match bytes.len() {
        8.. => (bytes.as_chunks::<8>().0, bytes.last_chunk::<8>()),
        4.. => {
            let word = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes);
            let both = ends(bytes).map(|(first, last)| word(first) | word(last));
            return both.is_some_and(|both| both & word(&[0x80; 4]) == 0);
        }
        _ => return bytes.iter().all(u8::is_ascii),
    };
    let all = words
        .iter()
        .chain(last)
        .map(|bytes| u64::from_le_bytes(*bytes));
    all.fold(0, |all, word| all | word) & u64::from_le_bytes([0x80; 8]) == 0
}

/// Whether both are the same.
#[inline]
pub(crate) fn same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    match one.len() {
        SHORT.. => one == other,
        8.. => ends::<8>(one) == ends::<8>(other),
        4.. => ends::<4>(one) == ends::<4>(other),
        0 => true,
        len => [0, len / 2, len - 1]
            .into_iter()
            .all(|at| one[at] == other[at]),
    }
}

/// Copies a text to a place of its length.
#[inline]
pub(crate) fn copy(from: &[u8], to: &mut [u8]) {
    match from.len() {
        LONG.. => to.copy_from_slice(from),
        SHORT.. => copy_ends::<SHORT>(from, to),
        8.. => copy_ends::<8>(from, to),
        4.. => copy_ends::<4>(from, to),
        0 => {}
        len => {
            for at in [0, len / 2, len - 1] {
                to[at] = from[at];
            }
        }
    }
}

/// The first and the last `N` bytes.
#[inline]
fn ends<const N: usize>(bytes: &[u8]) -> Option<(&[u8; N], &[u8; N])> {
    Some((bytes.first_chunk()?, bytes.last_chunk()?))
}

#[inline]
fn copy_ends<const N: usize>(from: &[u8], to: &mut [u8]) {
    if let (Some((first, last)), Some(begin)) = (ends::<N>(from), to.first_chunk_mut()) {
        *begin = *first;
        if let Some(end) = to.last_chunk_mut() {
            *end = *last;
        }
    }
}

/// One branch for all bytes, instead of one for each.
#[inline]
fn fit<const N: usize>(bytes: &[u8; N]) -> bool {
    let both = |all, byte: &u8| all & IN_KEYS[usize::from(*byte)];
    bytes.iter().fold(true, both)
}

#[cfg(test)]
mod tests;
