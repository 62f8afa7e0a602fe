//! Check sums of writes and states. Called by `clients` and `image`.

/// The bytes of a write that say what it does. The number below which its client has all answers
/// may change when the write is repeated.
pub(super) fn meaning(entry: &[u8]) -> u64 {
    const FIRST: std::ops::Range<usize> = 24..32;
    let (head, tail) = (&entry[..FIRST.start], &entry[FIRST.end..]);
    // It tells a client's mistake from a repeat, and guards against nothing else.
    mix(mix(0xcbf2_9ce4_8422_2325, head), tail)
}

/// FNV-1a over words of eight bytes, so that it costs an eighth of the multiplications; the last
/// word is filled up with zeros, and its length follows.
pub(super) fn mix(hash: u64, bytes: &[u8]) -> u64 {
    let step = |hash: u64, word: u64| {
        let product = (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        product ^ (product >> 32)
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let hash = words
        .iter()
        .fold(hash, |hash, word| step(hash, u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    step(step(hash, u64::from_le_bytes(last)), rest.len() as u64)
}
