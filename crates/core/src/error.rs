//! How a call, a session or an opening can fail. Small `Copy` values: nothing here allocates.

use crate::law::Law;
use std::fmt;

use dunlin_msgbuf::MsgBuf;
use dunlin_wire::{ErrorCode, Ran};

use crate::config::ConfigError;

/// Why a call ended without a response. Every call ends with exactly one response or error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RpcError {
    /// The deadline passed first.
    DeadlinePassed(Ran),
    /// This side cancelled the call.
    Cancelled(Ran),
    /// The peer was declared failed.
    PeerFailed(Ran),
    /// The session was refused, reset or closed.
    SessionClosed(CloseReason, Ran),
    /// The server answered with an error code.
    Rejected(ErrorCode, Ran),
    /// The request is larger than the server accepts, as this side learnt when the session opened.
    /// The call had waited until then.
    TooLarge {
        /// The most bytes that the session accepts.
        limit: u32,
    },
    /// The response is larger than the buffer that was given for it.
    ResponseTooLarge {
        /// Bytes of the response.
        size: u32,
    },
}

/// A successful call stores only that it has no error; it does not pay for an error's fields. A
/// larger error would make every [`Done`](crate::Done) larger.
const _: () = assert!(size_of::<Result<(), RpcError>>() == 8);

impl RpcError {
    /// The server has answered with `code`. Unless it obeys the rules of codes (rule W13), its
    /// handlers may send any code, so no code proves that they did not run.
    pub const fn rejected(code: ErrorCode, keeps_rules: bool) -> Self {
        let ran = match code.ran() {
            Ran::No if !keeps_rules => Ran::Unknown,
            ran => ran,
        };
        Self::Rejected(code, ran)
    }

    /// The same error for a call of which no packet has left.
    pub(crate) const fn before_transmission(self) -> Self {
        match self {
            Self::DeadlinePassed(_) => Self::DeadlinePassed(Ran::No),
            Self::Cancelled(_) => Self::Cancelled(Ran::No),
            Self::PeerFailed(_) => Self::PeerFailed(Ran::No),
            Self::SessionClosed(reason, _) => Self::SessionClosed(reason, Ran::No),
            Self::TooLarge { .. } | Self::Rejected(..) | Self::ResponseTooLarge { .. } => self,
        }
    }

    /// Whether the handler ran.
    pub const fn ran(&self) -> Ran {
        match self {
            Self::DeadlinePassed(ran)
            | Self::Cancelled(ran)
            | Self::PeerFailed(ran)
            | Self::SessionClosed(_, ran)
            | Self::Rejected(_, ran) => *ran,
            Self::TooLarge { .. } => Ran::No,
            Self::ResponseTooLarge { .. } => Ran::Yes,
        }
    }

    /// Whether a packet of the request may have left this side. If none has, the handler has not
    /// run; the reverse does not hold.
    pub const fn transmitted(&self) -> bool {
        match self {
            // Without an answer, the only proof that a handler did not run is that nothing left.
            Self::DeadlinePassed(ran)
            | Self::Cancelled(ran)
            | Self::PeerFailed(ran)
            | Self::SessionClosed(_, ran) => !matches!(ran, Ran::No),
            Self::TooLarge { .. } => false,
            Self::Rejected(..) | Self::ResponseTooLarge { .. } => true,
        }
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DeadlinePassed(_) => f.write_str("the deadline passed before the response came"),
            Self::Cancelled(_) => f.write_str("the call was cancelled"),
            Self::PeerFailed(_) => f.write_str("the peer has failed; connect again"),
            Self::SessionClosed(reason, _) => write!(f, "the session is closed: {reason}"),
            Self::Rejected(code, _) => write!(f, "the server rejected the request: {code}"),
            Self::TooLarge { limit } => {
                write!(
                    f,
                    "the request is too large: the session takes {limit} bytes"
                )
            }
            Self::ResponseTooLarge { size } => {
                write!(
                    f,
                    "the response has {size} bytes, more than the caller has made room for"
                )
            }
        }
    }
}

impl std::error::Error for RpcError {}

