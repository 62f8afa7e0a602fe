//! The errors of operations.

use std::fmt;

use crate::wire::Status;

/// The reason why an operation has no result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// The key does not have 1 to 250 bytes.
    BadKey,
    /// The value exceeds 1 MiB or, in a cache, a quarter of the partition's memory.
    TooLong,
    /// There is an item with this key, and the write requires that there is none.
    Present,
    /// There is no item with this key, and the operation requires one.
    Absent,
    /// The item has another version.
    VersionDiffers,
    /// The item's value is not a decimal number below 2^64.
    NotANumber,
    /// All memory of the partition is used. This never happens in cache mode.
    NoMemory,
    /// No server was ready before the deadline. The operation did not happen.
    Unavailable,
    /// The client itself has ended, which shows nothing about the server. The operation had no
    /// effect: it was not sent, or only reads.
    Ended,
    /// The deadline passed before the answer came. The operation only reads, so it had no effect.
    DeadlinePassed,
    /// The write was sent, and its answer did not arrive: the deadline has passed, or the server
    /// has failed. The write may or may not have happened, and may still happen.
    Unknown,
    /// The client has no memory for the request or its answer.
    NoBuffer,
    /// The server does not accept requests or answers of the length that this protocol needs.
    MessageTooLong,
    /// The other side is not a server of this service, or has another version.
    Incompatible,
    /// There is no such partition.
    NoPartition,
}

impl Error {
    /// Whether the operation may have happened despite the error.
    #[must_use]
    pub const fn is_uncertain(&self) -> bool {
        matches!(self, Self::Unknown)
    }

    /// The error for a status that does not report success, where the client has no other use for
    /// it.
    pub(crate) const fn of_status(status: Status) -> Self {
        match status {
            Status::Missing => Self::Absent,
            Status::Present => Self::Present,
            Status::Differs => Self::VersionDiffers,
            Status::NotANumber => Self::NotANumber,
            Status::NoMemory => Self::NoMemory,
            Status::TooLong => Self::TooLong,
            _ => Self::Incompatible,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BadKey => "a key has 1 to 250 bytes",
            Self::TooLong => "the value is too long",
            Self::Present => "there is an item with this key",
            Self::Absent => "there is no item with this key",
            Self::VersionDiffers => "the item has another version",
            Self::NotANumber => "the value is not a number",
            Self::NoMemory => "all memory of the server is used",
            Self::Unavailable => "no server was ready before the deadline",
            Self::Ended => "the client has ended; open another one",
            Self::DeadlinePassed => "the deadline passed before the answer came",
            Self::Unknown => {
                "no answer came, so the write may or may not have happened; read the key to see"
            }
            Self::NoBuffer => "this process has no memory for the message",
            Self::MessageTooLong => "the server does not take messages of this length",
            Self::Incompatible => {
                "the other side does not speak this version of the key-value protocol"
            }
            Self::NoPartition => "the server has no such partition",
        })
    }
}

impl std::error::Error for Error {}
