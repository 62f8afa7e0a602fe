//! A header as three words, for comparing it with an expected header without decoding (rule W1).

use dunlin_wire::{HEADER_LEN, Residence, TIMED_RESPONSE};

/// A header: type, flags, `aux` and session; token and size; packet and request number.
pub(crate) type Words = [u64; 3];

/// Bytes of a header.
#[expect(clippy::cast_possible_truncation, reason = "a header has 24 bytes")]
pub(crate) const HEADER_BYTES: u32 = HEADER_LEN as u32;

/// The header at the start of these bytes, and the bytes after the header.
#[inline(always)]
pub(crate) fn words_of(bytes: &[u8]) -> Option<(Words, &[u8])> {
    let (header, rest) = bytes.split_first_chunk::<HEADER_LEN>()?;
    Some((words(header), rest))
}

/// The bytes of the packet at the start of `bytes`, if it is a whole message without an extension.
pub(crate) fn first_packet(bytes: &[u8]) -> Option<&[u8]> {
    let (words, _) = words_of(bytes)?;
    bytes.get(..HEADER_LEN + high(words[1]) as usize)
}

/// Whether this is the header of a RESP without flags that states a residence.
#[inline(always)]
pub(crate) const fn is_timed(words: &Words) -> bool {
    words[0] & 0xFFFF == TIMED_RESPONSE && residence_of(words).0 != Residence::NO_SAMPLE.0
}

/// The residence in the header of a RESP.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "a field of 16 bits")]
pub(crate) const fn residence_of(words: &Words) -> Residence {
    Residence((words[0] >> 16) as u16)
}

/// A header's bytes as words.
#[inline(always)]
pub(crate) fn words(header: &[u8; HEADER_LEN]) -> Words {
    let (words, _) = header.as_chunks::<8>();
    [0, 1, 2].map(|at: usize| u64::from_le_bytes(words[at]))
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

#[cfg(test)]
mod tests;
