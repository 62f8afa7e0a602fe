//! Values, as the tree keeps them. Short values are in the tree's own nodes, so a get of a number
//! reads no further cache line. The tree clones entries when it splits a node.

use crate::values::Handle;

/// The longest value that the tree itself keeps.
const SHORT: usize = 14;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    Short(u8, [u8; SHORT]),
    Long(Handle),
}

const _: () = assert!(size_of::<Value>() == 16);

impl Value {
    /// Makes a value that is kept in the tree, if the bytes are short enough.
    pub(crate) fn short(bytes: &[u8]) -> Option<Self> {
        let len = u8::try_from(bytes.len()).ok()?;
        let mut short = [0; SHORT];
        short.get_mut(..bytes.len())?.copy_from_slice(bytes);
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

/// The number of a value: its first eight bytes, little endian; missing bytes count as zeros.
#[inline]
pub(crate) fn number(bytes: &[u8]) -> u64 {
    let mut number = [0; 8];
    let len = bytes.len().min(8);
    number[..len].copy_from_slice(&bytes[..len]);
    u64::from_le_bytes(number)
}
