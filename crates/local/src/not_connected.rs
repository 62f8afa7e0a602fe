//! Why a session that a future waits for is not connected.

use std::fmt;

use dunlin_nexus::FailedConnect;
use dunlin_service::Error;

/// Why a session is not connected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotConnected {
    /// It could not be made. Holds the server's address, and the reason.
    Failed(FailedConnect),
    /// It has ended or is another endpoint's, or this endpoint is gone.
    Gone(Error),
}

impl fmt::Display for NotConnected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(failed) => failed.fmt(f),
            Self::Gone(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NotConnected {}

impl From<NotConnected> for Error {
    /// Leaves out address and reason, for functions that return the errors of calls.
    fn from(error: NotConnected) -> Self {
        match error {
            NotConnected::Failed(_) => Self::NoSession,
            NotConnected::Gone(error) => error,
        }
    }
}
