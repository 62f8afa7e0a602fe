//! The code in the `size` field of an ERR packet: why a request ended without a response (the table
//! of error codes in `docs/protocol.md`, rule W6). Written by the server side of an endpoint, read
//! by its client side, and given to the user as it came.

use core::fmt;

#[cfg(test)]
mod tests;

/// Why a request ended without a response.
///
/// The constants are the protocol's own codes; [`ErrorCode::application`] makes the others. A code
/// that is neither is passed on to the user as it is, so that a newer server may know more codes.
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
    /// The server has no memory or no queue place left for the request.
    pub const OVERLOADED: Self = Self(4);
    /// The handler panicked, or dropped the request without an answer.
    pub const HANDLER_FAILED: Self = Self(5);
    /// The request was handled, but its response has been given back since (rule S3).
    pub const RESPONSE_GONE: Self = Self(6);
    /// The request was cancelled before its handler ran, or before its response was sent (rule S6).
    pub const CANCELLED: Self = Self(7);
    /// The typed layer could not decode the request's message.
    pub const UNDECODABLE: Self = Self(8);

    const APPLICATION: u32 = 0x1_0000;

    /// A code of the application's own, on the wire 0x1_0000 + `code`.
    #[inline]
    pub const fn application(code: u16) -> Self {
        Self(Self::APPLICATION | code as u32)
    }

    /// The application's code, if this is one.
    #[inline]
    pub const fn as_application(self) -> Option<u16> {
        let code = (self.0 & 0xFFFF) as u16;
        if self.0 & !0xFFFF == Self::APPLICATION {
            Some(code)
        } else {
            None
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
            Self(code) => return write!(f, "error {code:#x}"),
        })
    }
}
