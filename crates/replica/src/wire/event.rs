//! Changes of items, as sent to clients that watch keys.

use super::cursor::{Cursor, put_counted, put_words};
use super::format::{Malformed, PAGE};

const PUT: u64 = 1;
const DELETED: u64 = 2;
const EXPIRED: u64 = 3;

/// The kind of a change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EventKind {
    /// The key was given this value.
    Put(Vec<u8>),
    /// A client has removed the key.
    Deleted,
    /// The item's lifetime is over.
    Expired,
}

/// A change of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// The index of the log entry that made the change. For a put, it is also the item's version.
    pub index: u64,
    /// The key.
    pub key: Vec<u8>,
    /// The change.
    pub kind: EventKind,
}

/// The encoded events of whole entries, to which events are added.
#[derive(Debug)]
pub(crate) struct Events {
    /// The index from which a client continues.
    next: u64,
    bytes: Vec<u8>,
    /// The last entry, and where its events begin.
    last: (u64, usize),
}

impl Events {
    /// Makes an answer without events; a client continues from `next`.
    pub(crate) const fn new(next: u64) -> Self {
        Self {
            next,
            bytes: Vec::new(),
            last: (0, 0),
        }
    }

    /// Adds an event. False: there is no room for it. Then all events of its entry are left out,
    /// unless there are no others.
    pub(crate) fn add(&mut self, event: &Event) -> bool {
        if event.index != self.last.0 {
            self.last = (event.index, self.bytes.len());
        }
        let start = self.last.1;
        put_event(&mut self.bytes, event);
        let fits = start == 0 || self.bytes.len() <= PAGE;
        if !fits {
            self.bytes.truncate(start);
            self.next = event.index;
        }
        fits
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Appends an event.
pub(super) fn put_event(out: &mut Vec<u8>, event: &Event) {
    let (kind, value) = match &event.kind {
        EventKind::Put(value) => (PUT, &value[..]),
        EventKind::Deleted => (DELETED, &b""[..]),
        EventKind::Expired => (EXPIRED, &b""[..]),
    };
    put_words(out, &[event.index, kind]);
    put_counted(out, &event.key);
    put_counted(out, value);
}

/// Reads events to the end of the bytes.
pub(super) fn take_events(mut cursor: Cursor<'_>) -> Result<Vec<Event>, Malformed> {
    let mut events = Vec::new();
    while !cursor.0.is_empty() {
        let (index, kind) = (cursor.u64()?, cursor.u64()?);
        let (key, value) = (cursor.counted()?, cursor.counted()?);
        let kind = match kind {
            PUT => EventKind::Put(value.to_vec()),
            DELETED if value.is_empty() => EventKind::Deleted,
            EXPIRED if value.is_empty() => EventKind::Expired,
            _ => return Err(Malformed),
        };
        events.push(Event {
            index,
            key: key.to_vec(),
            kind,
        });
    }
    Ok(events)
}
