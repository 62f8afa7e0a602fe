//! The hash of a call's key, by which [`Pick::Hash`](crate::Pick::Hash) picks a server. Two
//! programs that have the same servers and keys must pick the same server, so the function is
//! fixed: FNV-1a of 64 bits, which `seed_of` uses for the names of servers, over the bytes that the
//! key's type gives to its hasher. Numbers give their bytes in little-endian order, `usize` and
//! `isize` as 64 bits; but `std` passes a slice of numbers as it lies in memory, in the processor's
//! order.
//!
//! `std` fixes neither the algorithm of `DefaultHasher` nor the bytes of each type. The tests have
//! the hashes of common types, so they fail if a compiler changes one.

use std::hash::{Hash, Hasher};

/// FNV-1a of 64 bits.
pub(crate) struct Fnv(u64);

/// The hash of a key, version 1. Equal numbers, texts, slices of bytes, and tuples of these have
/// the same hash in every process and release; a text and its bytes have different ones. The hash
/// of a type that derives `Hash` depends on the order of its fields and variants, and the hash of a
/// slice of numbers longer than a byte depends on the processor's byte order.
///
/// ```
/// use dunlin_channel::key_of;
///
/// assert_eq!(key_of("user 7"), key_of(&String::from("user 7")));
/// assert_eq!(key_of(&7_u64), 0x4BD7_A317_074C_5B62);
/// ```
#[must_use]
#[inline]
pub fn key_of<K: Hash + ?Sized>(key: &K) -> u64 {
    let mut hasher = Fnv::new();
    key.hash(&mut hasher);
    hasher.finish()
}

impl Fnv {
    pub(crate) const fn new() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3)
        });
    }

    fn write_u16(&mut self, number: u16) {
        self.write(&number.to_le_bytes());
    }

    fn write_u32(&mut self, number: u32) {
        self.write(&number.to_le_bytes());
    }

    fn write_u64(&mut self, number: u64) {
        self.write(&number.to_le_bytes());
    }

    fn write_u128(&mut self, number: u128) {
        self.write(&number.to_le_bytes());
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    /// The default would not extend the sign of 32 bits.
    fn write_isize(&mut self, number: isize) {
        self.write_u64(i64::cast_unsigned(number as i64));
    }
}

#[cfg(test)]
mod tests;
