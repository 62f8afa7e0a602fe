//! Postcard: compact, for any type that serde knows. Its bytes do not describe the fields, so few
//! changes of a type are possible: see `docs/services.md`.

use postcard::ser_flavors::Size;
use serde::{Serialize, de::DeserializeOwned};

use super::{Codec, DecodeError, EncodeError};
use crate::bounded::Watch;

/// The postcard format. The receiver refuses a message that nests options, lists, maps and
/// enumerations more than 128 levels deep, or has more than 4096 elements without bytes.
#[derive(Debug)]
pub enum Postcard {}

impl<T: Serialize + DeserializeOwned> Codec<T> for Postcard {
    type View<'a> = T;

    fn size(value: &T) -> Result<usize, EncodeError> {
        postcard::serialize_with_flavor(value, Size::default()).map_err(|_| EncodeError)
    }

    fn encode(value: &T, out: &mut [u8]) {
        let written = postcard::to_slice(value, out);
        written.expect("a value whose size is known fits into that many bytes");
    }

    fn decode(bytes: &[u8]) -> Result<T, DecodeError> {
        // Postcard itself has no limits: the bytes of a peer decide how deeply it recurses, and how
        // long a list of `()` is.
        let mut reader = postcard::Deserializer::from_bytes(bytes);
        let watch = Watch::of_bytes(bytes.len());
        match T::deserialize(watch.around(&mut reader)) {
            Ok(value) => Ok(value),
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
