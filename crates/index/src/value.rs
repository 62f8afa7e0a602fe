//! Keys and values, as the tree keeps them. Short ones are in the tree's own nodes, so a get of a
//! number reads no further cache line. The tree clones entries when it splits a node.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::sync::Arc;

use crate::values::Handle;

/// The longest key that needs no allocation of its own.
const SHORT_KEY: usize = 22;

/// The longest value that the tree itself keeps.
const SHORT_VALUE: usize = 14;

#[derive(Clone, Debug)]
pub(crate) enum Key {
    Short(u8, [u8; SHORT_KEY]),
    Long(Arc<[u8]>),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    Short(u8, [u8; SHORT_VALUE]),
    Long(Handle),
}

const _: () = assert!(size_of::<Key>() == 24 && size_of::<Value>() == 16);

impl Key {
    #[inline]
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self::short(bytes).unwrap_or_else(|| Self::Long(bytes.into()))
    }

    /// A key that needs no allocation; `None` if it is too long.
    #[inline]
    pub(crate) fn short(bytes: &[u8]) -> Option<Self> {
        let (len, short) = short(bytes)?;
        Some(Self::Short(len, short))
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Short(len, bytes) => &bytes[..usize::from(*len)],
            Self::Long(bytes) => bytes,
        }
    }
}

impl Value {
    /// A value that lies in the tree, if it is short enough.
    pub(crate) fn short(bytes: &[u8]) -> Option<Self> {
        let (len, short) = short(bytes)?;
        Some(Self::Short(len, short))
    }

    /// The handle of a long value.
    pub(crate) const fn handle(&self) -> Option<Handle> {
        match self {
            Self::Short(..) => None,
            Self::Long(handle) => Some(*handle),
        }
    }
}

/// The bytes and their number, if they fit.
#[inline]
fn short<const MOST: usize>(bytes: &[u8]) -> Option<(u8, [u8; MOST])> {
    let len = u8::try_from(bytes.len()).ok()?;
    let mut short = [0; MOST];
    short.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some((len, short))
}

/// The number of a value: its first eight bytes, little endian; missing ones are zeros.
#[inline]
pub(crate) fn number(bytes: &[u8]) -> u64 {
    let mut number = [0; 8];
    let len = bytes.len().min(8);
    number[..len].copy_from_slice(&bytes[..len]);
    u64::from_le_bytes(number)
}

impl Borrow<[u8]> for Key {
    #[inline]
    fn borrow(&self) -> &[u8] {
        self.as_slice()
    }
}

impl PartialEq for Key {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    /// Two words decide between most short keys, because the bytes behind a short key are zeros.
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        if let (Self::Short(_, one), Self::Short(_, other)) = (self, other) {
            for place in [0, 8] {
                match word(one, place).cmp(&word(other, place)) {
                    Ordering::Equal => {}
                    order => return order,
                }
            }
        }
        self.as_slice().cmp(other.as_slice())
    }
}

/// Eight bytes of a short key, in an order that is that of the keys.
#[inline]
fn word(bytes: &[u8; SHORT_KEY], place: usize) -> u64 {
    let word = bytes[place..].first_chunk::<8>();
    word.map_or(0, |word| u64::from_be_bytes(*word))
}

#[cfg(test)]
mod tests;
