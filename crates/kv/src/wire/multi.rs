//! [`MULTI`](super::format::MULTI): many keys of one partition in one request.
//!
//! ```text
//! request  version, 16, number of keys u16, tag of the map u32, most bytes of the answer u32,
//!          then each key after its length u8
//! answer   status, 0, number of records u16, 0 u32; then records as answers of KEYED
//! ```
//! An answer has the records that fit, in the order of the keys; the client asks again for the
//! others. A server also ends an answer at [`MOST_ANSWER`] bytes, so one call of its handler copies
//! no more. A record with [`Status::Alone`] stands for a value that must be asked for separately,
//! because it is longer than a slice or would not fit into any answer of that length.

use dunlin_store::{MAX_KEY, SLICE};

use super::answer::{Answer, Head, Status, write_short};
use super::cursor::{Cursor, Pen};
use super::format::{MAX_KEYS, Malformed, VERSION};

const CODE: u8 = 16;
const REQUEST: usize = 12;
const ANSWER: usize = 8;

/// The most bytes of an answer, whatever the client allows. The longest value that is not asked for
/// separately still fits.
pub(crate) const MOST_ANSWER: u32 = 64 * 1024 + 64;

/// The keys of a request.
#[derive(Clone, Copy, Debug)]
pub struct Keys<'a> {
    count: u16,
    limit: u32,
    keys: Cursor<'a>,
}

impl std::fmt::Debug for Cursor<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl<'a> Keys<'a> {
    /// The bytes of a request for these keys.
    pub fn size(keys: impl Iterator<Item = &'a [u8]>) -> usize {
        REQUEST + keys.map(Self::size_of).sum::<usize>()
    }

    /// The bytes that one key takes in a request.
    pub(crate) const fn size_of(key: &[u8]) -> usize {
        1 + key.len()
    }

    /// Writes a request for `count` keys, at most [`MAX_KEYS`], whose answer may have `limit`
    /// bytes.
    ///
    /// # Panics
    /// If `out` is shorter than [`Self::size`], or a key longer than 255 bytes.
    pub fn encode(
        tag: u32,
        limit: u32,
        count: usize,
        keys: impl Iterator<Item = &'a [u8]>,
        out: &mut [u8],
    ) {
        let count = u16::try_from(count).expect("there are at most MAX_KEYS");
        let mut pen = Pen::new(out);
        pen.put(&[VERSION, CODE]);
        pen.put(&count.to_le_bytes());
        pen.put(&tag.to_le_bytes());
        pen.put(&limit.to_le_bytes());
        for key in keys {
            pen.put(&[u8::try_from(key.len()).expect("the caller has checked the key")]);
            pen.put(key);
        }
    }

    /// Reads a request and the tag of its map. All keys have allowed lengths.
    ///
    /// # Errors
    /// If the bytes are not such a request.
    pub fn decode(bytes: &'a [u8]) -> Result<(u32, Self), Malformed> {
        let mut cursor = Cursor(bytes);
        let start = cursor.take::<2>()?;
        let count = cursor.u16()?;
        let (tag, limit) = (cursor.u32()?, cursor.u32()?);
        let is_count = (1..=MAX_KEYS).contains(&usize::from(count));
        if start != [VERSION, CODE] || !is_count {
            return Err(Malformed);
        }
        let keys = Self {
            count,
            limit,
            keys: cursor,
        };
        for _ in 0..count {
            next_key(&mut cursor)?;
        }
        cursor.end()?;
        Ok((tag, keys))
    }

    /// The most bytes of the answer.
    #[must_use]
    pub const fn limit(&self) -> u32 {
        self.limit
    }

    /// The same keys, for an answer that also has at most this number of bytes.
    #[must_use]
    pub(crate) fn within(self, limit: u32) -> Self {
        let limit = self.limit.min(limit);
        Self { limit, ..self }
    }

    /// The number of keys, at least one.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "it never is")]
    pub fn len(&self) -> usize {
        self.count.into()
    }

    /// The keys.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut cursor = self.keys;
        std::iter::from_fn(move || next_key(&mut cursor).ok())
    }
}

fn next_key<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], Malformed> {
    let len = usize::from(cursor.u8()?);
    let key = cursor.bytes(len)?;
    (1..=MAX_KEY).contains(&len).then_some(key).ok_or(Malformed)
}

/// A record of an answer, as a server writes it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Record {
    /// The item; its value follows.
    Found(Head),
    /// There is no item, or the client must ask for it separately.
    Other(Status),
}

impl Record {
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Found(head) => head.size(),
            Self::Other(_) => super::answer::short_len(0),
        }
    }
}

/// Writes the records of an answer into a vector, whose allocation is reused.
#[derive(Debug)]
pub struct Records<'a> {
    out: &'a mut Vec<u8>,
    limit: usize,
    count: u16,
}

impl<'a> Records<'a> {
    /// Begins an answer of at most `limit` bytes.
    pub(crate) fn begin(out: &'a mut Vec<u8>, limit: usize) -> Self {
        out.clear();
        out.resize(ANSWER, 0);
        Self {
            out,
            limit,
            count: 0,
        }
    }

    /// Makes room for a record. For an item, returns the room for its value. `None`: the record no
    /// longer fits.
    pub(crate) fn push(&mut self, record: &Record) -> Option<&mut [u8]> {
        let start = self.out.len();
        if start + record.size() > self.limit.max(ANSWER + super::answer::short_len(0)) {
            return None;
        }
        self.count += 1;
        self.out.resize(start + record.size(), 0);
        let room = &mut self.out[start..];
        Some(match record {
            Record::Found(head) => head.write(room),
            Record::Other(status) => write_short(*status, &[], room),
        })
    }

    /// Whether a record would fit into an answer of its own.
    pub(crate) fn may_fit(&self, record: &Record) -> bool {
        ANSWER + record.size() <= self.limit
    }

    /// Completes the answer.
    pub(crate) fn end(self) {
        let [low, high] = self.count.to_le_bytes();
        let mut pen = Pen::new(self.out);
        pen.put(&[Status::Multi as u8, 0, low, high, 0, 0, 0, 0]);
    }

    /// Reads an answer: its records in the order of the keys. The inner `Err`: the partition
    /// refused the whole request.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are not such an answer.
    pub fn decode(bytes: &[u8]) -> Result<Result<Vec<Answer<'_>>, Status>, Malformed> {
        let mut cursor = Cursor(bytes);
        let status = Status::read(cursor.u8()?)?;
        cursor.zeros::<1>()?;
        let count = cursor.u16()?;
        cursor.zeros::<4>()?;
        if status != Status::Multi {
            cursor.end()?;
            return Ok(Err(status));
        }
        if usize::from(count) > MAX_KEYS {
            return Err(Malformed);
        }
        let mut records = Vec::with_capacity(count.into());
        for _ in 0..count {
            let record = Answer::read(&mut cursor)?;
            let is_record = matches!(
                record,
                Answer::Found(_) | Answer::Refused(Status::Missing | Status::Alone)
            );
            if !is_record {
                return Err(Malformed);
            }
            records.push(record);
        }
        cursor.end()?;
        Ok(Ok(records))
    }
}

const _: () = assert!(ANSWER + super::answer::FOUND + SLICE <= MOST_ANSWER as usize);
