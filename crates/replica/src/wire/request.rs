//! Operations of clients. The bytes of a write are also the bytes of its log entry, so the leader
//! copies them once and every replica reads them with the same function. Numbers have a variable
//! length, because an entry crosses the network to each follower. Numbers that are always small
//! have fixed positions, because each replica reads an entry twice: when it arrives and when it is
//! applied.

use super::cursor::Cursor;
use super::format::{
    MAX_INDEX, MAX_ITEMS, MAX_KEY, MAX_LIFETIME, MAX_VALUE, Malformed, REQUEST_VERSION,
};
use super::pen::{Ink, size_of_number};
use super::steps::Steps;

const GET: u8 = 1;
const OPEN: u8 = 2;
const PUT: u8 = 3;
const DELETE: u8 = 4;
const COMPARE_AND_SET: u8 = 5;
const TRANSACT: u8 = 6;
const RANGE: u8 = 7;
const PUT_FOR: u8 = 8;
const CLOCK: u8 = 9;
const WATCH: u8 = 10;

/// The name of a write, by which a repeated write is recognised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Name {
    /// The client's name, from [`Operation::Open`].
    pub client: u64,
    /// The client's number for the write.
    pub number: u64,
    /// The client has the answers to all writes below this number, and never repeats any of them.
    pub first: u64,
}

