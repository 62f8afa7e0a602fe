//! Protocol buffers, by prost. Messages come from a `.proto` file, compiled by a build script with
//! `protox` (which is Rust, so `protoc` need not be installed), or from derives.

use super::{Codec, DecodeError, EncodeError};

/// The protocol buffers format.
#[derive(Debug)]
pub enum Prost {}

impl<T: prost::Message + Default> Codec<T> for Prost {
    type View<'a> = T;

    fn size(value: &T) -> Result<usize, EncodeError> {
        Ok(value.encoded_len())
    }

    fn encode(value: &T, mut out: &mut [u8]) {
        let written = value.encode(&mut out);
        written.expect("a message takes as many bytes as it says");
    }

    fn decode(bytes: &[u8]) -> Result<T, DecodeError> {
        T::decode(bytes).map_err(|_| DecodeError::Malformed)
    }

    fn to_owned(view: T) -> T {
        view
    }
}
