//! Answers to clients.

use super::cursor::{Cursor, put_counted, put_words};
use super::event::{Event, Events, put_event, take_events};
use super::format::{MAX_ADDRESS, MAX_KEY, MAX_VALUE, Malformed, PAGE, VERSION};

const FOUND: u8 = 1;
const MISSING: u8 = 2;
const FULL: u8 = 32;
const ITEMS: u8 = 12;
const EVENTS: u8 = 13;

/// The most bytes of items or events in an answer, set by the longest item or transaction.
pub(crate) const MAX_ITEM: usize = MAX_VALUE + 8 * MAX_KEY;

/// An item of a range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// The version of the item.
    pub version: u64,
    /// Its key.
    pub key: Vec<u8>,
    /// Its value.
    pub value: Vec<u8>,
}

/// The answer of a replica to an operation of a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The item of the key: its version and value.
    Found(u64, Vec<u8>),
    /// The key has no item.
    Missing,
    /// The item was written, and has this version now.
    Written(u64),
    /// Nothing was written, because the item has this version; 0: there is no item.
    Differs(u64),
    /// The item, which had this version, was removed; 0: there was none.
    Deleted(u64),
    /// The name of the client.
    Opened(u64),
    /// This replica does not lead. The leader has this address, if it is known. The operation may
    /// or may not have run.
    Moved(Vec<u8>),
    /// The cluster no longer knows the client. The operation was not run this time.
    Expired,
    /// The leader has too much work; the operation did not run.
    Busy,
    /// The client has used the number for another operation, has more writes in flight than the
    /// window, or repeats a write whose answer it has. The operation was not run this time.
    Misnamed,
    /// The disk of the leader is full; the operation did not run.
    Full,
    /// The transaction has written nothing, because the key of the compare at this place has
    /// another version.
    Conflict(u64),
    /// Items of a range.
    Items {
        /// There may be more items after the last one.
        more: bool,
        /// The items, in key order.
        items: Vec<Found>,
    },
    /// Changes of keys that a client watches.
    Events {
        /// The index from which the client continues.
        next: u64,
        /// The changes, in the order of their entries; the changes of one entry are together. Empty
        /// if nothing has changed for a while.
        events: Vec<Event>,
    },
    /// The replica no longer knows all changes that the client wants, but knows those from this
    /// index on.
    Forgotten(u64),
}

/// The encoded items of a range, to which items are added.
#[derive(Debug)]
pub(crate) struct Page {
    bytes: Vec<u8>,
    left: u32,
    more: bool,
}

impl Page {
    pub(crate) const fn new(limit: u32) -> Self {
        Self {
            bytes: Vec::new(),
            left: limit,
            more: false,
        }
    }

    /// Adds an item. False: the item is not added, because there is no room for it or the limit is
    /// reached.
    pub(crate) fn add(&mut self, version: u64, key: &[u8], value: &[u8]) -> bool {
        let size = 16 + key.len() + value.len();
        let is_full = !self.bytes.is_empty() && self.bytes.len() + size > PAGE;
        if self.left == 0 || is_full {
            self.more = true;
            return false;
        }
        self.left -= 1;
        put_words(&mut self.bytes, &[version]);
        put_counted(&mut self.bytes, key);
        put_counted(&mut self.bytes, value);
        true
    }

    /// The length of the answer in bytes.
    pub(crate) const fn size(&self) -> usize {
        Answer::HEAD + self.bytes.len()
    }

