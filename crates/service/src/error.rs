//! How calls fail: [`Error`] for calls of the asynchronous face, typed or not; [`Failure`] for
//! typed calls.

use std::convert::Infallible;
use std::fmt;

use dunlin_core::{CallErrorKind, CloseReason, HandleError, RpcError};
use dunlin_msgbuf::{AllocError, MsgBuf};
use dunlin_wire::{ErrorCode, Ran};

use crate::codec::{DecodeError, EncodeError};
use crate::meta::MetaError;

/// Why an operation of the asynchronous face failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// The call was accepted and ended without a response.
    Rpc(RpcError),
    /// The call was not accepted.
    Refused(CallErrorKind),
    /// There is no memory for a msgbuf.
    Memory(AllocError),
    /// The session is closed, or was never opened.
    NoSession,
    /// The session is one of another endpoint.
    WrongEndpoint,
    /// The endpoint is gone, or the operation came from inside another one (from a function that
    /// writes a response, say).
    Unavailable,
}

/// Why a typed call has no value. `E` is the method's own error, `C` the error of untyped calls:
/// [`Error`] on a session, `dunlin::ChannelError` over a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure<E, C = Error> {
    /// The method answered with its own error.
    Method(E),
    /// The server has no such method: it is older, or newer and has dropped it.
    UnknownMethod(Ran),
    /// The server could not decode the request: the two sides have versions that do not fit
    /// together.
    BadRequest(Ran),
    /// The client could not decode the response: the two sides have versions that do not fit
    /// together.
    BadResponse(DecodeError),
    /// The request could not be encoded.
    BadValue,
    /// The metadata cannot be sent; the call was not made.
    BadMeta(MetaError),
    /// Anything else: deadlines, failures, overload.
    Call(C),
}

/// The error of an untyped call.
pub trait CallFailure {
    /// Whether the handler ran.
    fn ran(&self) -> Ran;

    /// The error code with which the server answered, if it did.
    fn code(&self) -> Option<ErrorCode>;
}

/// A typed call that was not issued.
#[derive(Debug)]
pub struct NotSent {
    /// The reason.
    pub failure: Failure<Infallible>,
    /// The msgbufs of the call: those that the caller gave, or those taken from the pool.
    pub bufs: Vec<MsgBuf>,
}

impl Error {
    /// The failure of an operation whose endpoint is gone.
    pub const fn gone(ran: Ran) -> Self {
        Self::Rpc(RpcError::SessionClosed(CloseReason::EndpointClosed, ran))
    }

    /// Whether the handler ran.
    pub const fn ran(&self) -> Ran {
        match self {
            Self::Rpc(error) => error.ran(),
            Self::Refused(kind) => kind.ran(),
            Self::Memory(_) | Self::NoSession | Self::WrongEndpoint | Self::Unavailable => Ran::No,
        }
    }

    /// Whether the call ended because the session was closed, or its peer failed.
    pub const fn is_closed(&self) -> bool {
        matches!(
            self,
            Self::NoSession
                | Self::Refused(CallErrorKind::NoSession)
                | Self::Rpc(RpcError::PeerFailed(_) | RpcError::SessionClosed(..))
        )
    }
}

impl CallFailure for Error {
    fn ran(&self) -> Ran {
        self.ran()
    }

    fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Rpc(RpcError::Rejected(code, _)) => Some(*code),
            _ => None,
        }
    }
}

impl<E, C: CallFailure> Failure<E, C> {
    /// Turns the error of an untyped call into a failure.
    pub fn of(error: C) -> Self {
        match error.code() {
            Some(ErrorCode::UNKNOWN_TYPE) => Self::UnknownMethod(error.ran()),
            Some(ErrorCode::UNDECODABLE) => Self::BadRequest(error.ran()),
            _ => Self::Call(error),
        }
    }

