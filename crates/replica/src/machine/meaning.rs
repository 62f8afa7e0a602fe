//! Checksums of writes and states. Called by `clients` and `image`.

use crate::wire::{Operation, Request, without_name};

/// The checksum of a write, without its name. The name contains the number below which the client
/// has all answers. That number may have changed when the write is repeated. `request` is the write
/// as it was read.
pub(super) fn meaning(write: &[u8], request: &Request<'_>) -> u64 {
    let (head, rest) = match request.operation {
        // Nothing lies between the name of a put and its key.
        Operation::Put(value) => {
            let begin = write.len() - request.key.len() - value.len();
            let head = write.first_chunk().copied();
            (head.unwrap_or_default(), &write[begin..])
        }
        _ => without_name(write).unwrap_or(([0; 4], write)),
    };
    // It only distinguishes a client's mistake from a repeat; it does not guard against attacks.
    mix(u32::from_le_bytes(head).into(), rest)
}

/// Multiplies pairs of 8-byte words, and adds both halves of each product. The last pair is the
/// last 16 bytes, some of which may have been in the previous pair; if there are fewer than 16,
/// zeros fill them up. The length follows.
pub(super) fn mix(hash: u64, bytes: &[u8]) -> u64 {
    let (pairs, rest) = bytes.as_chunks::<16>();
    let hash = pairs
        .iter()
        .fold(hash, |hash, pair| step(hash, words_of(*pair)));
    let last = bytes.last_chunk().copied().unwrap_or_else(|| {
        let mut last = [0; 16];
        last[..rest.len()].copy_from_slice(rest);
        last
    });
    step(step(hash, words_of(last)), [bytes.len() as u64, 0])
}

#[expect(clippy::cast_possible_truncation, reason = "the lower half")]
const fn words_of(pair: [u8; 16]) -> [u64; 2] {
    let pair = u128::from_le_bytes(pair);
    [pair as u64, (pair >> 64) as u64]
}

/// Mixes two words into a hash.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the lower half of a product"
)]
pub(super) fn step(hash: u64, [one, other]: [u64; 2]) -> u64 {
    const WORDS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xcbf2_9ce4_8422_2325];
    let product = u128::from(one ^ hash ^ WORDS[0]) * u128::from(other ^ WORDS[1]);
    // Mixing in the previous hash prevents any pair of words from erasing the earlier ones.
    hash.rotate_left(23) ^ (product as u64) ^ (product >> 64) as u64
}

/// The digest of a state: FNV-1a over 8-byte words, the last one filled up with zeros, and then
/// over the length. Backups contain it, so it stays the same in later versions.
pub(super) fn digest_of(image: &[u8]) -> u64 {
    let step = |hash: u64, word: u64| {
        let product = (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        product ^ (product >> 32)
    };
    let (words, rest) = image.as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    step(
        step(words.fold(0, step), u64::from_le_bytes(last)),
        rest.len() as u64,
    )
}

#[cfg(test)]
mod tests;
