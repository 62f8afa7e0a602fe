//! How an attempt failed, and whether its handler ran.

use dunlin_core::{CallErrorKind, CloseReason, RpcError};
use dunlin_wire::{ErrorCode, Ran};

/// Why an attempt has no response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The endpoint did not take the request.
    NotTaken(CallErrorKind),
    /// The endpoint took the request, and had not transmitted any of it when this happened.
    NotSent(RpcError),
    /// The request was transmitted, partly or wholly, before this happened.
    Sent(RpcError),
}

impl Fault {
    /// The fault of an attempt that the endpoint took, and that ended with `error`.
    pub const fn of(error: RpcError) -> Self {
        match error.transmitted() {
            true => Self::Sent(error),
            false => Self::NotSent(error),
        }
    }

    /// Whether the handler ran.
    pub const fn ran(&self) -> Ran {
        match self {
            Self::NotTaken(_) | Self::NotSent(_) => Ran::No,
            Self::Sent(error) => error.ran(),
        }
    }

    /// The same fault, as if the server kept the rules of error codes.
    #[cfg(feature = "mutants")]
    pub(crate) const fn believed(&self) -> Self {
        match *self {
            Self::Sent(RpcError::Rejected(code, _)) => Self::Sent(RpcError::rejected(code, true)),
            fault => fault,
        }
    }

    /// True if the request was never transmitted.
    pub(crate) const fn is_unsent(&self) -> bool {
        matches!(self, Self::NotTaken(_) | Self::NotSent(_))
    }

    /// True if a server refused the request because it drains, and provably has not run it.
    pub(crate) fn is_of_drain(&self) -> bool {
        *self == Self::Sent(RpcError::rejected(ErrorCode::SHUTTING_DOWN, true))
    }

    /// The reason why the link has ended, if the fault shows that it has.
    pub(crate) const fn closes(&self) -> Option<CloseReason> {
        match self {
            Self::NotTaken(CallErrorKind::NoSession) => Some(CloseReason::Disconnected),
            Self::NotSent(error) | Self::Sent(error) => match error {
                RpcError::PeerFailed(_) => Some(CloseReason::PeerFailed),
                RpcError::SessionClosed(reason, _) => Some(*reason),
                _ => None,
            },
            Self::NotTaken(_) => None,
        }
    }
}
