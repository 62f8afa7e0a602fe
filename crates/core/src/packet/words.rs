//! A header as three words, to be compared with what is expected instead of being taken apart (rule
//! W1).

use dunlin_wire::HEADER_LEN;

/// A header: type, flags, `aux` and session; token and size; packet and request number.
pub(crate) type Words = [u64; 3];

/// The header at the start of these bytes, and what follows it.
#[inline(always)]
pub(crate) fn words_of(bytes: &[u8]) -> Option<(Words, &[u8])> {
    let (header, rest) = bytes.split_first_chunk::<HEADER_LEN>()?;
    let (words, _) = header.as_chunks::<8>();
    Some((
        [0, 1, 2].map(|at: usize| u64::from_le_bytes(words[at])),
        rest,
    ))
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the lower half")]
pub(crate) const fn low(word: u64) -> u32 {
    word as u32
}

#[inline(always)]
pub(crate) const fn high(word: u64) -> u32 {
    low(word >> 32)
}
