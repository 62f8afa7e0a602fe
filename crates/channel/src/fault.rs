//! How an attempt failed, and whether its handler ran.

use dunlin_core::{CallErrorKind, CloseReason, RpcError};
use dunlin_wire::Ran;

/// Why an attempt has no response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The endpoint did not take the request.
    NotTaken(CallErrorKind),
    /// The request was taken, and never transmitted before this happened.
    NotSent(RpcError),
    /// The request was transmitted, partly or wholly, before this happened.
    Sent(RpcError),
}

impl Fault {
    /// Whether the handler ran. A server that is not `precise` sends any code for any reason, so
    /// its refusals prove nothing.
    pub const fn ran(&self, precise: bool) -> Ran {
        match self {
            Self::NotTaken(_) | Self::NotSent(_) => Ran::No,
            Self::Sent(error @ RpcError::Rejected(_)) => match error.ran() {
                Ran::No if !precise => Ran::Unknown,
                ran => ran,
            },
            Self::Sent(error) => error.ran(),
        }
    }

    /// True if the request was never transmitted.
    pub(crate) const fn is_unsent(&self) -> bool {
        matches!(self, Self::NotTaken(_) | Self::NotSent(_))
    }

    /// The reason why the link has ended, if the fault shows that it has.
    pub(crate) const fn closes(&self) -> Option<CloseReason> {
        match self {
            Self::NotTaken(CallErrorKind::NoSession) => Some(CloseReason::Disconnected),
            Self::NotSent(error) | Self::Sent(error) => match error {
                RpcError::PeerFailed => Some(CloseReason::PeerFailed),
                RpcError::SessionClosed(reason) => Some(*reason),
                _ => None,
            },
            Self::NotTaken(_) => None,
        }
    }
}
