//! Keys and values, as the tree keeps them: short ones lie in the tree's own nodes, so a get of a
//! number reads no further cache line. The tree clones entries when it splits a node.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::sync::Arc;

/// The longest bytes that need no allocation of their own.
const SHORT: usize = 22;

#[derive(Clone, Debug)]
pub(crate) enum Bytes {
    Short(u8, [u8; SHORT]),
    Long(Arc<[u8]>),
}

const _: () = assert!(size_of::<Bytes>() == 24);

impl Bytes {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        match u8::try_from(bytes.len()) {
            Ok(len) if bytes.len() <= SHORT => {
                let mut short = [0; SHORT];
                short[..bytes.len()].copy_from_slice(bytes);
                Self::Short(len, short)
            }
            _ => Self::Long(bytes.into()),
        }
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Short(len, bytes) => &bytes[..usize::from(*len)],
            Self::Long(bytes) => bytes,
        }
    }

    /// The number of a value: its first eight bytes, little endian; missing ones are zeros.
    #[inline]
    pub(crate) fn number(&self) -> u64 {
        let bytes = self.as_slice();
        let mut number = [0; 8];
        let len = bytes.len().min(8);
        number[..len].copy_from_slice(&bytes[..len]);
        u64::from_le_bytes(number)
    }
}

impl Borrow<[u8]> for Bytes {
    fn borrow(&self) -> &[u8] {
        self.as_slice()
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Bytes {}

impl PartialOrd for Bytes {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Bytes {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_slice().cmp(other.as_slice())
    }
}