/// The operation of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation<'a> {
    /// Reads the item of a key.
    Get,
    /// Gives the client a name. A client does this before its first write.
    Open,
    /// Writes the key, whether or not it has a value.
    Put(&'a [u8]),
    /// Removes the key.
    Delete,
    /// Writes the key if its item has this version; version 0: if it has no item.
    CompareAndSet(u64, &'a [u8]),
    /// Makes all writes, if all keys have the versions that the steps name. It has no key of its
    /// own.
    Transact(Steps<'a>),
    /// Reads items whose keys begin with the key of the request, in key order: at most this number
    /// of items, and only keys greater than this one unless it is empty.
    Range(u32, &'a [u8]),
    /// Writes the key for this number of milliseconds of the log's time, at least 1.
    PutFor(u64, &'a [u8]),
    /// Reads changes of keys that begin with the key of the request, by entries from this index on;
    /// with 0, changes from now on. The answer waits a short time for the first change.
    Watch(u64),
    /// Sets the log's time, in milliseconds, and removes the items that have expired. Only leaders
    /// write it.
    Clock(u64),
}

impl Operation<'_> {
    /// Whether the operation only reads, and needs no log entry.
    #[must_use]
    pub const fn is_read(&self) -> bool {
        matches!(self, Self::Get | Self::Range(..) | Self::Watch(_))
    }

    /// Whether the log's time must be current when the operation is applied.
    #[must_use]
    pub fn needs_time(&self) -> bool {
        match self {
            Self::PutFor(..) => true,
            Self::Transact(steps) => steps.has_lifetimes(),
            _ => false,
        }
    }
}

/// A request of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request<'a> {
    /// The name of a write; `None` for reads, [`Operation::Open`] and [`Operation::Clock`].
    pub name: Option<Name>,
    /// The key, or the prefix of keys; empty for operations without one.
    pub key: &'a [u8],
    /// The operation.
    pub operation: Operation<'a>,
}

impl<'a> Request<'a> {
    /// Asks for an item.
    #[must_use]
    pub const fn get(key: &'a [u8]) -> Self {
        Self {
            name: None,
            key,
            operation: Operation::Get,
        }
    }

    /// Asks for the items whose keys begin with `prefix` and come after `after`.
    #[must_use]
    pub const fn range(prefix: &'a [u8], limit: u32, after: &'a [u8]) -> Self {
        Self {
            name: None,
            key: prefix,
            operation: Operation::Range(limit, after),
        }
    }

    /// Asks for changes of keys that begin with `prefix`, by entries from an index on.
    #[must_use]
    pub const fn watch(prefix: &'a [u8], from: u64) -> Self {
        Self {
            name: None,
            key: prefix,
            operation: Operation::Watch(from),
        }
    }

    /// Sets the log's time, in milliseconds.
    #[must_use]
    pub(crate) const fn clock(time: u64) -> Request<'static> {
        Request {
            name: None,
            key: b"",
            operation: Operation::Clock(time),
        }
    }

    /// Asks for a name.
    pub const OPEN: Request<'static> = Request {
        name: None,
        key: b"",
        operation: Operation::Open,
    };

    /// Makes a write.
    #[must_use]
    pub const fn write(name: Name, key: &'a [u8], operation: Operation<'a>) -> Self {
        Self {
            name: Some(name),
            key,
            operation,
        }
    }

    const fn kind(&self) -> u8 {
        match self.operation {
            Operation::Get => GET,
            Operation::Open => OPEN,
            Operation::Put(_) => PUT,
            Operation::Delete => DELETE,
            Operation::CompareAndSet(..) => COMPARE_AND_SET,
            Operation::Transact(_) => TRANSACT,
            Operation::Range(..) => RANGE,
            Operation::PutFor(..) => PUT_FOR,
            Operation::Clock(_) => CLOCK,
            Operation::Watch(_) => WATCH,
        }
    }

    /// The number and the value that the operation encodes. Steps are encoded separately.
    const fn number_and_value(&self) -> (u64, &'a [u8]) {
        match self.operation {
            Operation::Put(value) => (0, value),
            Operation::CompareAndSet(number, value) | Operation::PutFor(number, value) => {
                (number, value)
            }
            Operation::Range(limit, after) => (limit as u64, after),
            Operation::Clock(number) | Operation::Watch(number) => (number, b""),
            Operation::Get | Operation::Open | Operation::Delete | Operation::Transact(_) => {
                (0, b"")
            }
        }
    }

    /// The name of a write; a write without one is refused by every replica.
    fn name_of_write(&self) -> Name {
        self.name.unwrap_or(Name {
            client: 0,
            number: 0,
            first: 0,
        })
    }

    /// The length of the request in bytes.
    pub(crate) fn size(&self) -> usize {
        let (kind, (number, value)) = (self.kind(), self.number_and_value());
        let name = match is_named(kind) {
            true => 8 + 1 + size_of_number(self.name_of_write().number),
            false => 0,
        };
        let number = match has_number(kind) {
            true => size_of_number(number),
            false => 0,
        };
        let steps = match &self.operation {
            Operation::Transact(steps) => steps.size(),
            _ => 0,
        };
        4 + name + number + self.key.len() + value.len() + steps
    }

    /// Writes the request into `out`, which has its length.
    pub(crate) fn write_into(&self, out: &mut [u8]) {
        let (kind, (number, value)) = (self.kind(), self.number_and_value());
        let mut rest = Ink(out);
        let len = u16::try_from(self.key.len()).unwrap_or(u16::MAX);
        let [low, high] = len.to_le_bytes();
        rest.put(&[REQUEST_VERSION, kind, low, high]);
        if is_named(kind) {
            let name = self.name_of_write();
            rest.put(&name.client.to_le_bytes());
            rest.put(&[name.open().unwrap_or(u8::MAX)]);
            rest.put_number(name.number);
        }
        if has_number(kind) {
            rest.put_number(number);
        }
        rest.put(self.key);
        match &self.operation {
            Operation::Transact(steps) => steps.write_into(&mut rest),
            _ => rest.put(value),
        }
    }

    /// Appends the bytes of the request.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + self.size(), 0);
        self.write_into(&mut out[start..]);
    }

    /// The bytes of the request.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        bytes
    }

    /// Reads a request.
    ///
    /// # Errors
    /// [`Malformed`], also if a key or value has a length that is not allowed.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let Some((&[REQUEST_VERSION, kind, key_len @ ..], rest)) = bytes.split_first_chunk::<4>()
        else {
            return Err(Malformed);
        };
        let mut cursor = Cursor(rest);
        if kind == PUT {
            return Self::decode_put(u16::from_le_bytes(key_len), cursor);
        }
        let name = match is_named(kind) {
            true => Some(Name::take(&mut cursor)?),
            false => None,
        };
        let number = match has_number(kind) {
            true => cursor.number()?,
            false => 0,
        };
        let request = Self {
            name,
            key: cursor.bytes(u16::from_le_bytes(key_len).into())?,
            operation: operation_of(kind, number, cursor.0)?,
        };
        request.is_in_range().then_some(request).ok_or(Malformed)
    }

    /// Reads a put, the most frequent operation. The other operations take a way on which no field
    /// is known in advance.
    #[inline]
    fn decode_put(key_len: u16, mut cursor: Cursor<'a>) -> Result<Self, Malformed> {
        let name = Name::take(&mut cursor)?;
        let key = cursor.bytes(key_len.into())?;
        let value = cursor.0;
        let is_allowed = (1..=MAX_KEY).contains(&key.len())
            && value.len() <= MAX_VALUE
            && name.client > 0
            && name.first > 0;
        match is_allowed {
            true => Ok(Self::write(name, key, Operation::Put(value))),
            false => Err(Malformed),
        }
    }

    /// Whether all lengths and numbers are allowed.
    #[must_use]
    pub fn is_in_range(&self) -> bool {
        let len = self.key.len();
        let fits = match self.operation {
            Operation::Put(value) | Operation::CompareAndSet(_, value) => {
                len > 0 && value.len() <= MAX_VALUE
            }
            Operation::PutFor(lifetime, value) => {
                len > 0 && value.len() <= MAX_VALUE && (1..=MAX_LIFETIME).contains(&lifetime)
            }
            Operation::Get | Operation::Delete => len > 0,
            Operation::Open | Operation::Transact(_) => len == 0,
            // A lifetime is added to the time.
            Operation::Clock(time) => len == 0 && time <= MAX_INDEX,
            Operation::Range(limit, after) => {
                (1..=MAX_ITEMS).contains(&limit) && after.len() <= MAX_KEY
            }
            Operation::Watch(from) => from <= MAX_INDEX,
        };
        fits && len <= MAX_KEY && self.is_counted()
    }

    /// Whether the numbers of its name are allowed.
    fn is_counted(&self) -> bool {
        let is_counted = |name: Name| name.client > 0 && name.first > 0 && name.open().is_some();
        self.name.is_none_or(is_counted)
    }
}

