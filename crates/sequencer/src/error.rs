//! The errors of a client's operations.

use std::fmt;

use crate::wire::Status;

/// The reason why an operation has no numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// The program asked for no numbers, or for more than 2^20 in one request.
    BadCount,
    /// The sequence has too few numbers left, because it is at the end of 64 bits.
    Exhausted,
    /// The server has no sequence with this name, and the client did not ask to make it.
    NoSequence,
    /// The server has as many sequences as it can have.
    TooMany,
    /// The deadline passed before an answer with numbers arrived. A server may have given numbers
    /// that did not reach the client; they leave a gap.
    DeadlinePassed,
    /// The client has no memory for the request or its answer.
    NoBuffer,
    /// The other side is not a sequencer of this version.
    Incompatible,
}

impl Error {
    /// The error for a status that the client does not handle on its own; `None`: it tries again.
    pub(crate) const fn of_status(status: Status) -> Option<Self> {
        match status {
            Status::BadCount => Some(Self::BadCount),
            Status::Exhausted => Some(Self::Exhausted),
            Status::NoSequence => Some(Self::NoSequence),
            Status::TooMany => Some(Self::TooMany),
            // This client sends no invalid name.
            Status::BadName => Some(Self::Incompatible),
            Status::Moved | Status::Deposed | Status::NotServing | Status::Busy => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BadCount => "one request takes 1 to 1048576 numbers",
            Self::Exhausted => "the sequence has too few numbers left",
            Self::NoSequence => "the server has no sequence with this name",
            Self::TooMany => "the server already has 256 sequences",
            Self::DeadlinePassed => "the deadline passed before a server gave numbers",
            Self::NoBuffer => "this process has no memory for the message",
            Self::Incompatible => {
                "the other side does not speak this version of the sequencer's protocol"
            }
        })
    }
}

impl std::error::Error for Error {}