/// Why a session ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseReason {
    /// One of the sides disconnected the session.
    Disconnected,
    /// The peer was declared failed.
    PeerFailed,
    /// The other side no longer knows the session: it restarted, or had declared us failed.
    Reset,
    /// The server refused the session.
    Refused,
    /// No peer answered before the deadline of the connect.
    ConnectTimeout,
    /// This endpoint is going away.
    EndpointClosed,
    /// This endpoint found a contradiction in its own state, and ended all of its sessions. That is
    /// a fault of the library.
    Inconsistent(Law),
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disconnected => "disconnected",
            Self::PeerFailed => "the peer has failed",
            Self::Reset => "the peer no longer knows the session",
            Self::Refused => "the server refused the session",
            Self::ConnectTimeout => "no server answered before the deadline of the connect",
            Self::EndpointClosed => "the endpoint was closed",
            Self::Inconsistent(law) => {
                return write!(
                    f,
                    "this endpoint found its state inconsistent ({law}) and ended its sessions; \
                     connect again, and please report it"
                );
            }
        })
    }
}

/// Why `call` did not take a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallErrorKind {
    /// The session's backlog is full. Wait for a completion, then try again.
    Overloaded,
    /// The session no longer exists.
    NoSession,
    /// The session belongs to another endpoint. Nothing was sent.
    WrongEndpoint,
    /// The request is larger than the session allows.
    TooLarge {
        /// The most bytes that the session accepts.
        limit: u32,
    },
}

impl CallErrorKind {
    /// Whether the handler ran: it did not, because the call was never taken.
    pub const fn ran(&self) -> Ran {
        match self {
            Self::Overloaded | Self::NoSession | Self::WrongEndpoint | Self::TooLarge { .. } => {
                Ran::No
            }
        }
    }
}

/// A refused call, with its buffers.
#[derive(Debug)]
pub struct CallError {
    /// The reason.
    pub kind: CallErrorKind,
    /// The request, unchanged.
    pub request: MsgBuf,
    /// The response buffer.
    pub response: MsgBuf,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            CallErrorKind::Overloaded => {
                f.write_str("the session's backlog is full; wait for a completion and try again")
            }
            CallErrorKind::NoSession => f.write_str("the session is closed; connect again"),
            CallErrorKind::WrongEndpoint => f.write_str(WRONG_ENDPOINT),
            CallErrorKind::TooLarge { limit } => write!(
                f,
                "the request has {} bytes and the session takes {limit}",
                self.request.len()
            ),
        }
    }
}

impl std::error::Error for CallError {}

/// Why a handle is not valid at the endpoint to which it was given. The endpoint did nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HandleError {
    /// The session has ended, the call has completed, or the request was answered.
    Ended,
    /// The handle belongs to another endpoint.
    WrongEndpoint,
}

const WRONG_ENDPOINT: &str =
    "the handle belongs to another endpoint; use it with the endpoint that returned it";

impl fmt::Display for HandleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ended => "the session, the call or the request has ended",
            Self::WrongEndpoint => WRONG_ENDPOINT,
        })
    }
}

impl std::error::Error for HandleError {}

/// Why a session cannot be opened, accepted or completed at this side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenError {
    /// `max_sessions` are in use.
    TooManySessions,
    /// `strict_credits`: the RX queue cannot hold the packets of one more session.
    NoCredits,
    /// An option of the session is out of range.
    Options(ConfigError),
    /// The peer's numbers are out of range or do not fit the offer.
    BadOffer,
    /// There is no such session, or it is not waiting for an answer.
    NoSession,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooManySessions => {
                "the endpoint has `max_sessions` sessions; raise that limit or close a session"
            }
            Self::NoCredits => {
                "strict_credits: the RX queue is promised to other sessions; ask for fewer credits"
            }
            Self::Options(wrong) => return wrong.fmt(f),
            Self::BadOffer => "the other side's session parameters are out of range",
            Self::NoSession => "the session is closed or was already answered",
        })
    }
}

impl std::error::Error for OpenError {}

#[cfg(test)]
mod tests;
