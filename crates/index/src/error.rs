//! The errors of a client's operations.

use std::fmt;

use crate::wire::Status;

/// The reason why an operation has no result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// The key is empty, or has more than 255 bytes.
    BadKey,
    /// The value has more than 16 KiB.
    TooLong,
    /// The start of the range is above its end, or a key of the range has more than 255 bytes.
    BadRange,
    /// The limit is 0, or more than 2^20 items for a scan.
    BadLimit,
    /// The session was not open, was full, or failed before the answer came. A write did not
    /// happen.
    Unavailable,
    /// The operation only reads, and its answer did not come before the deadline.
    DeadlinePassed,
    /// The write was sent, and no answer arrived: it may have happened, may still happen, or may
    /// never happen.
    Unknown,
    /// The client has no memory for the request or its answer.
    NoBuffer,
    /// The other side is not a server of this service and version.
    Incompatible,
}

impl Error {
    /// The error for a status of the server.
    pub(crate) const fn of_status(status: Status) -> Self {
        match status {
            Status::BadKey => Self::BadKey,
            Status::TooLong => Self::TooLong,
            Status::BadRange => Self::BadRange,
            Status::BadLimit => Self::BadLimit,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BadKey => "a key has 1 to 255 bytes",
            Self::TooLong => "a value has at most 16384 bytes",
            Self::BadRange => "the start of the range is above its end",
            Self::BadLimit => "a scan's limit is 1 to 1048576 items, and a sum's is at least 1",
            Self::Unavailable => "no server was ready before the deadline",
            Self::DeadlinePassed => "the deadline passed before the answer came",
            Self::Unknown => {
                "no answer came, so the write may or may not have happened; read the key to see"
            }
            Self::NoBuffer => "this process has no memory for the message",
            Self::Incompatible => {
                "the other side does not speak this version of the index's protocol"
            }
        })
    }
}

impl std::error::Error for Error {}
