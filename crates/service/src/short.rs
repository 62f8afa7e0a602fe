//! Short texts, as most keys and values are: checks, comparisons and copies without a call of the C
//! library, which takes more instructions than the work itself. A text of 8 to 15 bytes is handled
//! as its first and its last 8 bytes, which may overlap, a text of 4 to 7 bytes as its first and
//! its last 4, and a shorter one as its first, middle and last byte, which may be the same byte.
//! Copies of up to 32 bytes are made in the same way.

/// The smallest length of a text that is not short.
const SHORT: usize = 16;

/// The smallest length of a text that the C library copies.
const LONG: usize = 2 * SHORT + 1;

/// For each byte, whether a key may contain it.
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

/// Whether a key may contain all of these bytes. Most keys have only letters.
#[inline]
pub(crate) fn fit_keys(bytes: &[u8]) -> bool {
    let are_letters = match bytes.len() {
        8..SHORT => ends(bytes).is_some_and(|(first, last)| {
            let [first, last] = [first, last].map(|word| u64::from_le_bytes(*word));
            (beyond_letters(first) | beyond_letters(last)) & HIGH == 0
        }),
        4..8 => ends(bytes).is_some_and(|(first, last)| {
            let [first, last] = [first, last].map(|word| u64::from(u32::from_le_bytes(*word)));
            beyond_letters(first | last << 32) & HIGH == 0
        }),
        _ => false,
    };
    are_letters || fit_one_by_one(bytes)
}

/// Whether the first `len` of these bytes are letters; `len` is from 1 to 8.
#[inline]
pub(crate) const fn begin_with_letters(bytes: [u8; 8], len: usize) -> bool {
    let beyond = beyond_letters(u64::from_le_bytes(bytes));
    matches!(len, 1..=8) && beyond << (64 - 8 * len) & HIGH == 0
}

/// The highest bit of each byte.
const HIGH: u64 = u64::from_le_bytes([0x80; 8]);

/// Sets the highest bit of a byte that is not in `a` to `z`. The lowest such byte borrows nothing
/// from lower bytes, so its bit is right; the bits of higher bytes may be wrong.
#[inline]
const fn beyond_letters(word: u64) -> u64 {
    const FIRST: u64 = u64::from_le_bytes([b'a'; 8]);
    const LAST: u64 = u64::from_le_bytes([b'z'; 8]);
    word.wrapping_sub(FIRST) | LAST.wrapping_sub(word)
}

#[inline(never)]
fn fit_one_by_one(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| IN_KEYS[usize::from(*byte)])
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

#[cfg(test)]
mod tests;
