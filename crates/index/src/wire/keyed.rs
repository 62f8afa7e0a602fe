//! Operations on one key.

use super::cursor::Cursor;
use super::format::{MAX_VALUE, Malformed, Status, VERSION};
use crate::range::MAX_KEY;

/// An operation on one key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request<'a> {
    /// Reads the value.
    Get {
        /// The key.
        key: &'a [u8],
    },
    /// Writes an item.
    Put {
        /// The key.
        key: &'a [u8],
        /// The value.
        value: &'a [u8],
    },
    /// Deletes an item.
    Delete {
        /// The key.
        key: &'a [u8],
    },
}

/// The answer to a [`Request`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer<'a> {
    /// The item is written or deleted.
    Written,
    /// The value of a get.
    Found(&'a [u8]),
    /// There is no item.
    Missing,
    /// The operation did not happen.
    Refused(Status),
}

const HEAD: usize = 4;
const WRITTEN: u8 = 0;
const FOUND: u8 = 1;
const MISSING: u8 = 16;

/// Bytes of an answer before the value.
const FOUND_HEAD: usize = 1;

impl<'a> Request<'a> {
    /// The key.
    #[must_use]
    pub const fn key(&self) -> &'a [u8] {
        match self {
            Self::Get { key } | Self::Put { key, .. } | Self::Delete { key } => key,
        }
    }

    /// Whether the request only reads.
    #[must_use]
    pub const fn is_read(&self) -> bool {
        matches!(self, Self::Get { .. })
    }

    const fn number(&self) -> u8 {
        match self {
            Self::Get { .. } => 1,
            Self::Put { .. } => 2,
            Self::Delete { .. } => 3,
        }
    }

    const fn value(&self) -> &'a [u8] {
        match self {
            Self::Put { value, .. } => value,
            _ => &[],
        }
    }

    /// Checks that key and value have lengths that a server accepts.
    ///
    /// # Errors
    /// The status with which the server would refuse the request.
    #[inline]
    pub const fn check(&self) -> Result<(), Status> {
        let key = self.key().len();
        if key == 0 || key > MAX_KEY {
            return Err(Status::BadKey);
        }
        match self.value().len() > MAX_VALUE {
            true => Err(Status::TooLong),
            false => Ok(()),
        }
    }

    /// Bytes of the request.
    #[must_use]
    pub const fn size(&self) -> usize {
        HEAD + self.key().len() + self.value().len()
    }

    /// Writes the request to `out`, which has the request's size. The key has at most [`MAX_KEY`]
    /// bytes.
    ///
    /// # Panics
    /// If the key is longer, or `out` has another size.
    #[inline]
    pub fn encode(&self, out: &mut [u8]) {
        let (key, value) = (self.key(), self.value());
        let len = u8::try_from(key.len()).expect("the caller has checked the key");
        out[..HEAD].copy_from_slice(&[VERSION, self.number(), len, 0]);
        out[HEAD..HEAD + key.len()].copy_from_slice(key);
        out[HEAD + key.len()..].copy_from_slice(value);
    }

    /// Reads a request.
    ///
    /// # Errors
    /// [`Malformed`].
    #[inline]
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor(bytes);
        let [version, number, len, zero] = cursor.take()?;
        let key = cursor.bytes(len.into())?;
        let value = cursor.0;
        if version != VERSION || zero != 0 {
            return Err(Malformed);
        }
        match number {
            1 if value.is_empty() => Ok(Self::Get { key }),
            2 => Ok(Self::Put { key, value }),
            3 if value.is_empty() => Ok(Self::Delete { key }),
            _ => Err(Malformed),
        }
    }
}

impl<'a> Answer<'a> {
    /// Bytes of the answer.
    #[inline]
    #[must_use]
    pub const fn size(&self) -> usize {
        match self {
            Self::Found(value) => FOUND_HEAD + value.len(),
            Self::Written | Self::Missing | Self::Refused(_) => 1,
        }
    }

    /// Writes the answer to `out`, which has the answer's size.
    #[inline]
    pub fn encode(&self, out: &mut [u8]) {
        match self {
            Self::Written => out.copy_from_slice(&[WRITTEN]),
            Self::Found(value) => {
                out[0] = FOUND;
                out[FOUND_HEAD..].copy_from_slice(value);
            }
            Self::Missing => out.copy_from_slice(&[MISSING]),
            Self::Refused(status) => out.copy_from_slice(&[status.number()]),
        }
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// [`Malformed`].
    #[inline]
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        match bytes {
            [FOUND, value @ ..] => Ok(Self::Found(value)),
            [MISSING] => Ok(Self::Missing),
            [WRITTEN] => Ok(Self::Written),
            [number] => Status::from_number(*number).map(Self::Refused),
            _ => Err(Malformed),
        }
    }
}