    /// Whether the method ran.
    pub fn ran(&self) -> Ran {
        match self {
            Self::Method(_) | Self::BadResponse(_) => Ran::Yes,
            Self::UnknownMethod(ran) | Self::BadRequest(ran) => *ran,
            Self::BadValue | Self::BadMeta(_) => Ran::No,
            Self::Call(error) => error.ran(),
        }
    }

    /// Whether the server may have run the method without the client knowing it. Before you repeat
    /// such a call, decide whether the method may run twice.
    pub fn is_uncertain(&self) -> bool {
        match self {
            // The method ran, and its value is lost.
            Self::BadResponse(_) => true,
            other => matches!(other.ran(), Ran::Unknown),
        }
    }
}

impl<C> Failure<Infallible, C> {
    /// The same failure for any method, because it is not the method's own error.
    pub fn widen<E>(self) -> Failure<E, C> {
        match self {
            Self::Method(never) => match never {},
            Self::UnknownMethod(ran) => Failure::UnknownMethod(ran),
            Self::BadRequest(ran) => Failure::BadRequest(ran),
            Self::BadResponse(error) => Failure::BadResponse(error),
            Self::BadValue => Failure::BadValue,
            Self::BadMeta(error) => Failure::BadMeta(error),
            Self::Call(error) => Failure::Call(error),
        }
    }
}

impl<E> From<Error> for Failure<E> {
    fn from(error: Error) -> Self {
        Self::of(error)
    }
}

impl<E, C> From<EncodeError> for Failure<E, C> {
    fn from(_: EncodeError) -> Self {
        Self::BadValue
    }
}

impl<E, C> From<MetaError> for Failure<E, C> {
    fn from(error: MetaError) -> Self {
        Self::BadMeta(error)
    }
}

impl From<AllocError> for Error {
    fn from(error: AllocError) -> Self {
        Self::Memory(error)
    }
}

impl From<HandleError> for Error {
    fn from(error: HandleError) -> Self {
        match error {
            HandleError::Ended => Self::NoSession,
            HandleError::WrongEndpoint => Self::WrongEndpoint,
        }
    }
}

impl From<RpcError> for Error {
    fn from(error: RpcError) -> Self {
        Self::Rpc(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rpc(error) => error.fmt(f),
            Self::Refused(CallErrorKind::Overloaded) => {
                f.write_str("the session's backlog is full; wait for a call to end and try again")
            }
            Self::Refused(CallErrorKind::NoSession) | Self::NoSession => {
                f.write_str("the session is closed; connect again")
            }
            Self::Refused(CallErrorKind::WrongEndpoint) | Self::WrongEndpoint => {
                HandleError::WrongEndpoint.fmt(f)
            }
            Self::Refused(CallErrorKind::TooLarge { limit }) => {
                write!(
                    f,
                    "the request is too large: the session takes {limit} bytes"
                )
            }
            Self::Memory(error) => error.fmt(f),
            Self::Unavailable => {
                f.write_str("the endpoint is gone, or this call came from inside another operation")
            }
        }
    }
}

impl std::error::Error for Error {}

impl<E: fmt::Display, C: fmt::Display> fmt::Display for Failure<E, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Method(error) => error.fmt(f),
            Self::UnknownMethod(_) => f.write_str("the server has no such method"),
            Self::BadRequest(_) => f.write_str("the server could not decode the request"),
            Self::BadResponse(error) => write!(f, "the response is not what it should be: {error}"),
            Self::BadValue => EncodeError.fmt(f),
            Self::BadMeta(error) => error.fmt(f),
            Self::Call(error) => error.fmt(f),
        }
    }
}

impl<E, C> std::error::Error for Failure<E, C>
where
    E: fmt::Debug + fmt::Display,
    C: fmt::Debug + fmt::Display,
{
}

impl fmt::Display for NotSent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.failure.fmt(f)
    }
}

impl std::error::Error for NotSent {}

#[cfg(test)]
mod tests;
