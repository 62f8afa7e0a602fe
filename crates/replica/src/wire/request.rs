//! Operations of clients. The bytes of a write are also the bytes of its log entry, so the leader
//! copies them once and every replica reads them with the same function.

use super::format::{MAX_INDEX, MAX_ITEMS, MAX_KEY, MAX_LIFETIME, MAX_VALUE, Malformed, VERSION};
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

/// Bytes before the key.
const HEAD: usize = 40;

/// The name of a write, by which a repeated one is recognised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Name {
    /// The client, as [`Operation::Open`] has named it.
    pub client: u64,
    /// The number of the write among those of its client.
    pub number: u64,
    /// The client has the answers of all writes below this number, and never repeats one of them.
    pub first: u64,
}

/// The change or question of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation<'a> {
    /// The item of a key.
    Get,
    /// Names the client. A client does this before its first write.
    Open,
    /// Writes the key, whether it has a value or not.
    Put(&'a [u8]),
    /// Removes the key.
    Delete,
    /// Writes the key if its item has this version; version 0: if it has none.
    CompareAndSet(u64, &'a [u8]),
    /// Makes all writes, if all keys have the versions that it names. It has no key of its own.
    Transact(Steps<'a>),
    /// Items whose keys begin with the key of the request, in their order: at most this number of
    /// them, after this key, if that is not empty.
    Range(u32, &'a [u8]),
    /// Writes the key for this number of milliseconds of the log's time, 1 at least.
    PutFor(u64, &'a [u8]),
    /// Changes of keys that begin with the key of the request, by entries from this index on; 0:
    /// those that come from now on. The answer waits for the first of them, but not for long.
    Watch(u64),
    /// Sets the log's time, in milliseconds, and removes the items whose time is over. Only leaders
    /// write it.
    Clock(u64),
}

impl Operation<'_> {
    /// Whether a client makes it without a name: it changes nothing, or no client may make it.
    const fn is_unnamed(&self) -> bool {
        self.is_read() || matches!(self, Self::Open | Self::Clock(_))
    }

    /// Whether it reads, and has no log entry.
    #[must_use]
    pub const fn is_read(&self) -> bool {
        matches!(self, Self::Get | Self::Range(..) | Self::Watch(_))
    }

    /// Whether the log's time must be right when it is applied.
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
    /// The key, or the beginning of keys; empty for operations without one.
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

    /// Asks for the items whose keys begin with `prefix`, after a key.
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

    /// A write.
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

    /// The number and the value that the bytes have for the operation. Steps follow by themselves.
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

    /// Appends the bytes of the request.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let name = self.name.unwrap_or(Name {
            client: 0,
            number: 0,
            first: 0,
        });
        let (number, value) = self.number_and_value();
        out.extend_from_slice(&[VERSION, self.kind()]);
        let len = u16::try_from(self.key.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        for word in [name.client, name.number, name.first, number] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(self.key);
        out.extend_from_slice(value);
        if let Operation::Transact(steps) = &self.operation {
            steps.put(out);
        }
    }

    /// The bytes of the request.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + self.key.len() + 64);
        self.encode(&mut bytes);
        bytes
    }

    /// Reads a request.
    ///
    /// # Errors
    /// [`Malformed`], also for a key or value of a length that is not allowed.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        // An entry is read on each replica when it comes and when it is applied, so the head is
        // read at once.
        let (head, rest) = bytes.split_first_chunk::<HEAD>().ok_or(Malformed)?;
        let [version, kind, key_len @ .., 0, 0, 0, 0] = *word(head, 0) else {
            return Err(Malformed);
        };
        if version != VERSION {
            return Err(Malformed);
        }
        let key_len = usize::from(u16::from_le_bytes(key_len));
        let (key, rest) = rest.split_at_checked(key_len).ok_or(Malformed)?;
        let [client, number, first, wanted] =
            [1, 2, 3, 4].map(|place| u64::from_le_bytes(*word(head, place)));
        let name = Name {
            client,
            number,
            first,
        };
        let operation = operation_of(kind, wanted, rest)?;
        let request = Self {
            name: (!operation.is_unnamed()).then_some(name),
            key,
            operation,
        };
        let is_named = name
            != (Name {
                client: 0,
                number: 0,
                first: 0,
            });
        let fits = is_named == request.name.is_some() && request.is_in_range();
        fits.then_some(request).ok_or(Malformed)
    }

    /// Whether the lengths and numbers are allowed.
    #[must_use]
    pub fn is_in_range(&self) -> bool {
        let least = match self.operation {
            Operation::Open | Operation::Transact(_) => {
                return self.key.is_empty() && self.is_counted();
            }
            // Lifetimes are added to it.
            Operation::Clock(time) => return self.key.is_empty() && time <= MAX_INDEX,
            Operation::Range(..) | Operation::Watch(_) => 0,
            _ => 1,
        };
        let (number, value) = self.number_and_value();
        let fits = match self.operation {
            Operation::Range(limit, after) => {
                (1..=MAX_ITEMS).contains(&limit) && after.len() <= MAX_KEY
            }
            Operation::PutFor(..) => (1..=MAX_LIFETIME).contains(&number),
            Operation::Watch(from) => from <= MAX_INDEX,
            _ => true,
        };
        let key = (least..=MAX_KEY).contains(&self.key.len());
        fits && key && value.len() <= MAX_VALUE && self.is_counted()
    }

    /// Whether the numbers of its name are allowed.
    fn is_counted(&self) -> bool {
        let is_counted =
            |name: Name| name.client > 0 && name.first > 0 && name.number >= name.first;
        self.name.is_none_or(is_counted)
    }
}

/// Eight bytes of a head.
const fn word(head: &[u8; HEAD], place: usize) -> &[u8; 8] {
    &head.as_chunks::<8>().0[place]
}

/// Reads the number and the bytes after the key.
fn operation_of(kind: u8, number: u64, rest: &[u8]) -> Result<Operation<'_>, Malformed> {
    let operation = match (kind, number) {
        (PUT, 0) => return Ok(Operation::Put(rest)),
        (COMPARE_AND_SET, _) => return Ok(Operation::CompareAndSet(number, rest)),
        (TRANSACT, 0) => return Ok(Operation::Transact(Steps::decode(rest)?)),
        (RANGE, _) => {
            let limit = u32::try_from(number).map_err(|_| Malformed)?;
            return Ok(Operation::Range(limit, rest));
        }
        (PUT_FOR, _) => return Ok(Operation::PutFor(number, rest)),
        (GET, 0) => Operation::Get,
        (OPEN, 0) => Operation::Open,
        (DELETE, 0) => Operation::Delete,
        (CLOCK, _) => Operation::Clock(number),
        (WATCH, _) => Operation::Watch(number),
        _ => return Err(Malformed),
    };
    match rest.is_empty() {
        true => Ok(operation),
        false => Err(Malformed),
    }
}
