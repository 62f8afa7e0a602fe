//! Taking numbers: the request, and its answer of four, eight or one byte.

use std::ops::Range;

use super::format::{Malformed, VERSION};
use super::status::Status;

/// A request that takes numbers of a sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Take {
    /// The number that the server has given the sequence in this epoch.
    pub sequence: u16,
    /// The epoch of the server, as the client knows it.
    pub epoch: u32,
    /// How many numbers to take. A server refuses 0, and more than [`super::format::MAX_COUNT`].
    pub count: u32,
    /// The upper four bytes that the client expects of the first number. If they are right, the
    /// answer has only the lower four (Spec-S0, RDMA §4.2.1).
    pub expected: Option<u32>,
}

/// The answer to a [`Take`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The lower four bytes of the first number, whose upper four the client has predicted.
    Lower(u32),
    /// The first number.
    Whole(u64),
    /// No numbers.
    Refused(Status),
}

/// The flag of a request that has expected bytes.
const SPECULATES: u8 = 1;

/// A request as two words, of which the first names the sequence and the second has the count. A
/// server compares the first with the word of its sequence in place of reading the fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Words {
    pub(crate) head: Head,
    /// The count, below the upper four bytes that the client expects.
    pub(crate) rest: u64,
}

/// The first eight bytes of a request: version, flags, sequence and epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head(u64);

impl Head {
    /// The bytes of requests for a sequence in an epoch that expect no upper bytes.
    pub(crate) const fn new(sequence: u16, epoch: u32) -> Self {
        Self(VERSION as u64 | (sequence as u64) << 16 | (epoch as u64) << 32)
    }

    /// These bytes with the flag of requests that expect upper bytes.
    pub(crate) const fn speculating(self) -> Self {
        Self(self.0 | (SPECULATES as u64) << 8)
    }

    /// The number of the sequence, if the request is valid.
    #[inline]
    pub(crate) const fn sequence(self) -> usize {
        (self.0 >> 16 & 0xffff) as usize
    }
}

impl Words {
    /// Reads a request of the right length, whether or not it is valid.
    #[inline]
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let (words, rest) = bytes.as_chunks::<8>();
        let (&[head, count], []) = (words, rest) else {
            return None;
        };
        Some(Self {
            head: Head(u64::from_le_bytes(head)),
            rest: u64::from_le_bytes(count),
        })
    }
}

impl Take {
    /// Bytes of a request.
    pub const SIZE: usize = 16;

    /// Reads a request.
    ///
    /// # Errors
    /// [`Malformed`].
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        // One comparison of the length covers all fields.
        let (words, rest) = bytes.as_chunks::<4>();
        let (&[head, epoch, count, upper], []) = (words, rest) else {
            return Err(Malformed);
        };
        let [version, flags, sequence @ ..] = head;
        let upper = u32::from_le_bytes(upper);
        let expected = match flags {
            0 if upper == 0 => None,
            SPECULATES => Some(upper),
            _ => return Err(Malformed),
        };
        if version != VERSION {
            return Err(Malformed);
        }
        Ok(Self {
            sequence: u16::from_le_bytes(sequence),
            epoch: u32::from_le_bytes(epoch),
            count: u32::from_le_bytes(count),
            expected,
        })
    }

    /// Encodes the request.
    #[inline]
    #[must_use]
    pub fn encode(&self) -> [u8; Self::SIZE] {
        let mut out = [0; Self::SIZE];
        out[0] = VERSION;
        out[1] = u8::from(self.expected.is_some());
        out[2..4].copy_from_slice(&self.sequence.to_le_bytes());
        out[4..8].copy_from_slice(&self.epoch.to_le_bytes());
        out[8..12].copy_from_slice(&self.count.to_le_bytes());
        out[12..].copy_from_slice(&self.expected.unwrap_or(0).to_le_bytes());
        out
    }

    /// The answer that gives numbers from `first` on.
    #[inline]
    #[must_use]
    pub fn answer(&self, first: u64) -> Answer {
        let (upper, lower) = halves(first);
        match self.expected == Some(upper) {
            true => Answer::Lower(lower),
            false => Answer::Whole(first),
        }
    }
}

impl Answer {
    /// The most bytes of an answer.
    pub const MAX_SIZE: usize = 8;

    /// Bytes of the answer.
    #[inline]
    #[must_use]
    pub const fn size(&self) -> usize {
        match self {
            Self::Lower(_) => 4,
            Self::Whole(_) => 8,
            Self::Refused(_) => 1,
        }
    }

    /// Writes the answer into `out`, which has the answer's size.
    #[inline]
    pub fn encode(&self, out: &mut [u8]) {
        match self {
            Self::Lower(lower) => out.copy_from_slice(&lower.to_le_bytes()),
            Self::Whole(first) => out.copy_from_slice(&first.to_le_bytes()),
            Self::Refused(status) => out.copy_from_slice(&[status.number()]),
        }
    }

    /// Reads an answer, whose length determines its kind.
    ///
    /// # Errors
    /// [`Malformed`].
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        if let Ok(lower) = bytes.try_into() {
            return Ok(Self::Lower(u32::from_le_bytes(lower)));
        }
        if let Ok(first) = bytes.try_into() {
            return Ok(Self::Whole(u64::from_le_bytes(first)));
        }
        match bytes {
            [number] => Status::from_number(*number).map(Self::Refused),
            _ => Err(Malformed),
        }
    }

    /// The first number, if the client has expected `upper` as its upper four bytes.
    ///
    /// # Errors
    /// The server has refused.
    #[inline]
    pub const fn first(&self, upper: u32) -> Result<u64, Status> {
        match *self {
            Self::Lower(lower) => Ok((upper as u64) << 32 | lower as u64),
            Self::Whole(first) => Ok(first),
            Self::Refused(status) => Err(status),
        }
    }
}

/// The upper and the lower four bytes of a number.
#[expect(clippy::cast_possible_truncation, reason = "halves of the number")]
pub(crate) const fn halves(number: u64) -> (u32, u32) {
    ((number >> 32) as u32, number as u32)
}

/// The numbers of an answer; `None` if they would go beyond 64 bits, which no server gives.
#[inline]
pub(crate) fn numbers_from(first: u64, count: u32) -> Option<Range<u64>> {
    let end = first.checked_add(u64::from(count))?;
    Some(first..end)
}
