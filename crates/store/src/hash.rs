//! `SipHash` with one round for each block and three at the end. It has two uses, which must not
//! share a seed. With a seed of zeros, which clients also know, it routes keys to partitions. With
//! a secret seed, it selects buckets and tags.
//!
//! Clients choose partitions, so they and the servers must agree on [`route`]. A client that could
//! choose a bucket could make one chain arbitrarily long, so the server draws a [`Seed`] when it
//! starts and keeps it secret. `SipHash`: Aumasson and Bernstein, "`SipHash`: a fast short-input
//! PRF", 2012.

/// The secret of one table: 128 bits that no client knows.
#[derive(Clone, Copy)]
pub struct Seed([u64; 2]);

/// The version of the function that routes keys. The partition map contains it; a client that finds
/// another version there must not route.
pub const ROUTE_VERSION: u16 = 1;

impl Seed {
    /// Takes the secret, which the caller has drawn from the system's generator.
    ///
    /// ```
    /// let table = dunlin_store::Seed::new([0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344]);
    /// # let _ = table;
    /// ```
    #[must_use]
    pub const fn new(secret: [u64; 2]) -> Self {
        Self(secret)
    }

    /// The hash that selects bucket and tag.
    #[inline]
    pub(crate) fn hash(self, key: &[u8]) -> u64 {
        sip::<1, 3>(self.0, key)
    }
}

impl std::fmt::Debug for Seed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seed(secret)")
    }
}

/// The hash that routes a key to a server and a partition, in version [`ROUTE_VERSION`]. It is the
/// same in every process, and does not depend on the seed of any table.
///
/// ```
/// assert_eq!(dunlin_store::route(b"dunlin"), dunlin_store::route(b"dunlin"));
/// assert_ne!(dunlin_store::route(b"dunlin"), dunlin_store::route(b"dunlim"));
/// ```
#[must_use]
pub fn route(key: &[u8]) -> u64 {
    sip::<1, 3>([0, 0], key)
}

/// `SipHash` with `BLOCK` rounds for each eight bytes and `END` at the end.
#[inline]
fn sip<const BLOCK: usize, const END: usize>(seed: [u64; 2], bytes: &[u8]) -> u64 {
    let mut state = [
        seed[0] ^ 0x736f_6d65_7073_6575,
        seed[1] ^ 0x646f_7261_6e64_6f6d,
        seed[0] ^ 0x6c79_6765_6e65_7261,
        seed[1] ^ 0x7465_6462_7974_6573,
    ];
    let (blocks, rest) = bytes.as_chunks::<8>();
    for block in blocks {
        absorb::<BLOCK>(&mut state, u64::from_le_bytes(*block));
    }
    let length = (bytes.len() as u64) << 56;
    absorb::<BLOCK>(&mut state, length | partial_word(rest));
    state[2] ^= 0xff;
    for _ in 0..END {
        round(&mut state);
    }
    state[0] ^ state[1] ^ state[2] ^ state[3]
}

/// Up to seven bytes as a number.
#[inline]
fn partial_word(bytes: &[u8]) -> u64 {
    let mut word = 0;
    for (place, byte) in bytes.iter().enumerate() {
        word |= u64::from(*byte) << (8 * place);
    }
    word
}

#[inline]
fn absorb<const ROUNDS: usize>(state: &mut [u64; 4], word: u64) {
    state[3] ^= word;
    for _ in 0..ROUNDS {
        round(state);
    }
    state[0] ^= word;
}

#[inline]
fn round(state: &mut [u64; 4]) {
    let [mut a, mut b, mut c, mut d] = *state;
    a = a.wrapping_add(b);
    b = b.rotate_left(13) ^ a;
    a = a.rotate_left(32);
    c = c.wrapping_add(d);
    d = d.rotate_left(16) ^ c;
    a = a.wrapping_add(d);
    d = d.rotate_left(21) ^ a;
    c = c.wrapping_add(b);
    b = b.rotate_left(17) ^ c;
    c = c.rotate_left(32);
    *state = [a, b, c, d];
}

#[cfg(test)]
mod tests;
