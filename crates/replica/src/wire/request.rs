//! Operations of clients. The bytes of a write are also the bytes of its log entry, so the leader
//! copies them once and every replica reads them with the same function.

use super::cursor::Cursor;
use super::format::{MAX_KEY, MAX_VALUE, Malformed, VERSION};

const GET: u8 = 1;
const OPEN: u8 = 2;
const PUT: u8 = 3;
const DELETE: u8 = 4;
const COMPARE_AND_SET: u8 = 5;

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
}

/// A request of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request<'a> {
    /// The name of a write; `None` for [`Operation::Get`] and [`Operation::Open`].
    pub name: Option<Name>,
    /// The key; empty for [`Operation::Open`].
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
        }
    }

    /// Appends the bytes of the request.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let name = self.name.unwrap_or(Name {
            client: 0,
            number: 0,
            first: 0,
        });
        let (version, value) = match self.operation {
            Operation::Put(value) => (0, value),
            Operation::CompareAndSet(version, value) => (version, value),
            Operation::Get | Operation::Open | Operation::Delete => (0, &b""[..]),
        };
        out.extend_from_slice(&[VERSION, self.kind()]);
        let len = u16::try_from(self.key.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        for word in [name.client, name.number, name.first, version] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(self.key);
        out.extend_from_slice(value);
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
        let mut cursor = Cursor(bytes);
        if cursor.u8()? != VERSION {
            return Err(Malformed);
        }
        let kind = cursor.u8()?;
        let key_len = usize::from(cursor.u16()?);
        cursor.zeros::<4>()?;
        let name = Name {
            client: cursor.u64()?,
            number: cursor.u64()?,
            first: cursor.u64()?,
        };
        let version = cursor.u64()?;
        let key = cursor.bytes(key_len)?;
        let value = cursor.0;
        let operation = match kind {
            GET => Operation::Get,
            OPEN => Operation::Open,
            PUT => Operation::Put(value),
            DELETE => Operation::Delete,
            COMPARE_AND_SET => Operation::CompareAndSet(version, value),
            _ => return Err(Malformed),
        };
        let request = Self {
            name: (kind > OPEN).then_some(name),
            key,
            operation,
        };
        let is_named = name
            != (Name {
                client: 0,
                number: 0,
                first: 0,
            });
        let fits = is_named == request.name.is_some()
            && (version == 0 || kind == COMPARE_AND_SET)
            && (value.is_empty() || matches!(kind, PUT | COMPARE_AND_SET))
            && request.is_in_range();
        fits.then_some(request).ok_or(Malformed)
    }

    /// Whether the lengths and numbers are allowed.
    #[must_use]
    pub fn is_in_range(&self) -> bool {
        let value = match self.operation {
            Operation::Put(value) | Operation::CompareAndSet(_, value) => value,
            Operation::Get | Operation::Open | Operation::Delete => b"",
        };
        let key = match self.operation {
            Operation::Open => self.key.is_empty(),
            _ => (1..=MAX_KEY).contains(&self.key.len()),
        };
        let is_counted =
            |name: Name| name.client > 0 && name.first > 0 && name.number >= name.first;
        key && value.len() <= MAX_VALUE && self.name.is_none_or(is_counted)
    }
}
