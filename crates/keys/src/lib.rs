//! Keys of ordered maps in memory. In each node of a tree, a search compares its key with one key
//! after another. A short key lies in the node, so a comparison waits for no other memory, and
//! compares words.
//!
//! Invariants: keys have the order and the equality of their bytes; the bytes after a short key are
//! zeros, and a long key is longer than [`SHORT`], so no two forms have the same bytes. A clone of
//! a long key shares its bytes. Used by the trees of `index` and `replica`.

#![forbid(unsafe_code)]

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Bytes of the longest key that needs no allocation.
pub const SHORT: usize = 22;

/// A key.
///
/// ```
/// use std::collections::BTreeMap;
///
/// use dunlin_keys::Key;
///
/// let mut all = BTreeMap::new();
/// all.insert(Key::from(&b"dunlin"[..]), 1);
/// assert_eq!(all.get(&b"dunlin"[..]), Some(&1));
/// ```
#[derive(Clone)]
pub struct Key(Form);

#[derive(Clone)]
enum Form {
    Short(u8, [u8; SHORT]),
    Long(Arc<[u8]>),
}

// A key is as large as a `Vec`.
const _: () = assert!(size_of::<Key>() == 24);

impl Key {
    /// A key that needs no allocation; `None` if it is too long. A search for it in a map compares
    /// words; a search for a slice compares bytes.
    ///
    /// ```
    /// use dunlin_keys::{Key, SHORT};
    ///
    /// assert!(Key::short(&[7; SHORT]).is_some());
    /// assert!(Key::short(&[7; SHORT + 1]).is_none());
    /// ```
    #[inline]
    #[must_use]
    pub fn short(bytes: &[u8]) -> Option<Self> {
        let len = u8::try_from(bytes.len()).ok()?;
        let mut short = [0; SHORT];
        short.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Self(Form::Short(len, short)))
    }
}

impl From<&[u8]> for Key {
    #[inline]
    fn from(bytes: &[u8]) -> Self {
        Self::short(bytes).unwrap_or_else(|| Self(Form::Long(bytes.into())))
    }
}

impl Deref for Key {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Form::Short(len, bytes) => &bytes[..usize::from(*len)],
            Form::Long(bytes) => bytes,
        }
    }
}

impl Borrow<[u8]> for Key {
    #[inline]
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl PartialEq for Key {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Form::Short(len, one), Form::Short(other_len, other)) => {
                len == other_len && one == other
            }
            _ => **self == **other,
        }
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    /// Short keys with the same words differ only in the number of zeros at their ends, and the
    /// shorter key is the smaller one.
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        let (Form::Short(len, one), Form::Short(other_len, other)) = (&self.0, &other.0) else {
            return (**self).cmp(&**other);
        };
        // The last word begins with bytes of the word before, which are equal here.
        for place in [0, 8, SHORT - 8] {
            match word(one, place).cmp(&word(other, place)) {
                Ordering::Equal => {}
                order => return order,
            }
        }
        len.cmp(other_len)
    }
}

/// Eight bytes of a short key; these words have the order of their bytes.
#[inline]
fn word(bytes: &[u8; SHORT], place: usize) -> u64 {
    let word = bytes[place..].first_chunk::<8>();
    word.map_or(0, |word| u64::from_be_bytes(*word))
}

#[cfg(test)]
mod tests;
