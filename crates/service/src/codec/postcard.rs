//! Postcard: compact, for any type that serde knows. Its bytes do not describe the fields, so few
//! changes of a type are possible: see `docs/services.md`.

use postcard::ser_flavors::Size;
use serde::{Serialize, de::DeserializeOwned};

use super::{Codec, DecodeError, EncodeError};

/// The postcard format.
#[derive(Debug)]
pub enum Postcard {}

impl<T: Serialize + DeserializeOwned> Codec<T> for Postcard {
    type View<'a> = T;

    fn size(value: &T) -> Result<usize, EncodeError> {
        postcard::serialize_with_flavor(value, Size::default()).map_err(|_| EncodeError)
    }

    fn encode(value: &T, out: &mut [u8]) {
        let written = postcard::to_slice(value, out);
        written.expect("what has a size can be written into as many bytes");
    }

    fn decode(bytes: &[u8]) -> Result<T, DecodeError> {
        match postcard::take_from_bytes(bytes) {
            Ok((value, _)) => Ok(value),
            Err(postcard::Error::DeserializeUnexpectedEnd) => Err(DecodeError::TooShort {
                len: bytes.len(),
                needed: bytes.len() + 1,
            }),
            Err(_) => Err(DecodeError::Malformed),
        }
    }

    fn to_owned(view: T) -> T {
        view
    }
}
