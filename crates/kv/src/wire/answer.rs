//! Answers to [`KEYED`](super::format::KEYED) requests. The first byte is a [`Status`].
//!
//! ```text
//! found    status, 0 0 0, flags u32, version u64, length u32, lifetime u32,
//!          stamp u64 if the value is longer than a slice, bytes of the value
//! others   status, 0 0 0 0 0 0 0, then: written: version u64; counted: number u64, version u64;
//!          slice: bytes of the value
//! ```

use dunlin_store::SLICE;

use super::cursor::{Cursor, halves};
use super::format::Malformed;

/// Bytes before the value of a found item, if the value is not longer than a slice.
pub(super) const FOUND: usize = 24;
const SHORT: usize = 8;

/// The reason why an answer fits into its buffer.
const ROOM: &str = "the caller has made room for the answer";

/// The result of a request, as the first byte of its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
#[expect(missing_docs, reason = "the variants of `Answer` say the same")]
pub enum Status {
    Done = 0,
    Found = 1,
    Written = 2,
    Counted = 3,
    Slice = 4,
    Figures = 5,
    Multi = 6,
    Missing = 16,
    Present = 17,
    Differs = 18,
    NotANumber = 19,
    NoMemory = 20,
    TooLong = 21,
    Gone = 22,
    MapChanged = 23,
    Alone = 24,
}

impl Status {
    const ALL: [Self; 16] = [
        Self::Done,
        Self::Found,
        Self::Written,
        Self::Counted,
        Self::Slice,
        Self::Figures,
        Self::Multi,
        Self::Missing,
        Self::Present,
        Self::Differs,
        Self::NotANumber,
        Self::NoMemory,
        Self::TooLong,
        Self::Gone,
        Self::MapChanged,
        Self::Alone,
    ];

    #[inline]
    pub(super) fn read(byte: u8) -> Result<Self, Malformed> {
        let found = Self::ALL.into_iter().find(|it| *it as u8 == byte);
        found.ok_or(Malformed)
    }
}

/// An answer, as a client decodes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer<'a> {
    /// The operation has succeeded.
    Done,
    /// The item.
    Found(FoundItem<'a>),
    /// The item was written, and has this version now.
    Written(u64),
    /// The counter has this number and this version now.
    Counted(u64, u64),
    /// More of the value.
    Slice(&'a [u8]),
    /// Nothing was done, for this reason.
    Refused(Status),
}

/// An item in an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoundItem<'a> {
    /// The writer's flags.
    pub flags: u32,
    /// The item's version.
    pub version: u64,
    /// The length of its value.
    pub len: u32,
    /// Seconds until it expires; 0: never.
    pub lifetime: u32,
    /// The stamp of the value, if it is longer than a slice.
    pub stamp: u64,
    /// The value, or its first slice.
    pub value: &'a [u8],
}

/// The part of a found item's answer that comes before the value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) flags: u32,
    pub(crate) version: u64,
    pub(crate) len: u32,
    pub(crate) lifetime: u32,
    pub(crate) stamp: Option<u64>,
}

impl Head {
    /// The length of the answer: the head, and the value or its first slice.
    #[inline]
    pub(crate) fn size(&self) -> usize {
        let stamp = if self.stamp.is_some() { 8 } else { 0 };
        FOUND + stamp + (self.len as usize).min(SLICE)
    }

    /// Writes the head, and returns the room for the value.
    ///
    /// # Panics
    /// If `out` is shorter than [`Self::size`].
    #[inline]
    pub(crate) fn write<'a>(&self, out: &'a mut [u8]) -> &'a mut [u8] {
        let (fixed, rest) = out.split_first_chunk_mut::<FOUND>().expect(ROOM);
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let words = [
            pair(Status::Found as u32, self.flags),
            self.version,
            pair(self.len, self.lifetime),
        ];
        for (place, word) in fixed.as_chunks_mut().0.iter_mut().zip(words) {
            *place = word.to_le_bytes();
        }
        let Some(stamp) = self.stamp else { return rest };
        let (place, rest) = rest.split_first_chunk_mut().expect(ROOM);
        *place = stamp.to_le_bytes();
        rest
    }
}

