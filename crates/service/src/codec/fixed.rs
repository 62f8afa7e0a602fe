//! Fixed layout: the bytes are the value, and the reader gets a reference to the received bytes.
//! Types derive zerocopy's traits; their fields must have types without alignment.
//!
//! A newer version may append fields. A reader with the older type ignores them. A reader with the
//! newer type uses [`Growing`] to read a value of the older type.

use std::ops::Deref;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{Codec, DecodeError, EncodeError};

/// The bytes are the value. Fewer bytes than the type has are an error.
#[derive(Debug)]
pub enum Fixed {}

/// Like [`Fixed`], for types that have grown: a message has at least `OLDEST` bytes; if it has
/// fewer than the type, the missing bytes are read as zero.
#[derive(Debug)]
pub enum Growing<const OLDEST: usize> {}

/// A value as it was received, or extended from a shorter one.
#[derive(Debug)]
pub enum Grown<'a, T> {
    /// All bytes of the value were received.
    Whole(&'a T),
    /// The last fields were missing and are zero.
    Extended(T),
}

/// Room for responses of newer versions, which are longer than this version's.
const fn room(len: usize) -> usize {
    2 * len + 64
}

impl<T: FromBytes + IntoBytes + KnownLayout + Immutable + Unaligned + 'static> Codec<T> for Fixed {
    type View<'a> = &'a T;

    const ROOM: usize = room(size_of::<T>());

    #[inline]
    fn size(_: &T) -> Result<usize, EncodeError> {
        Ok(size_of::<T>())
    }

    #[inline]
    fn encode(value: &T, out: &mut [u8]) {
        out.copy_from_slice(value.as_bytes());
    }

    #[inline]
    fn decode(bytes: &[u8]) -> Result<&T, DecodeError> {
        match T::ref_from_prefix(bytes) {
            Ok((value, _)) => Ok(value),
            Err(_) => Err(DecodeError::TooShort {
                len: bytes.len(),
                needed: size_of::<T>(),
            }),
        }
    }

    #[inline]
    fn to_owned(view: &T) -> T {
        owned(view)
    }
}

impl<T, const OLDEST: usize> Codec<T> for Growing<OLDEST>
where
    T: FromBytes + IntoBytes + KnownLayout + Immutable + Unaligned + 'static,
{
    type View<'a> = Grown<'a, T>;

    const ROOM: usize = room(size_of::<T>());

    fn size(_: &T) -> Result<usize, EncodeError> {
        Ok(size_of::<T>())
    }

    fn encode(value: &T, out: &mut [u8]) {
        out.copy_from_slice(value.as_bytes());
    }

    fn decode(bytes: &[u8]) -> Result<Grown<'_, T>, DecodeError> {
        if let Ok((value, _)) = T::ref_from_prefix(bytes) {
            return Ok(Grown::Whole(value));
        }
        if bytes.len() < OLDEST {
            return Err(DecodeError::TooShort {
                len: bytes.len(),
                needed: OLDEST,
            });
        }
        let mut value = T::new_zeroed();
        value.as_mut_bytes()[..bytes.len()].copy_from_slice(bytes);
        Ok(Grown::Extended(value))
    }

    fn to_owned(view: Grown<'_, T>) -> T {
        match view {
            Grown::Whole(value) => owned(value),
            Grown::Extended(value) => value,
        }
    }
}

impl<T> Deref for Grown<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Self::Whole(value) => value,
            Self::Extended(value) => value,
        }
    }
}

/// Copies a value.
#[inline]
fn owned<T: FromBytes + IntoBytes + Immutable>(value: &T) -> T {
    T::read_from_bytes(value.as_bytes()).expect("a value has as many bytes as itself")
}
