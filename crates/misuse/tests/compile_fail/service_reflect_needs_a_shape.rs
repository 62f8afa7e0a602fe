//! A server can turn messages into JSON only if it knows their form: messages of a fixed layout
//! must derive `Shape`, and messages of the program's own codecs must implement `InJson`.

use dunlin::service;
use dunlin::service::reflect::Shape;
use dunlin::service::{Codec, DecodeError, EncodeError, Fixed, Growing};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy)]
#[repr(C)]
struct Bare {
    key: u8,
}

#[derive(Shape, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy)]
#[repr(C)]
struct Shaped {
    inner: Bare,
}

struct Own;

impl Codec<bool> for Own {
    type View<'a> = bool;

    fn size(_: &bool) -> Result<usize, EncodeError> {
        Ok(1)
    }

    fn encode(value: &bool, out: &mut [u8]) {
        out[0] = u8::from(*value);
    }

    fn decode(bytes: &[u8]) -> Result<bool, DecodeError> {
        Ok(bytes == [1])
    }

    fn to_owned(view: bool) -> bool {
        view
    }
}

#[service(codec = Fixed, reflect)]
trait Kv {
    #[method(1)]
    fn get(key: Bare) -> u8;
    #[method(2, codec = Growing<1>)]
    fn grown(key: u8) -> Result<u8, Bare>;
    #[method(3, codec = Own)]
    fn flip(is_on: bool) -> bool;
}

fn main() {}
