//! The content of a response. A method that cannot fail answers with nothing but its value. Other
//! methods answer with the value or the error, followed by one byte that tells which.

use std::convert::Infallible;
use std::marker::PhantomData;

use crate::codec::{Codec, DecodeError, EncodeError};
use crate::method::Method;

/// The result of a method: the types of its value and of its error, and their encoding.
pub trait Outcome<C> {
    /// The value that the method's handler returns.
    type Value;
    /// The form in which the client gets the value, borrowed if the codec need not copy.
    type View<'a>;
    /// The value of a success.
    type Success;
    /// The method's own error.
    type Error;

    /// Bytes that a client reserves for a response.
    const ROOM: usize;

    /// The number of bytes that the result takes.
    ///
    /// # Errors
    /// If it cannot be encoded.
    fn size(value: &Self::Value) -> Result<usize, EncodeError>;

    /// Writes the result into exactly the number of bytes that [`Self::size`] returned.
    fn encode(value: &Self::Value, out: &mut [u8]);

    /// Reads a result.
    ///
    /// # Errors
    /// If the bytes are not such a response.
    fn decode(bytes: &[u8]) -> Result<Result<Self::View<'_>, Self::Error>, DecodeError>;

    /// Copies the value of a success, so that it no longer needs the received bytes.
    fn to_owned(view: Self::View<'_>) -> Self::Success;
}

/// The value that the handler of a method returns.
pub type ValueOf<M> = <<M as Method>::Outcome as Outcome<<M as Method>::Codec>>::Value;

/// The value that a client of a method gets.
pub type SuccessOf<M> = <<M as Method>::Outcome as Outcome<<M as Method>::Codec>>::Success;

/// A method's own error.
pub type ErrorOf<M> = <<M as Method>::Outcome as Outcome<<M as Method>::Codec>>::Error;

/// The outcome of a method that cannot fail.
#[derive(Debug)]
pub struct Plain<T>(PhantomData<T>);

/// The outcome of a method that can fail: a value or an error.
#[derive(Debug)]
pub struct Fallible<T, E>(PhantomData<(T, E)>);

const SUCCESS: u8 = 0;
const ERROR: u8 = 1;

impl<C: Codec<T>, T> Outcome<C> for Plain<T> {
    type Value = T;
    type View<'a> = C::View<'a>;
    type Success = T;
    type Error = Infallible;

    const ROOM: usize = C::ROOM;

    #[inline]
    fn size(value: &T) -> Result<usize, EncodeError> {
        C::size(value)
    }

    #[inline]
    fn encode(value: &T, out: &mut [u8]) {
        C::encode(value, out);
    }

    #[inline]
    fn decode(bytes: &[u8]) -> Result<Result<C::View<'_>, Infallible>, DecodeError> {
        C::decode(bytes).map(Ok)
    }

    #[inline]
    fn to_owned(view: C::View<'_>) -> T {
        C::to_owned(view)
    }
}

impl<C: Codec<T> + Codec<E>, T, E> Outcome<C> for Fallible<T, E> {
    type Value = Result<T, E>;
    type View<'a> = <C as Codec<T>>::View<'a>;
    type Success = T;
    type Error = E;

    const ROOM: usize = {
        let (success, error) = (<C as Codec<T>>::ROOM, <C as Codec<E>>::ROOM);
        1 + if success > error { success } else { error }
    };

    #[inline]
    fn size(value: &Result<T, E>) -> Result<usize, EncodeError> {
        let size = match value {
            Ok(value) => C::size(value),
            Err(error) => C::size(error),
        };
        Ok(size? + 1)
    }

    #[inline]
    fn encode(value: &Result<T, E>, out: &mut [u8]) {
        let Some((last, body)) = out.split_last_mut() else {
            return;
        };
        match value {
            Ok(value) => {
                C::encode(value, body);
                *last = SUCCESS;
            }
            Err(error) => {
                C::encode(error, body);
                *last = ERROR;
            }
        }
    }

    #[inline]
    fn decode(bytes: &[u8]) -> Result<Result<Self::View<'_>, E>, DecodeError> {
        match bytes.split_last() {
            Some((&SUCCESS, body)) => <C as Codec<T>>::decode(body).map(Ok),
            Some((&ERROR, body)) => {
                let error = <C as Codec<E>>::decode(body)?;
                Ok(Err(<C as Codec<E>>::to_owned(error)))
            }
            Some(_) => Err(DecodeError::Malformed),
            None => Err(DecodeError::TooShort { len: 0, needed: 1 }),
        }
    }

    #[inline]
    fn to_owned(view: Self::View<'_>) -> T {
        <C as Codec<T>>::to_owned(view)
    }
}

/// Splits the response of a method that can fail into the encoding of the value or, as `Err`, of
/// the error.
#[cfg(feature = "reflect")]
pub(crate) fn split(response: &[u8]) -> Result<Result<&[u8], &[u8]>, DecodeError> {
    match response.split_last() {
        Some((&SUCCESS, value)) => Ok(Ok(value)),
        Some((&ERROR, error)) => Ok(Err(error)),
        Some(_) => Err(DecodeError::Malformed),
        None => Err(DecodeError::TooShort { len: 0, needed: 1 }),
    }
}
