//! The reasons why a server refuses a request.

use super::format::Malformed;

/// The reason for a refusal: an answer of one byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Status {
    /// The request names an older epoch, or a sequence that the server does not have, so the client
    /// must open the sequence again.
    Moved = 1,
    /// Another server has taken over, and this one gives no more numbers.
    Deposed = 2,
    /// This server does not serve yet, or no longer serves.
    NotServing = 3,
    /// A request takes 1 to [`super::format::MAX_COUNT`] numbers.
    BadCount = 4,
    /// The sequence has fewer numbers left than the request asks for.
    Exhausted = 5,
    /// There is no sequence with this name.
    NoSequence = 6,
    /// The name has characters, or a length, that [`super::Name`] does not allow.
    BadName = 7,
    /// The server has [`super::format::MAX_SEQUENCES`] sequences already.
    TooMany = 8,
    /// The server cannot keep another request, because too many already wait for its disk.
    Busy = 9,
}

impl Status {
    const ALL: [Self; 9] = [
        Self::Moved,
        Self::Deposed,
        Self::NotServing,
        Self::BadCount,
        Self::Exhausted,
        Self::NoSequence,
        Self::BadName,
        Self::TooMany,
        Self::Busy,
    ];

    /// Its number in answers.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The status with a number.
    ///
    /// # Errors
    /// No status has this number.
    pub fn from_number(number: u8) -> Result<Self, Malformed> {
        let is_it = |status: &Self| status.number() == number;
        Self::ALL.into_iter().find(is_it).ok_or(Malformed)
    }
}
