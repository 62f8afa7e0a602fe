//! Conversion between values and bytes: [`Codec`], with one feature each for fixed layouts,
//! postcard and protocol buffers. For another format, write a type and implement the trait for it.

#[cfg(feature = "fixed")]
pub(crate) mod fixed;
#[cfg(feature = "postcard")]
pub(crate) mod postcard;
#[cfg(feature = "prost")]
pub(crate) mod prost;

use std::fmt;

/// A format for values of type `T`.
///
/// ```
/// use dunlin_service::{Codec, DecodeError, EncodeError};
///
/// /// Text as it is.
/// struct Text;
///
/// impl Codec<String> for Text {
///     type View<'a> = &'a str;
///
///     fn size(value: &String) -> Result<usize, EncodeError> {
///         Ok(value.len())
///     }
///
///     fn encode(value: &String, out: &mut [u8]) {
///         out.copy_from_slice(value.as_bytes());
///     }
///
///     fn decode(bytes: &[u8]) -> Result<&str, DecodeError> {
///         std::str::from_utf8(bytes).map_err(|_| DecodeError::Malformed)
///     }
///
///     fn to_owned(view: &str) -> String {
///         view.into()
///     }
/// }
/// assert_eq!(Text::decode(b"word").map(Text::to_owned), Ok("word".to_owned()));
/// ```
pub trait Codec<T> {
    /// The form in which a reader gets a value: a borrow of the received bytes, or the value.
    type View<'a>;

    /// Bytes that a client reserves for a response of this type, before it knows the length.
    const ROOM: usize = 4096;

    /// The number of bytes that the value takes.
    ///
    /// # Errors
    /// If it cannot be encoded at all.
    fn size(value: &T) -> Result<usize, EncodeError>;

    /// Writes the value into exactly the number of bytes that [`Self::size`] returned.
    fn encode(value: &T, out: &mut [u8]);

    /// Reads a value. Ignores bytes after the value, because a newer version may have appended
    /// fields.
    ///
    /// # Errors
    /// If the bytes are not such a value.
    fn decode(bytes: &[u8]) -> Result<Self::View<'_>, DecodeError>;

    /// Copies the value, so that it no longer needs the received bytes.
    fn to_owned(view: Self::View<'_>) -> T;
}

/// Why bytes are not a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecodeError {
    /// There are too few bytes: the other side has an older version, or cut the message.
    TooShort {
        /// The number of bytes that there are.
        len: usize,
        /// The number of bytes that there must be.
        needed: usize,
    },
    /// The bytes are not the encoding of any value.
    Malformed,
}

/// The value cannot be encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EncodeError;

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooShort { len, needed } => write!(
                f,
                "the message has {len} bytes and its type {needed}; its sender may be older"
            ),
            Self::Malformed => f.write_str("the bytes are not a message of this type"),
        }
    }
}

impl std::error::Error for DecodeError {}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the value cannot be encoded")
    }
}

impl std::error::Error for EncodeError {}

#[cfg(test)]
mod tests;