/// The length of an answer that has a status and this number of numbers.
pub(crate) const fn short_len(numbers: usize) -> usize {
    SHORT + 8 * numbers
}

/// Writes an answer of [`short_len`] bytes, and returns the room after the numbers.
#[inline]
pub(crate) fn write_short<'a>(status: Status, numbers: &[u64], out: &'a mut [u8]) -> &'a mut [u8] {
    let (fixed, rest) = out.split_at_mut(short_len(numbers.len()));
    let words = std::iter::once(status as u64).chain(numbers.iter().copied());
    for (place, word) in fixed.as_chunks_mut().0.iter_mut().zip(words) {
        *place = word.to_le_bytes();
    }
    rest
}

impl<'a> Answer<'a> {
    /// Reads an answer.
    ///
    /// # Errors
    /// If the bytes are not an answer of this version.
    #[inline]
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor(bytes);
        let answer = Self::read(&mut cursor)?;
        match answer {
            // The value is the rest of the message.
            Self::Slice(_) => {}
            _ => cursor.end()?,
        }
        Ok(answer)
    }

    /// The version in an answer that reports a write.
    #[inline]
    pub(crate) fn written(bytes: &[u8]) -> Option<u64> {
        let ([status, version], []) = bytes.as_chunks::<8>() else {
            return None;
        };
        let is_it = u64::from_le_bytes(*status) == Status::Written as u64;
        is_it.then(|| u64::from_le_bytes(*version))
    }

    /// Reads an answer from the front of `cursor`.
    #[inline]
    pub(super) fn read(cursor: &mut Cursor<'a>) -> Result<Self, Malformed> {
        if cursor.0.first() == Some(&(Status::Found as u8)) {
            return FoundItem::read(cursor).map(Self::Found);
        }
        let status = Status::read(cursor.u8()?)?;
        cursor.zeros::<7>()?;
        Ok(match status {
            Status::Done => Self::Done,
            Status::Written => Self::Written(cursor.u64()?),
            Status::Counted => Self::Counted(cursor.u64()?, cursor.u64()?),
            Status::Slice => Self::Slice(cursor.0),
            Status::Found | Status::Figures | Status::Multi => return Err(Malformed),
            refused => Self::Refused(refused),
        })
    }
}

impl<'a> FoundItem<'a> {
    /// Reads an item from its status on.
    #[inline]
    fn read(cursor: &mut Cursor<'a>) -> Result<Self, Malformed> {
        let [start, version, end] = cursor.words()?;
        let [status, flags] = halves(start);
        if status != Status::Found as u32 {
            return Err(Malformed);
        }
        let [len, lifetime] = halves(end);
        let here = (len as usize).min(SLICE);
        let stamp = match len as usize > SLICE {
            true => cursor.u64()?,
            false => 0,
        };
        Ok(Self {
            flags,
            version,
            len,
            lifetime,
            stamp,
            value: cursor.bytes(here)?,
        })
    }

    /// Whether an answer is an item with its whole value.
    #[inline]
    pub(crate) fn is_whole(answer: &'a [u8]) -> bool {
        let Some((head, value)) = answer.split_first_chunk::<FOUND>() else {
            return false;
        };
        let [start, _, end] = [0, 1, 2].map(|at| u64::from_le_bytes(head.as_chunks().0[at]));
        let ([status, _], [len, _]) = (halves(start), halves(end));
        status == Status::Found as u32 && len as usize == value.len() && value.len() <= SLICE
    }

    /// The value in an answer for which [`Self::is_whole`] is true.
    #[inline]
    pub(crate) fn value_of(answer: &[u8]) -> &[u8] {
        &answer[FOUND..]
    }

    /// Whether the value is longer than this answer.
    #[must_use]
    pub fn is_long(&self) -> bool {
        self.len as usize > self.value.len()
    }
}
