//! Makes the changes of a write. Called by `machine`, which lends the items apart from the records
//! of clients, so that it finds a client's record once for each write.

use super::history::{Change, History};
use super::items::Items;
use crate::wire::{Answer, Operation, Request, Steps, Write};

/// The items, lent for the changes of one entry.
pub(super) struct Writer<'a> {
    pub(super) items: &'a mut Items,
    pub(super) history: &'a mut History,
    /// The log's time in milliseconds.
    pub(super) time: u64,
    /// The index of the entry.
    pub(super) index: u64,
    /// A planted bug: transactions write although a key has another version.
    #[cfg(feature = "mutants")]
    pub(super) is_careless: bool,
}

impl Writer<'_> {
    /// Makes the changes, and returns the answer to the client.
    pub(super) fn write(&mut self, request: &Request<'_>) -> Answer {
        let key = request.key;
        if let Operation::CompareAndSet(version, _) = request.operation {
            let found = self.items.version(key);
            if version != found {
                return Answer::Differs(found);
            }
        }
        match request.operation {
            Operation::Delete => {
                let found = self.items.version(key);
                self.remove(key);
                Answer::Deleted(found)
            }
            Operation::CompareAndSet(_, value) | Operation::Put(value) => {
                self.put(key, value, 0);
                Answer::Written(self.index)
            }
            Operation::PutFor(lifetime, value) => {
                self.put(key, value, lifetime);
                Answer::Written(self.index)
            }
            Operation::Transact(steps) => self.transact(&steps),
            Operation::Get
            | Operation::Open
            | Operation::Range(..)
            | Operation::Watch(_)
            | Operation::Clock(_) => Answer::Missing,
        }
    }

    fn put(&mut self, key: &[u8], value: &[u8], lifetime: u64) {
        let expires = match lifetime {
            0 => 0,
            // One more millisecond, because the log's time was rounded down.
            _ => self.time + lifetime + 1,
        };
        self.history.note(self.index, key, Change::Put(value));
        self.items.put(key, self.index, expires, value);
    }

    fn remove(&mut self, key: &[u8]) {
        if self.items.remove(key) {
            self.history.note(self.index, key, Change::Deleted);
        }
    }

    fn transact(&mut self, steps: &Steps<'_>) -> Answer {
        let mut compares = steps.compares();
        let conflict = compares.position(|it| self.items.version(it.key) != it.version);
        #[cfg(feature = "mutants")]
        let conflict = conflict.filter(|_| !self.is_careless);
        if let Some(place) = conflict {
            return Answer::Conflict(place as u64);
        }
        for write in steps.writes() {
            match write {
                Write::Put {
                    key,
                    value,
                    lifetime,
                } => self.put(key, value, lifetime),
                Write::Delete { key } => self.remove(key),
            }
        }
        Answer::Written(self.index)
    }
}
