//! Keys of items. A search compares the key with one after the other in each node of the tree; a
//! short key lies in the node, so that a comparison does not wait for memory elsewhere.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::ops::Deref;

/// The longest key that lies in the tree's node.
const SHORT: usize = 22;

#[derive(Clone, Debug)]
pub(super) enum Key {
    Short(u8, [u8; SHORT]),
    Long(Box<[u8]>),
}

// As long as a `Vec`.
const _: () = assert!(size_of::<Key>() == 24);

impl From<&[u8]> for Key {
    fn from(bytes: &[u8]) -> Self {
        let mut short = [0; SHORT];
        match (short.get_mut(..bytes.len()), u8::try_from(bytes.len())) {
            (Some(room), Ok(len)) => {
                room.copy_from_slice(bytes);
                Self::Short(len, short)
            }
            _ => Self::Long(bytes.into()),
        }
    }
}

impl Deref for Key {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Short(len, bytes) => &bytes[..usize::from(*len)],
            Self::Long(bytes) => bytes,
        }
    }
}

impl Borrow<[u8]> for Key {
    #[inline]
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl PartialEq for Key {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        **self == **other
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
        (**self).cmp(&**other)
    }
}

/// Eight bytes of a short key, in an order that is that of the keys.
#[inline]
fn word(bytes: &[u8; SHORT], place: usize) -> u64 {
    let word = bytes[place..].first_chunk::<8>();
    word.map_or(0, |word| u64::from_be_bytes(*word))
}

#[cfg(test)]
mod tests;
