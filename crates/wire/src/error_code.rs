//! The code in the `size` field of an ERR packet: why a request ended without a response (the table
//! of error codes in `docs/protocol.md`, rule W13). The server side of an endpoint writes it; the
//! client side passes it to the user unchanged.

use core::fmt;

#[cfg(test)]
mod tests;

/// Why a request ended without a response.
///
/// The constants are the protocol's own codes; [`ErrorCode::application`] makes an application's
/// code. Any other code reaches the user unchanged, so that newer servers may use more codes.
///
/// ```
/// use dunlin_wire::ErrorCode;
///
/// assert_eq!(ErrorCode::OVERLOADED.to_string(), "overloaded");
/// assert_eq!(ErrorCode::application(404).as_application(), Some(404));
/// assert_eq!(ErrorCode::OVERLOADED.as_application(), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ErrorCode(pub u32);

impl ErrorCode {
    /// The server has no handler for the request type.
    pub const UNKNOWN_TYPE: Self = Self(1);
    /// The request is larger than the server accepts.
    pub const TOO_LARGE: Self = Self(2);
    /// The response is larger than the client accepts.
    pub const RESPONSE_TOO_LARGE: Self = Self(3);
    /// The server has no memory or no place in a queue for the request.
    pub const OVERLOADED: Self = Self(4);
    /// The handler panicked, or dropped the request without an answer.
    pub const HANDLER_FAILED: Self = Self(5);
    /// The request was handled, but its response has been freed since (rule S3).
    pub const RESPONSE_GONE: Self = Self(6);
    /// The request was cancelled before its handler ran, or before its response was sent (rule S6).
    pub const CANCELLED: Self = Self(7);
    /// The typed layer could not decode the request's message.
    pub const UNDECODABLE: Self = Self(8);
    /// The server is draining: it takes no new requests, and ends when the running ones have ended.
    pub const SHUTTING_DOWN: Self = Self(9);
    /// The handler ran, and there was no memory for its response.
    pub const NO_RESPONSE_MEMORY: Self = Self(10);
    /// The handler itself refused the request, because it is overloaded: it rejected the request
    /// with [`Self::OVERLOADED`].
    pub const REFUSED: Self = Self(11);
    /// The service's time-out has passed. The handler may have run in part, and no longer runs.
    pub const TIMED_OUT: Self = Self(12);

    const APPLICATION: u32 = 0x1_0000;

    /// A code of the application; on the wire it is 0x1_0000 + `code`.
    #[inline]
    pub const fn application(code: u16) -> Self {
        Self(Self::APPLICATION | code as u32)
    }

    /// Whether this is one of the protocol's own codes, or reserved for one.
    #[inline]
    pub const fn is_protocols(self) -> bool {
        self.0 < Self::APPLICATION
    }

    /// The application's code, if this is an application's.
    #[inline]
    pub const fn as_application(self) -> Option<u16> {
        let code = (self.0 & 0xFFFF) as u16;
        if self.0 & !0xFFFF == Self::APPLICATION {
            Some(code)
        } else {
            None
        }
    }

    /// Whether the handler ran, if the server obeys the rules of these codes (rule W13). Servers of
    /// earlier releases break these rules: they also send `OVERLOADED` for a response without
    /// memory, and let handlers send any code. So a code that means [`Ran::No`] proves nothing if
    /// such a server has sent it. The error of a call also takes into account which server sent the
    /// code; therefore, its own `ran` is exact.
    pub const fn ran(self) -> Ran {
        match self {
            Self::UNKNOWN_TYPE
            | Self::TOO_LARGE
            | Self::OVERLOADED
            | Self::UNDECODABLE
            | Self::SHUTTING_DOWN => Ran::No,
            Self::RESPONSE_TOO_LARGE | Self::NO_RESPONSE_MEMORY | Self::REFUSED => Ran::Yes,
            _ if self.as_application().is_some() => Ran::Yes,
            // Several codes prove nothing. If a handler panics, the rest of its batch fails before
            // the handler has seen it. A response that has been freed may have been an error. A
            // request that was cancelled or timed out may have run or not. A newer server's code
            // may mean anything.
            _ => Ran::Unknown,
        }
    }
}

/// Whether the handler of a call that has ended ran, as far as the caller can know.
///
/// ```
/// use dunlin_wire::{ErrorCode, Ran};
///
/// assert_eq!(ErrorCode::SHUTTING_DOWN.ran(), Ran::No);
/// assert_eq!(ErrorCode::SHUTTING_DOWN.ran().join(Ran::Unknown), Ran::Unknown);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ran {
    /// The handler did not run, and will not.
    No,
    /// The handler ran, at least in part.
    Yes,
    /// The handler may have run, or may still run.
    Unknown,
}

impl Ran {
    /// Whether the handler ran in either of two attempts at the same call.
    #[must_use]
    pub const fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::Yes, _) | (_, Self::Yes) => Self::Yes,
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::No, Self::No) => Self::No,
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(code) = self.as_application() {
            return write!(f, "application error {code}");
        }
        f.write_str(match *self {
            Self::UNKNOWN_TYPE => "unknown request type",
            Self::TOO_LARGE => "request too large",
            Self::RESPONSE_TOO_LARGE => "response too large",
            Self::OVERLOADED => "overloaded",
            Self::HANDLER_FAILED => "handler failed",
            Self::RESPONSE_GONE => "response gone",
            Self::CANCELLED => "cancelled",
            Self::UNDECODABLE => "undecodable request",
            Self::SHUTTING_DOWN => "the server is shutting down",
            Self::NO_RESPONSE_MEMORY => "no memory for the response",
            Self::REFUSED => "refused by the handler",
            Self::TIMED_OUT => "the time-out of the service has passed",
            Self(code) => return write!(f, "error {code:#x}"),
        })
    }
}
