//! Answers to clients.

use super::cursor::Cursor;
use super::format::{MAX_ADDRESS, MAX_VALUE, Malformed, VERSION};

const FOUND: u8 = 1;
const MISSING: u8 = 2;
const FULL: u8 = 32;

/// The answer of a replica to an operation of a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The item of the key: its version and value.
    Found(u64, Vec<u8>),
    /// The key has no item.
    Missing,
    /// The item has this version now.
    Written(u64),
    /// Nothing was written, because the item has this version; 0: there is none.
    Differs(u64),
    /// The item, of this version, is removed; 0: there was none.
    Deleted(u64),
    /// The name of the client.
    Opened(u64),
    /// This replica does not lead. The leader has this address, if it is known. Nothing can be said
    /// about whether the operation ran.
    Moved(Vec<u8>),
    /// The cluster does not know the client any more. The operation did not run now.
    Expired,
    /// The leader has too much work; the operation did not run.
    Busy,
    /// The client has used the number for another operation, or has more writes under way than the
    /// window, or repeats a write whose answer it has. The operation did not run now.
    Misnamed,
    /// The disk of the leader is full; the operation did not run.
    Full,
}

impl Answer {
    /// Bytes before the value or address.
    pub const HEAD: usize = 16;

    const fn kind(&self) -> u8 {
        match self {
            Self::Found(..) => FOUND,
            Self::Missing => MISSING,
            Self::Written(_) => 3,
            Self::Differs(_) => 4,
            Self::Deleted(_) => 5,
            Self::Opened(_) => 6,
            Self::Moved(_) => 7,
            Self::Expired => 8,
            Self::Busy => 9,
            Self::Misnamed => 10,
            Self::Full => FULL,
        }
    }

    /// Its length in bytes.
    #[must_use]
    pub const fn size(&self) -> usize {
        Self::HEAD
            + match self {
                Self::Found(_, bytes) | Self::Moved(bytes) => bytes.len(),
                _ => 0,
            }
    }

    /// Writes the answer into `out`, which has its length.
    pub fn encode(&self, out: &mut [u8]) {
        let (number, bytes) = match self {
            Self::Found(version, value) => (*version, &value[..]),
            Self::Moved(address) => (0, &address[..]),
            Self::Written(number)
            | Self::Differs(number)
            | Self::Deleted(number)
            | Self::Opened(number) => (*number, &b""[..]),
            Self::Missing | Self::Expired | Self::Busy | Self::Misnamed | Self::Full => {
                (0, &b""[..])
            }
        };
        put(self.kind(), number, bytes, out);
    }

    /// The length of the answer to a get of an item, which has a version and a value.
    pub(crate) fn size_of(item: Option<(u64, &[u8])>) -> usize {
        Self::HEAD + item.map_or(0, |(_, value)| value.len())
    }

    /// Writes the answer to a get into `out`, which has its length.
    pub(crate) fn encode_item(item: Option<(u64, &[u8])>, out: &mut [u8]) {
        match item {
            Some((version, value)) => put(FOUND, version, value, out),
            None => put(MISSING, 0, b"", out),
        }
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor(bytes);
        if cursor.u8()? != VERSION {
            return Err(Malformed);
        }
        let kind = cursor.u8()?;
        cursor.zeros::<6>()?;
        let number = cursor.u64()?;
        let rest = cursor.0;
        let most = match kind {
            1 => MAX_VALUE,
            7 => MAX_ADDRESS,
            _ => 0,
        };
        if rest.len() > most || (number != 0 && matches!(kind, 2 | 7..=10 | FULL)) {
            return Err(Malformed);
        }
        Ok(match kind {
            1 => Self::Found(number, rest.to_vec()),
            2 => Self::Missing,
            3 => Self::Written(number),
            4 => Self::Differs(number),
            5 => Self::Deleted(number),
            6 => Self::Opened(number),
            7 => Self::Moved(rest.to_vec()),
            8 => Self::Expired,
            9 => Self::Busy,
            10 => Self::Misnamed,
            FULL => Self::Full,
            _ => return Err(Malformed),
        })
    }
}

fn put(kind: u8, number: u64, bytes: &[u8], out: &mut [u8]) {
    let (head, tail) = out.split_at_mut(Answer::HEAD);
    head.fill(0);
    head[..2].copy_from_slice(&[VERSION, kind]);
    head[8..].copy_from_slice(&number.to_le_bytes());
    tail.copy_from_slice(bytes);
}
