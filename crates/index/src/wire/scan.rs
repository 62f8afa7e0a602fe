//! Scans, counts and sums of ranges.

use super::cursor::Cursor;
use super::format::{MAX_LIMIT, MAX_VALUE, Malformed, SCAN_ROOM, Status, VERSION};
use crate::index::Total;
use crate::range::{Direction, Range, Start};

/// A request for a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scan<'a> {
    /// The range.
    pub range: Range<'a>,
    /// The result that the client wants.
    pub what: What,
    /// The most items that are read.
    pub limit: u32,
}

/// The result of a scan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// The items, up to the limit, as many as fit into an answer.
    Items(Direction),
    /// How many items there are, and the sum of the numbers in their values ([`Total`]).
    Total,
}

/// The answer to a [`Scan`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScanAnswer<'a> {
    /// Items, and whether there may be more of them.
    Items {
        /// Whether the range may have more items. If fewer than `limit` items came, the client
        /// scans again after the last one to get the rest.
        more: bool,
        /// Their number.
        count: u32,
        /// The encoded items, which [`ScanAnswer::entries`] decodes.
        bytes: &'a [u8],
    },
    /// Number and sum.
    Total(Total),
    /// The request is invalid.
    Refused(Status),
}

/// An item of a scan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScanItem<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
}

const HEAD: usize = 12;
/// Bytes of an answer before its items.
const ANSWER_HEAD: usize = 8;
const ITEMS: u8 = 0;
const TOTAL: u8 = 2;

const BACKWARD: u8 = 1;
const HAS_START: u8 = 2;
const AFTER: u8 = 4;
const HAS_END: u8 = 8;

const _: () = assert!(ANSWER_HEAD + 3 + 255 + MAX_VALUE <= SCAN_ROOM);

impl<'a> Scan<'a> {
    /// Checks that a server would accept the request.
    ///
    /// # Errors
    /// The status with which a server would refuse it.
    pub fn check(&self) -> Result<(), Status> {
        let most = match self.what {
            What::Items(_) => MAX_LIMIT,
            What::Total => u32::MAX,
        };
        if !(1..=most).contains(&self.limit) {
            return Err(Status::BadLimit);
        }
        match self.range.is_valid() {
            true => Ok(()),
            false => Err(Status::BadRange),
        }
    }

    /// Encodes the request. Its keys must have at most 255 bytes.
    ///
    /// # Panics
    /// If a key is longer.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let (start, end) = (self.range.start_key(), self.range.end);
        let len = |key: Option<&[u8]>| {
            let len = u8::try_from(key.unwrap_or_default().len());
            len.expect("the caller has checked the keys")
        };
        let (what, mut flags) = match self.what {
            What::Items(Direction::Forward) => (1, 0),
            What::Items(Direction::Backward) => (1, BACKWARD),
            What::Total => (2, 0),
        };
        flags |= match self.range.start {
            Start::First => 0,
            Start::At(_) => HAS_START,
            Start::After(_) => HAS_START | AFTER,
        };
        flags |= if end.is_some() { HAS_END } else { 0 };
        let mut out = vec![VERSION, what, flags, 0, len(start), len(end), 0, 0];
        out.extend_from_slice(&self.limit.to_le_bytes());
        debug_assert_eq!(out.len(), HEAD);
        out.extend_from_slice(start.unwrap_or_default());
        out.extend_from_slice(end.unwrap_or_default());
        out
    }

    /// Reads a request.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor(bytes);
        let [version, what, flags, zero] = cursor.take()?;
        let [start_len, end_len, none, nil] = cursor.take()?;
        let limit = cursor.u32()?;
        let start = cursor.bytes(start_len.into())?;
        let end = cursor.bytes(end_len.into())?;
        cursor.end()?;
        if version != VERSION || [zero, none, nil] != [0; 3] || flags > 15 {
            return Err(Malformed);
        }
        let what = match (what, flags & BACKWARD) {
            (1, 0) => What::Items(Direction::Forward),
            (1, _) => What::Items(Direction::Backward),
            (2, 0) => What::Total,
            _ => return Err(Malformed),
        };
        let start = match flags & (HAS_START | AFTER) {
            0 if start.is_empty() => Start::First,
            HAS_START => Start::At(start),
            both if both == HAS_START | AFTER => Start::After(start),
            _ => return Err(Malformed),
        };
        let end = match flags & HAS_END {
            0 if end.is_empty() => None,
            HAS_END => Some(end),
            _ => return Err(Malformed),
        };
        Ok(Self {
            range: Range { start, end },
            what,
            limit,
        })
    }
}

