//! The last changes of items, for clients that watch keys.
//!
//! The history is no part of the state: a replica that goes on from a snapshot has none of the
//! changes before it. Invariant: it has all changes after `base`, in the order of their entries.
//! Called by `machine`.

use std::collections::VecDeque;

use crate::wire::{Event, EventKind, Events};

/// Most bytes of changes that are kept, and of those of one entry.
const MOST: usize = 16 << 20;

/// Bytes that a change counts in addition to its key and value.
const EVENT: usize = 64;

#[derive(Clone, Debug)]
pub(super) struct History {
    /// The index of an entry. Changes of later ones are here.
    base: u64,
    events: VecDeque<Event>,
    bytes: usize,
}

impl PartialEq for History {
    /// States are equal whatever their replicas have seen.
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for History {}

impl History {
    pub(super) const fn new(base: u64) -> Self {
        Self {
            base,
            events: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Notes a change by the entry of this index.
    pub(super) fn note(&mut self, index: u64, key: &[u8], kind: EventKind) {
        let event = Event {
            index,
            key: key.to_vec(),
            kind,
        };
        self.bytes += size_of(&event);
        self.events.push_back(event);
        while self.bytes > MOST {
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
            self.bytes -= size_of(&event);
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
        for event in self.events.range(first..) {
            if event.key.starts_with(prefix) && !events.add(event) {
                break;
            }
        }
        Some(events)
    }

    /// The index of the first entry whose changes are all here.
    pub(super) const fn first(&self) -> u64 {
        self.base + 1
    }
}

fn size_of(event: &Event) -> usize {
    let value = match &event.kind {
        EventKind::Put(value) => value.len(),
        EventKind::Deleted | EventKind::Expired => 0,
    };
    EVENT + event.key.len() + value
}

#[cfg(test)]
mod tests;
