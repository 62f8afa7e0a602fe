//! The protocol's numbers: its version, types of requests, limits and refusals; and the error that
//! all decoders share.

use dunlin_wire::ReqType;

/// The version of the protocol.
pub const VERSION: u8 = 1;

/// One operation on one key.
pub const KEYED: ReqType = ReqType(0x6900);
/// A part of a range, or the number or sum of its items.
pub const SCAN: ReqType = ReqType(0x6901);

/// The longest value.
pub const MAX_VALUE: usize = 16 << 10;

/// The most items that a scan may ask for.
pub const MAX_LIMIT: u32 = 1 << 20;

/// The most bytes of an answer to a scan. Any item fits.
pub const SCAN_ROOM: usize = 64 << 10;

/// The bytes are not a message of this version of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed;

/// The reason why a server refuses a well-formed request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Status {
    /// The key is empty, or longer than [`MAX_KEY`](crate::MAX_KEY).
    BadKey = 17,
    /// The value is longer than [`MAX_VALUE`].
    TooLong = 18,
    /// The start of the range is above its end, or a key of the range is longer than
    /// [`MAX_KEY`](crate::MAX_KEY).
    BadRange = 19,
    /// The limit is 0, or above [`MAX_LIMIT`] for a scan.
    BadLimit = 20,
}

impl Status {
    const ALL: [Self; 4] = [Self::BadKey, Self::TooLong, Self::BadRange, Self::BadLimit];

    /// Its number in answers.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    pub(crate) fn from_number(number: u8) -> Result<Self, Malformed> {
        let is_it = |status: &Self| status.number() == number;
        Self::ALL.into_iter().find(is_it).ok_or(Malformed)
    }
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the bytes are not a message of this version of the protocol")
    }
}

impl std::error::Error for Malformed {}
