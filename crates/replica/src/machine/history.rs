//! The last changes of items, for clients that watch keys.
//!
//! The history is no part of the state: a replica that goes on from a snapshot has none of the
//! changes before it. Keys and values lie one after the other in one buffer, so that noting a
//! change allocates nothing, and forgetting one touches no memory that has left the caches.
//! Invariant: it has all changes after `base`, in the order of their entries. Called by `machine`.

use std::collections::VecDeque;

use crate::wire::{Event, EventKind, Events};

/// Most bytes of changes that are kept, and of those of one entry.
const MOST: usize = 16 << 20;

/// Bytes that a change counts in addition to its key and value.
const EVENT: usize = 64;

/// A change of an item.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change<'a> {
    Put(&'a [u8]),
    Deleted,
    Expired,
}

/// The kind of a change whose bytes are in the buffer.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Put,
    Deleted,
    Expired,
}

/// A change, without its bytes.
#[derive(Clone, Copy, Debug)]
struct Noted {
    index: u64,
    kind: Kind,
    /// Bytes that were noted before those of this change, since the beginning.
    start: u64,
    key_len: usize,
    value_len: usize,
}

#[derive(Clone, Debug)]
pub(super) struct History {
    /// The index of an entry. Changes of later ones are here.
    base: u64,
    events: VecDeque<Noted>,
    /// Their keys and values.
    bytes: VecDeque<u8>,
    /// Bytes that were forgotten since the beginning.
    forgotten: u64,
    /// Only the last change of each key is shown.
    #[cfg(feature = "mutants")]
    shows_last: bool,
}

impl History {
    pub(super) const fn new(base: u64) -> Self {
        Self {
            base,
            events: VecDeque::new(),
            bytes: VecDeque::new(),
            forgotten: 0,
            #[cfg(feature = "mutants")]
            shows_last: false,
        }
    }

    /// Plants the bug that only the last change of each key is shown.
    #[cfg(feature = "mutants")]
    pub(super) const fn show_last(&mut self) {
        self.shows_last = true;
    }

    /// Forgets all changes; those of entries after this one follow.
    pub(super) fn begin_after(&mut self, base: u64) {
        self.events.clear();
        self.bytes.clear();
        (self.base, self.forgotten) = (base, 0);
    }

    /// Notes a change by the entry of this index.
    pub(super) fn note(&mut self, index: u64, key: &[u8], change: Change<'_>) {
        let (kind, value) = match change {
            Change::Put(value) => (Kind::Put, value),
            Change::Deleted => (Kind::Deleted, &[][..]),
            Change::Expired => (Kind::Expired, &[][..]),
        };
        self.events.push_back(Noted {
            index,
            kind,
            start: self.forgotten + self.bytes.len() as u64,
            key_len: key.len(),
            value_len: value.len(),
        });
        self.bytes.extend(key);
        self.bytes.extend(value);
        while self.bytes.len() + EVENT * self.events.len() > MOST {
            self.forget();
        }
    }

    /// Forgets the changes of the oldest entry.
    fn forget(&mut self) {
        let Some(oldest) = self.events.front().map(|event| event.index) else {
            return;
        };
        self.base = oldest;
        while let Some(event) = self.events.pop_front_if(|event| event.index == oldest) {
            let len = event.key_len + event.value_len;
            self.bytes.drain(..len);
            self.forgotten += len as u64;
        }
    }

    /// The changes of keys with a prefix by entries from `from` on, up to the applied one; `None`:
    /// some of these are forgotten.
    pub(super) fn since(&self, prefix: &[u8], from: u64, applied: u64) -> Option<Events> {
        if from <= self.base {
            return None;
        }
        let first = self.events.partition_point(|event| event.index < from);
        let mut events = Events::new(from.max(applied + 1));
        for noted in self.events.range(first..) {
            #[cfg(feature = "mutants")]
            if self.shows_last && self.changes_again(noted) {
                continue;
            }
            if self.has_prefix(noted, prefix) && !events.add(&self.event(noted)) {
                break;
            }
        }
        Some(events)
    }

    fn has_prefix(&self, noted: &Noted, prefix: &[u8]) -> bool {
        let start = self.place(noted);
        prefix.len() <= noted.key_len && self.bytes.range(start..start + prefix.len()).eq(prefix)
    }

    /// Whether a later change has the same key.
    #[cfg(feature = "mutants")]
    fn changes_again(&self, noted: &Noted) -> bool {
        let key = self.event(noted).key;
        let later = self.events.iter().filter(|it| it.index > noted.index);
        later.into_iter().any(|it| self.event(it).key == key)
    }

    /// Where the bytes of a change begin in the buffer.
    fn place(&self, noted: &Noted) -> usize {
        usize::try_from(noted.start - self.forgotten).expect("the buffer has it")
    }

    fn event(&self, noted: &Noted) -> Event {
        let start = self.place(noted);
        let bytes = |start: usize, len: usize| -> Vec<u8> {
            self.bytes.range(start..start + len).copied().collect()
        };
        Event {
            index: noted.index,
            key: bytes(start, noted.key_len),
            kind: match noted.kind {
                Kind::Put => EventKind::Put(bytes(start + noted.key_len, noted.value_len)),
                Kind::Deleted => EventKind::Deleted,
                Kind::Expired => EventKind::Expired,
            },
        }
    }

    /// The index of the first entry whose changes are all here.
    pub(super) const fn first(&self) -> u64 {
        self.base + 1
    }
}

#[cfg(test)]
mod tests;
