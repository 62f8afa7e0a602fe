//! How an operation of the asynchronous face can fail.

use dunlin_core::{CallErrorKind, CloseReason, RpcError};
use dunlin_msgbuf::{AllocError, MsgBuf};

/// Why an operation failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// The call was taken and ended without a response.
    Rpc(RpcError),
    /// The call was not taken.
    Refused(CallErrorKind),
    /// There is no memory for a msgbuf.
    Memory(AllocError),
    /// The session is closed, or was never opened.
    NoSession,
    /// The `Local` is gone, or the operation came from inside another one (from a function that
    /// writes a response, say).
    Unavailable,
}

/// A call that failed, with its msgbufs.
#[derive(Debug)]
pub struct Failed {
    /// Why.
    pub error: Error,
    /// The request, unchanged.
    pub request: MsgBuf,
    /// The buffer for the response, if there was one.
    pub response: Option<MsgBuf>,
}

impl Error {
    /// The call ended because the session was closed, or its peer failed.
    pub const fn is_closed(&self) -> bool {
        matches!(
            self,
            Self::NoSession
                | Self::Refused(CallErrorKind::NoSession)
                | Self::Rpc(RpcError::PeerFailed | RpcError::SessionClosed(_))
        )
    }

    pub(super) const GONE: Self = Self::Rpc(RpcError::SessionClosed(CloseReason::EndpointClosed));
}

impl From<Failed> for Error {
    /// The msgbufs go back to their pool.
    fn from(failed: Failed) -> Self {
        failed.error
    }
}

impl From<AllocError> for Error {
    fn from(error: AllocError) -> Self {
        Self::Memory(error)
    }
}

impl From<RpcError> for Error {
    fn from(error: RpcError) -> Self {
        Self::Rpc(error)
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rpc(error) => error.fmt(f),
            Self::Refused(CallErrorKind::Overloaded) => {
                f.write_str("the session's backlog is full; wait for a call to end and try again")
            }
            Self::Refused(CallErrorKind::NoSession) | Self::NoSession => {
                f.write_str("the session is closed; connect again")
            }
            Self::Refused(CallErrorKind::TooLarge { limit }) => {
                write!(
                    f,
                    "the request is too large: the session takes {limit} bytes"
                )
            }
            Self::Memory(error) => error.fmt(f),
            Self::Unavailable => f.write_str("the endpoint is gone, or in use right here"),
        }
    }
}

impl std::error::Error for Error {}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for Failed {}
