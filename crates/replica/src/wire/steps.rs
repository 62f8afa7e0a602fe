//! Transactions: versions that keys must have, and the writes that follow if they do.

use super::cursor::{Cursor, put_count, put_counted, put_words};
use super::format::{MAX_KEY, MAX_LIFETIME, MAX_STEPS, MAX_VALUE, Malformed};
use super::pen::Ink;

const PUT: u64 = 1;
const DELETE: u64 = 2;

/// Bytes of a compare without its key.
const COMPARE: usize = 12;
const WRITE: usize = 24;

/// A version that a key must have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Compare<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The version of its item; 0 if it has none.
    pub version: u64,
}

/// A write of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Write<'a> {
    /// Writes the key.
    Put {
        /// The key.
        key: &'a [u8],
        /// The value.
        value: &'a [u8],
        /// Milliseconds until the item expires; 0 if never.
        lifetime: u64,
    },
    /// Removes the key.
    Delete {
        /// The key.
        key: &'a [u8],
    },
}

/// The steps of a transaction, as the bytes of its request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Steps<'a> {
    compares: usize,
    writes: usize,
    bytes: &'a [u8],
}

impl<'a> Write<'a> {
    /// The key.
    #[must_use]
    pub const fn key(&self) -> &'a [u8] {
        match self {
            Self::Put { key, .. } | Self::Delete { key } => key,
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        let (kind, lifetime, value) = match *self {
            Self::Put {
                value, lifetime, ..
            } => (PUT, lifetime, value),
            Self::Delete { .. } => (DELETE, 0, &b""[..]),
        };
        put_words(out, &[kind, lifetime]);
        put_counted(out, self.key());
        put_counted(out, value);
    }

    fn take(cursor: &mut Cursor<'a>) -> Result<Self, Malformed> {
        let (kind, lifetime) = (cursor.u64()?, cursor.u64()?);
        let (key, value) = (take_key(cursor)?, cursor.counted()?);
        match kind {
            PUT if value.len() <= MAX_VALUE && lifetime <= MAX_LIFETIME => Ok(Self::Put {
                key,
                value,
                lifetime,
            }),
            DELETE if value.is_empty() && lifetime == 0 => Ok(Self::Delete { key }),
            _ => Err(Malformed),
        }
    }
}

impl<'a> Compare<'a> {
    fn take(cursor: &mut Cursor<'a>) -> Result<Self, Malformed> {
        Ok(Self {
            version: cursor.u64()?,
            key: take_key(cursor)?,
        })
    }
}

impl<'a> Steps<'a> {
    /// The bytes of these steps.
    #[must_use]
    pub fn encode(compares: &[Compare<'_>], writes: &[Write<'_>]) -> Vec<u8> {
        let mut out = Vec::new();
        put_count(&mut out, compares.len());
        put_count(&mut out, writes.len());
        for compare in compares {
            put_words(&mut out, &[compare.version]);
            put_counted(&mut out, compare.key);
        }
        writes.iter().for_each(|write| write.put(&mut out));
        out
    }

    /// Reads steps. All lengths must be allowed, and no key may be written twice.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor(bytes);
        let (compares, writes) = (cursor.u32()?, cursor.u32()?);
        let count = |count: u32| usize::try_from(count).ok().filter(|it| *it <= MAX_STEPS);
        let compares = count(compares).ok_or(Malformed)?;
        let writes = count(writes).ok_or(Malformed)?;
        let steps = Self {
            compares,
            writes,
            bytes: cursor.0,
        };
        for _ in 0..compares {
            Compare::take(&mut cursor)?;
        }
        let mut keys = Vec::with_capacity(writes);
        for _ in 0..writes {
            keys.push(Write::take(&mut cursor)?.key());
        }
        cursor.end()?;
        keys.sort_unstable();
        let is_twice = keys.windows(2).any(|pair| pair[0] == pair[1]);
        match is_twice || bytes.len() > MAX_VALUE {
            true => Err(Malformed),
            false => Ok(steps),
        }
    }

    /// The versions that keys must have.
    pub fn compares(&self) -> impl Iterator<Item = Compare<'a>> + use<'a> {
        let mut cursor = Cursor(self.bytes);
        (0..self.compares).map_while(move |_| Compare::take(&mut cursor).ok())
    }

    /// The writes.
    pub fn writes(&self) -> impl Iterator<Item = Write<'a>> + use<'a> {
        let mut cursor = Cursor(self.bytes);
        for _ in 0..self.compares {
            // `decode` has checked the compares.
            let _ = Compare::take(&mut cursor);
        }
        (0..self.writes).map_while(move |_| Write::take(&mut cursor).ok())
    }

    /// Whether any written item has a lifetime.
    #[must_use]
    pub fn has_lifetimes(&self) -> bool {
        self.writes()
            .any(|write| matches!(write, Write::Put { lifetime: 1.., .. }))
    }

    /// The length of the bytes.
    pub(super) const fn size(&self) -> usize {
        2 * size_of::<u32>() + self.bytes.len()
    }

    /// Writes the bytes.
    pub(super) fn write_into(&self, out: &mut Ink<'_>) {
        for count in [self.compares, self.writes] {
            let count = u32::try_from(count).expect("there are few steps");
            out.put(&count.to_le_bytes());
        }
        out.put(self.bytes);
    }
}

fn take_key<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], Malformed> {
    let key = cursor.counted()?;
    match (1..=MAX_KEY).contains(&key.len()) {
        true => Ok(key),
        false => Err(Malformed),
    }
}

const _: () = assert!(MAX_STEPS * (COMPARE + WRITE) < MAX_VALUE);
