//! Options of a client, and the names and ends of its operations.

use dunlin_core::Nanos;

use crate::wire::Answer;

/// The name of an operation, chosen by the program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Token(pub u64);

/// Options of a client.
#[derive(Clone, Copy, Debug)]
pub struct ClientOptions {
    /// The deadline of operations that are begun without one.
    pub deadline: Nanos,
    /// After this time without an answer, an operation is sent again, to the next replica. Each
    /// time a replica leaves a write unanswered, the next attempt at that replica gets twice as
    /// long, as slow disks may need it.
    pub attempt: Nanos,
    /// The pause after a call to a replica that does not know the leader or cannot be reached.
    pub pause: Nanos,
    /// Bytes of a value for which a get makes room. A longer value takes a second call.
    pub expected_value: usize,
    /// The pause after a session could not be made. It doubles with each further failure.
    pub least_pause: Nanos,
    /// The longest pause.
    pub most_pause: Nanos,
}

impl ClientOptions {
    /// The default options.
    pub const DEFAULT: Self = Self {
        deadline: Nanos::from_secs(5),
        attempt: Nanos::from_millis(250),
        pause: Nanos::from_millis(5),
        expected_value: 1024,
        least_pause: Nanos::from_millis(1),
        most_pause: Nanos::from_millis(200),
    };
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The end of an operation.
#[derive(Debug)]
pub struct End {
    /// The operation.
    pub token: Token,
    /// [`Answer::Found`] or [`Answer::Missing`] for a get; [`Answer::Items`] for a range;
    /// [`Answer::Events`] or [`Answer::Forgotten`] for a watch; [`Answer::Written`],
    /// [`Answer::Differs`], [`Answer::Deleted`] or [`Answer::Conflict`] for a change.
    pub result: Result<Answer, Error>,
}

/// The reason why an operation has no answer. After any of them except [`Error::Unknown`], the
/// operation has changed nothing and never will.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// The key is empty or longer than [`MAX_KEY`](crate::MAX_KEY).
    BadKey,
    /// The value is longer than [`MAX_VALUE`](crate::MAX_VALUE), or than the session's messages.
    TooLong,
    /// A range asks for fewer than 1 or more than [`MAX_ITEMS`](crate::MAX_ITEMS) items.
    BadLimit,
    /// A lifetime is 0 or longer than [`MAX_LIFETIME`](crate::MAX_LIFETIME).
    BadLifetime,
    /// A transaction writes a key twice, has more than [`MAX_STEPS`](crate::MAX_STEPS) compares or
    /// writes, has a key or value of a bad length, or takes more than 1 MiB.
    BadSteps,
    /// No leader has answered before the deadline.
    Unavailable,
    /// No leader has answered before the deadline, or a leader's answer was malformed. The change
    /// may or may not be made.
    Unknown,
    /// None of the replicas speaks this version of the protocol.
    Incompatible,
    /// The disk of the leader is full. Writes succeed again once it has room.
    Full,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::BadKey => "a key has 1 to 1024 bytes",
            Self::TooLong => "a value has at most 1 MiB",
            Self::BadLimit => "a range returns 1 to 10000 items",
            Self::BadLifetime => "a lifetime is at least 1 ms and at most 100 years",
            Self::BadSteps => {
                "a transaction writes each key once, has up to 128 compares and 128 writes with \
                 keys of 1 to 1024 bytes, and takes 1 MiB at most"
            }
            Self::Unavailable => "no leader has answered; nothing has changed",
            Self::Unknown => "no leader has answered; the change may or may not be made",
            Self::Incompatible => "no replica speaks this version of the protocol",
            Self::Full => "the disk of the leader is full; nothing has changed",
        })
    }
}

impl std::error::Error for Error {}