impl<'a> ScanAnswer<'a> {
    /// Reads an answer.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        if let [number] = bytes {
            return Status::from_number(*number).map(Self::Refused);
        }
        let mut cursor = Cursor(bytes);
        let [what, more] = cursor.take()?;
        let (zero, count) = (cursor.u16()?, cursor.u32()?);
        match (what, more, zero) {
            (ITEMS, 0..=1, 0) => {
                let items = Self::Items {
                    more: more == 1,
                    count,
                    bytes: cursor.0,
                };
                let mut rest = cursor;
                for _ in 0..count {
                    entry(&mut rest)?;
                }
                rest.end()?;
                Ok(items)
            }
            (TOTAL, 0, 0) if count == 0 => {
                let total = Total {
                    items: cursor.u64()?,
                    sum: cursor.u64()?,
                };
                cursor.end()?;
                Ok(Self::Total(total))
            }
            _ => Err(Malformed),
        }
    }

    /// The items, in the order of the scan.
    pub fn entries(&self) -> impl Iterator<Item = ScanItem<'a>> + use<'a> {
        let mut cursor = Cursor(match self {
            Self::Items { bytes, .. } => bytes,
            _ => &[],
        });
        std::iter::from_fn(move || entry(&mut cursor).ok())
    }

    /// Encodes a total.
    #[must_use]
    pub fn encode_total(total: Total) -> [u8; ANSWER_HEAD + 16] {
        let mut out = [0; ANSWER_HEAD + 16];
        out[0] = TOTAL;
        out[ANSWER_HEAD..ANSWER_HEAD + 8].copy_from_slice(&total.items.to_le_bytes());
        out[ANSWER_HEAD + 8..].copy_from_slice(&total.sum.to_le_bytes());
        out
    }
}

fn entry<'a>(cursor: &mut Cursor<'a>) -> Result<ScanItem<'a>, Malformed> {
    let [key_len] = cursor.take()?;
    let value_len = cursor.u16()?;
    Ok(ScanItem {
        key: cursor.bytes(key_len.into())?,
        value: cursor.bytes(value_len.into())?,
    })
}

/// The items of an answer, to which items are added.
#[derive(Debug)]
pub(crate) struct Page {
    bytes: Vec<u8>,
    count: u32,
    limit: u32,
    /// Whether there was no room for an item, or the limit was reached.
    more: bool,
}

impl Page {
    pub(crate) fn new(limit: u32) -> Self {
        Self {
            bytes: vec![0; ANSWER_HEAD],
            count: 0,
            limit,
            more: false,
        }
    }

    /// Adds an item and returns true. Returns false if there is no room for it or the limit is
    /// reached.
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8]) -> bool {
        let size = 3 + key.len() + value.len();
        if self.count == self.limit || self.bytes.len() + size > SCAN_ROOM {
            self.more = true;
            return false;
        }
        self.count += 1;
        self.bytes
            .push(u8::try_from(key.len()).expect("a key is short"));
        let len = u16::try_from(value.len()).expect("a value is short");
        self.bytes.extend_from_slice(&len.to_le_bytes());
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        true
    }

    /// Completes the answer.
    pub(crate) fn end(mut self) -> Vec<u8> {
        self.bytes[0] = ITEMS;
        self.bytes[1] = u8::from(self.more);
        self.bytes[4..ANSWER_HEAD].copy_from_slice(&self.count.to_le_bytes());
        self.bytes
    }
}
