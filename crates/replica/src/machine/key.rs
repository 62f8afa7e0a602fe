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
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl PartialEq for Key {
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
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_all_lengths_have_the_order_of_their_bytes() {
        let bytes: Vec<Vec<u8>> = (0..60)
            .flat_map(|len| [0, 1, 255].map(|byte| vec![byte; len]))
            .collect();
        for one in &bytes {
            let key = Key::from(&one[..]);
            assert_eq!(*key, one[..]);
            assert_eq!(matches!(key, Key::Short(..)), one.len() <= SHORT);
            for other in &bytes {
                assert_eq!(key.cmp(&Key::from(&other[..])), one.cmp(other));
            }
        }
    }
}
