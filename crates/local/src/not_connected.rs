//! Why a session that a future waits for is not connected.

use std::fmt;
use std::io;

use dunlin_core::OpenError;
use dunlin_nexus::{ConnectError, FailedConnect};
use dunlin_service::Error;

/// Why a session is not connected.
#[derive(Debug)]
pub enum NotConnected {
    /// The server's address is not known.
    Address(io::Error),
    /// This endpoint cannot have the session.
    Open(OpenError),
    /// The session could not be made. Holds the server's address, and the reason.
    Failed(FailedConnect),
    /// The session has ended, or is another endpoint's, or this endpoint is gone.
    Gone(Error),
}

impl fmt::Display for NotConnected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(error) => write!(f, "the server's address is not known: {error}"),
            Self::Open(error) => error.fmt(f),
            Self::Failed(failed) => failed.fmt(f),
            Self::Gone(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NotConnected {}

impl From<ConnectError> for NotConnected {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Address(error) => Self::Address(error),
            ConnectError::Open(error) => Self::Open(error),
            _ => Self::Gone(Error::NoSession),
        }
    }
}

impl From<NotConnected> for Error {
    /// Leaves out address and reason, for functions that return the errors of calls.
    fn from(error: NotConnected) -> Self {
        match error {
            NotConnected::Address(_) | NotConnected::Open(_) | NotConnected::Failed(_) => {
                Self::NoSession
            }
            NotConnected::Gone(error) => error,
        }
    }
}
