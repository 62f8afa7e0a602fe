//! The items of the key-value experiments: keys, values, draws of operations, and tables that hold
//! the items. Keys have 16 letters, which memcached's text protocol can carry. Key and value follow
//! from the number of an item, so a client can check every value that it gets.

mod draws;
mod table;

pub(crate) use draws::{Draws, Mix, Operation, Popularity};
pub(crate) use table::{make, rate};

use serde::{Deserialize, Serialize};

/// Bytes of a key.
pub(crate) const KEY: usize = 16;

/// Bytes of a value, unless a case has another length: with the key, HERD's item of 48 bytes
/// (HERD §5.3).
pub(crate) const VALUE: usize = 32;

/// The number of items, and the length of their values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Items {
    pub(crate) count: u32,
    pub(crate) value: usize,
}

impl Items {
    /// Items whose keys and values together have `mib` MiB.
    pub(crate) fn of_mib(mib: u32, value: usize) -> Self {
        let count = (u64::from(mib) << 20) / (KEY + value) as u64;
        Self {
            count: u32::try_from(count).unwrap_or(u32::MAX),
            value,
        }
    }

    /// Bytes of a table that never has to refuse or drop one of the items, a multiple of 2 MiB.
    /// Besides key and value, an item takes a header of 16 bytes, about 15 bytes of the index (here
    /// 24, to be safe), and in store mode up to a quarter more for its size class.
    pub(crate) fn table_bytes(self) -> usize {
        let each = (KEY + self.value + 16) * 5 / 4 + 24;
        (self.count as usize * each + (4 << 20)).next_multiple_of(2 << 20)
    }
}

/// The key of item `number`. The keys of the items are spread over all keys.
#[inline]
pub(crate) fn key(number: u32) -> [u8; KEY] {
    let word = draws::mix(u64::from(number));
    let [low, high] = [word & 0xffff_ffff, word >> 32].map(letters);
    let mut key = [0; KEY];
    key[..8].copy_from_slice(&low.to_le_bytes());
    key[8..].copy_from_slice(&high.to_le_bytes());
    key
}

/// Writes the value of item `number`.
#[inline]
pub(crate) fn fill(value: &mut [u8], number: u32) {
    for word in value.chunks_mut(4) {
        word.copy_from_slice(&number.to_le_bytes()[..word.len()]);
    }
}

/// True if these bytes are the value of item `number`.
#[inline]
pub(crate) fn is_value(value: &[u8], number: u32) -> bool {
    let number = number.to_le_bytes();
    value.chunks(4).all(|word| *word == number[..word.len()])
}

/// Eight letters from `a` to `p`, one for each nibble.
#[inline]
fn letters(half: u64) -> u64 {
    let mut word = (half | half << 16) & 0x0000_ffff_0000_ffff;
    word = (word | word << 8) & 0x00ff_00ff_00ff_00ff;
    word = (word | word << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    word + 0x6161_6161_6161_6161
}

#[cfg(test)]
mod tests;