    /// Writes the answer into `out`, which has the answer's length.
    pub(crate) fn encode(&self, out: &mut [u8]) {
        put(ITEMS, self.more.into(), &self.bytes, out);
    }
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
            Self::Conflict(_) => 11,
            Self::Items { .. } => ITEMS,
            Self::Events { .. } => EVENTS,
            Self::Forgotten(_) => 14,
        }
    }

    /// The length of the answer in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        Self::HEAD
            + match self {
                Self::Found(_, bytes) | Self::Moved(bytes) => bytes.len(),
                Self::Items { items, .. } => {
                    let sizes = items.iter().map(|it| 16 + it.key.len() + it.value.len());
                    sizes.sum()
                }
                Self::Events { events, .. } => {
                    let mut bytes = Vec::new();
                    events.iter().for_each(|event| put_event(&mut bytes, event));
                    bytes.len()
                }
                _ => 0,
            }
    }

    /// Writes the answer into `out`, which has the answer's length.
    pub fn encode(&self, out: &mut [u8]) {
        let (number, bytes) = match self {
            Self::Written(number)
            | Self::Differs(number)
            | Self::Deleted(number)
            | Self::Opened(number)
            | Self::Conflict(number)
            | Self::Forgotten(number) => (*number, &b""[..]),
            Self::Missing | Self::Expired | Self::Busy | Self::Misnamed | Self::Full => {
                (0, &b""[..])
            }
            Self::Found(version, value) => (*version, &value[..]),
            Self::Moved(address) => (0, &address[..]),
            Self::Items { .. } | Self::Events { .. } => return self.encode_list(out),
        };
        put(self.kind(), number, bytes, out);
    }

    fn encode_list(&self, out: &mut [u8]) {
        let mut list = Vec::new();
        let number = match self {
            Self::Items { more, items } => {
                for item in items {
                    put_words(&mut list, &[item.version]);
                    put_counted(&mut list, &item.key);
                    put_counted(&mut list, &item.value);
                }
                u64::from(*more)
            }
            Self::Events { next, events } => {
                events.iter().for_each(|event| put_event(&mut list, event));
                *next
            }
            _ => 0,
        };
        put(self.kind(), number, &list, out);
    }

    /// The length of the answer to a get. `item` has a version and a value.
    pub(crate) fn size_of(item: Option<(u64, &[u8])>) -> usize {
        Self::HEAD + item.map_or(0, |(_, value)| value.len())
    }

    /// Writes the answer to a get into `out`, which has the answer's length.
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
        let mut cursor = Cursor::of_message(bytes)?;
        let kind = cursor.u8()?;
        cursor.zeros::<6>()?;
        let number = cursor.u64()?;
        let rest = cursor.0;
        let most = match kind {
            1 => MAX_VALUE,
            7 => MAX_ADDRESS,
            ITEMS | EVENTS => MAX_ITEM.max(PAGE),
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
            11 => Self::Conflict(number),
            ITEMS => Self::Items {
                more: flag(number)?,
                items: take_items(Cursor(rest))?,
            },
            EVENTS => Self::Events {
                next: number,
                events: take_events(Cursor(rest))?,
            },
            14 => Self::Forgotten(number),
            _ => return Err(Malformed),
        })
    }

    /// The length of an answer with events.
    pub(crate) fn size_of_events(events: &Events) -> usize {
        Self::HEAD + events.bytes().len()
    }

    /// Writes an answer with events into `out`, which has the answer's length.
    pub(crate) fn encode_events(events: &Events, out: &mut [u8]) {
        put(EVENTS, events.next(), events.bytes(), out);
    }
}

fn flag(number: u64) -> Result<bool, Malformed> {
    match number {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Malformed),
    }
}

fn take_items(mut cursor: Cursor<'_>) -> Result<Vec<Found>, Malformed> {
    let mut items = Vec::new();
    while !cursor.0.is_empty() {
        items.push(Found {
            version: cursor.u64()?,
            key: cursor.counted()?.to_vec(),
            value: cursor.counted()?.to_vec(),
        });
    }
    Ok(items)
}

fn put(kind: u8, number: u64, bytes: &[u8], out: &mut [u8]) {
    let (head, tail) = out.split_at_mut(Answer::HEAD);
    let first = u64::from_le_bytes([VERSION, kind, 0, 0, 0, 0, 0, 0]);
    let words = u128::from(first) | u128::from(number) << 64;
    head.copy_from_slice(&words.to_le_bytes());
    if !bytes.is_empty() {
        tail.copy_from_slice(bytes);
    }
}