impl Name {
    /// The numbers after the first write without an answer, up to this one; `None` if there are
    /// more than any client uses.
    fn open(&self) -> Option<u8> {
        u8::try_from(self.number.checked_sub(self.first)?).ok()
    }

    fn take(cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let (head, rest) = cursor.0.split_first_chunk::<9>().ok_or(Malformed)?;
        let [client @ .., open] = *head;
        cursor.0 = rest;
        let number = cursor.number()?;
        let first = number.checked_sub(open.into()).ok_or(Malformed)?;
        Ok(Self {
            client: u64::from_le_bytes(client),
            number,
            first,
        })
    }
}

/// The bytes of a write before its name, and the bytes after it. Together they describe the change.
pub(crate) fn without_name(write: &[u8]) -> Result<([u8; 4], &[u8]), Malformed> {
    let (head, rest) = write.split_first_chunk::<4>().ok_or(Malformed)?;
    let mut cursor = Cursor(rest);
    cursor.bytes(8 + 1)?;
    cursor.number()?;
    Ok((*head, cursor.0))
}

/// The key of a put, without any check of its other fields; `None` if the bytes are no put.
pub(crate) fn key_of_put(write: &[u8]) -> Option<&[u8]> {
    let ([_, kind, low, high], rest) = without_name(write).ok()?;
    let len = u16::from_le_bytes([low, high]);
    rest.get(..len.into()).filter(|_| kind == PUT)
}

/// Whether an operation has a name, because it changes keys.
const fn is_named(kind: u8) -> bool {
    matches!(kind, PUT | DELETE | COMPARE_AND_SET | TRANSACT | PUT_FOR)
}

/// Whether an operation has a number of its own.
const fn has_number(kind: u8) -> bool {
    matches!(kind, COMPARE_AND_SET | RANGE | PUT_FOR | CLOCK | WATCH)
}

/// Reads the bytes after the key.
fn operation_of(kind: u8, number: u64, rest: &[u8]) -> Result<Operation<'_>, Malformed> {
    let operation = match kind {
        COMPARE_AND_SET => return Ok(Operation::CompareAndSet(number, rest)),
        TRANSACT => return Ok(Operation::Transact(Steps::decode(rest)?)),
        RANGE => {
            let limit = u32::try_from(number).map_err(|_| Malformed)?;
            return Ok(Operation::Range(limit, rest));
        }
        PUT_FOR => return Ok(Operation::PutFor(number, rest)),
        GET => Operation::Get,
        OPEN => Operation::Open,
        DELETE => Operation::Delete,
        CLOCK => Operation::Clock(number),
        WATCH => Operation::Watch(number),
        _ => return Err(Malformed),
    };
    match rest.is_empty() {
        true => Ok(operation),
        false => Err(Malformed),
    }
}
