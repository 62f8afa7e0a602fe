//! The last changes of items, for clients that watch keys.
//!
//! The history is not part of the state: a replica that continues from a snapshot has no change
//! before it. Keys and values lie one after the other in blocks. So few changes allocate, and
//! the history forgets a change without reading its key and value again, which may have left the
//! caches.

use std::collections::VecDeque;

use crate::wire::{Event, EventKind, Events};

/// The most bytes of changes that are kept, and the most bytes of one entry's changes.
const MOST: usize = 16 << 20;

/// Bytes of a block. A longer change has a block of its own.
const BLOCK: usize = 64 << 10;

/// Bytes that a change counts in addition to its key and value.
const EVENT: usize = 64;

/// A change of an item.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change<'a> {
    Put(&'a [u8]),
    Deleted,
    Expired,
}

/// The kind of a change whose bytes are in a block.
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
    /// The number of its block, and the position of its bytes in that block.
    block: u64,
    start: usize,
    key_len: usize,
    value_len: usize,
}

#[derive(Clone, Debug)]
pub(super) struct History {
    /// The index of the entry after which the history has all changes.
    base: u64,
    events: VecDeque<Noted>,
    /// Keys and values of the changes.
    blocks: VecDeque<Vec<u8>>,
    /// The number of the first block.
    first_block: u64,
    /// Bytes of all blocks.
    bytes: usize,
    /// A planted bug: only the last change of each key is shown.
    #[cfg(feature = "mutants")]
    shows_last: bool,
}

impl History {
    pub(super) const fn new(base: u64) -> Self {
        Self {
            base,
            events: VecDeque::new(),
            blocks: VecDeque::new(),
            first_block: 0,
            bytes: 0,
            #[cfg(feature = "mutants")]
            shows_last: false,
        }
    }

    /// Plants the bug that only the last change of each key is shown.
    #[cfg(feature = "mutants")]
    pub(super) const fn show_last(&mut self) {
        self.shows_last = true;
    }

    /// Forgets all changes. The history continues with the changes of the entries after `base`.
    pub(super) fn begin_after(&mut self, base: u64) {
        self.events.clear();
        self.blocks.clear();
        (self.base, self.bytes) = (base, 0);
    }

    /// Notes a change by the entry at this index.
    pub(super) fn note(&mut self, index: u64, key: &[u8], change: Change<'_>) {
        let (kind, value) = match change {
            Change::Put(value) => (Kind::Put, value),
            Change::Deleted => (Kind::Deleted, &[][..]),
            Change::Expired => (Kind::Expired, &[][..]),
        };
        let block = self.block_for(key.len() + value.len());
        let start = block.len();
        block.extend_from_slice(key);
        block.extend_from_slice(value);
        self.events.push_back(Noted {
            index,
            kind,
            block: self.first_block + self.blocks.len() as u64 - 1,
            start,
            key_len: key.len(),
            value_len: value.len(),
        });
        while self.bytes + EVENT * self.events.len() > MOST {
            self.forget();
        }
    }

    /// The last block if it has room for a change of this length, or else a new one.
    fn block_for(&mut self, len: usize) -> &mut Vec<u8> {
        let has_room = |it: &Vec<u8>| it.capacity() - it.len() >= len;
        if !self.blocks.back().is_some_and(has_room) {
            let block = Vec::with_capacity(len.max(BLOCK));
            self.bytes += block.capacity();
            self.blocks.push_back(block);
        }
        self.blocks.back_mut().expect("there is one now")
    }

    /// Forgets the changes of the oldest entry.
    fn forget(&mut self) {
        let Some(oldest) = self.events.front().map(|event| event.index) else {
            return;
        };
        self.base = oldest;
        while self.events.pop_front_if(|it| it.index == oldest).is_some() {}
        let after = self.first_block + self.blocks.len() as u64;
        let first = self.events.front().map_or(after, |event| event.block);
        while self.first_block < first
            && let Some(block) = self.blocks.pop_front()
        {
            self.first_block += 1;
            self.bytes -= block.capacity();
        }
    }

    /// The changes of keys with a prefix, by the entries from `from` up to the applied one. `None`
    /// if some of these changes are forgotten.
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
        prefix.len() <= noted.key_len && self.bytes_of(noted).starts_with(prefix)
    }

    /// Whether a later change has the same key (for a planted bug).
    #[cfg(feature = "mutants")]
    fn changes_again(&self, noted: &Noted) -> bool {
        let key = self.event(noted).key;
        let later = self.events.iter().filter(|it| it.index > noted.index);
        later.into_iter().any(|it| self.event(it).key == key)
    }

    /// The key of a change, and its value.
    fn bytes_of(&self, noted: &Noted) -> &[u8] {
        let block = usize::try_from(noted.block - self.first_block);
        let block = &self.blocks[block.expect("the blocks are in memory")];
        &block[noted.start..noted.start + noted.key_len + noted.value_len]
    }

    fn event(&self, noted: &Noted) -> Event {
        let (key, value) = self.bytes_of(noted).split_at(noted.key_len);
        Event {
            index: noted.index,
            key: key.to_vec(),
            kind: match noted.kind {
                Kind::Put => EventKind::Put(value.to_vec()),
                Kind::Deleted => EventKind::Deleted,
                Kind::Expired => EventKind::Expired,
            },
        }
    }

    /// The index of the first entry from which the history has all changes.
    pub(super) const fn first(&self) -> u64 {
        self.base + 1
    }
}

#[cfg(test)]
mod tests;
