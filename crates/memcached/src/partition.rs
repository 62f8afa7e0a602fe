//! One table, and the operations on it.
//!
//! The table may have other users, so a partition borrows it for each event. It adds the features
//! of memcached's commands that the table lacks: figures by command, and operations of several
//! steps. State that must last from one event to the next is in a [`Ledger`].

mod count;
mod dump;
mod look;
mod write;

use dunlin_store::{BATCH, DeleteError, Key, Seconds, Stats, Table, Version, WriteError};

use crate::figures::{self, Figures};
use crate::operation::{Answer, Expiry, Found, Operation};

pub(crate) use dump::item_size;
pub(crate) use look::LongValue;

/// The state that memcached's commands keep for a table from one event to the next.
#[derive(Default, Debug)]
pub struct Ledger {
    figures: Figures,
    /// The table's figures when a client last reset them.
    base: Stats,
    /// The longest value that a client may write, if that is shorter than the table's longest.
    most_value: Option<usize>,
}

/// A table and its ledger, borrowed for operations.
#[derive(Debug)]
pub struct Partition<'t> {
    table: &'t mut Table,
    ledger: &'t mut Ledger,
}

impl Ledger {
    /// The ledger of a table in which clients may write values of at most this number of bytes.
    #[must_use]
    pub fn with_most_value(most: usize) -> Self {
        Self {
            most_value: Some(most),
            ..Self::default()
        }
    }

    /// Borrows the table for operations. It must be the same one each time.
    pub fn open<'t>(&'t mut self, table: &'t mut Table) -> Partition<'t> {
        let ledger = self;
        Partition { table, ledger }
    }
}

impl Partition<'_> {
    /// Runs an operation and passes its answer to `see`.
    pub fn run<T>(
        &mut self,
        operation: &Operation<'_>,
        now: Seconds,
        see: impl FnOnce(&Answer<'_>) -> T,
    ) -> T {
        match operation {
            Operation::Get { key, touch } => self.get(key, *touch, now, see),
            Operation::Look(look) => self.look(look, now, see),
            Operation::Write(store) => see(&Answer::Written(self.write(store, now))),
            Operation::Delete { key, if_version } => {
                let answer = self.delete(key, *if_version, now);
                see(&answer)
            }
            Operation::Empty(emptying) => {
                let answer = self.empty(emptying, now);
                see(&answer)
            }
            Operation::Invalidate {
                key,
                if_version,
                touch,
                version,
            } => {
                let answer = self.invalidate(key, *if_version, *touch, *version, now);
                see(&answer)
            }
            Operation::Count(count) => see(&Answer::Counted(self.count(count, now))),
            Operation::Touch { key, expiry } => {
                // memcached's clients expect that a touch counts as a read.
                let key = self.key(key);
                let is_there = self.table.get(&key, now).is_some();
                self.ledger.figures.on_touch(is_there);
                see(&match self.table.touch(&key, *expiry, now) {
                    Ok(()) => Answer::Done,
                    Err(WriteError::Absent) => Answer::Missing,
                    Err(error) => Answer::Written(Err(error)),
                })
            }
            Operation::Inspect { key } => self.inspect(key, now, see),
            Operation::Flush { at } => {
                self.ledger.figures.on_flush();
                self.table.flush(*at, now);
                see(&Answer::Done)
            }
            Operation::Reset => {
                *self.ledger = Ledger {
                    figures: Figures::default(),
                    base: self.table.stats(),
                    ..*self.ledger
                };
                see(&Answer::Done)
            }
        }
    }

    /// Prefetches the memory that reads of these keys need. Does nothing for fewer than two keys,
    /// which would gain nothing.
    pub fn ahead<'a>(&self, mut keys: impl Iterator<Item = &'a [u8]>) {
        let (Some(first), Some(second)) = (keys.next(), keys.next()) else {
            return;
        };
        let keys = [first, second].into_iter().chain(keys);
        let mut keys = keys.filter_map(|key| self.table.key(key));
        let Some(first) = keys.next() else { return };
        let mut batch = [first; BATCH];
        let mut len = 1;
        for (place, key) in batch[1..].iter_mut().zip(keys) {
            *place = key;
            len += 1;
        }
        self.table.ahead(&mut batch[..len]);
    }

    /// The figures of commands and table, since a client last reset them.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let table = figures::since(&self.ledger.base, self.table.stats());
        self.ledger.figures.with_table(table)
    }

    fn key<'a>(&self, key: &'a [u8]) -> Key<'a> {
        self.table
            .key(key)
            .expect("commands have keys of 1 to 250 bytes")
    }

    fn get<T>(
        &mut self,
        key: &[u8],
        touch: Option<Expiry>,
        now: Seconds,
        see: impl FnOnce(&Answer<'_>) -> T,
    ) -> T {
        let key = self.key(key);
        if let Err(error) = self.make_room(&key, touch.flatten(), now) {
            return see(&Answer::Written(Err(error)));
        }
        let item = self.table.get(&key, now);
        self.ledger.figures.on_get(item.is_some(), touch.is_some());
        let seen = match item {
            Some(item) => see(&Answer::Found(Found {
                item,
                is_new: false,
                is_won: false,
            })),
            None => see(&Answer::Missing),
        };
        if let Some(expiry) = touch {
            self.change_expiry(&key, expiry, now);
        }
        seen
    }

    /// Makes room for an expiry that the operation will set, before the client gets an answer. Only
    /// a full store can lack the room.
    fn make_room(&mut self, key: &Key<'_>, expiry: Expiry, now: Seconds) -> Result<(), WriteError> {
        match expiry.map_or(Ok(()), |_| self.table.widen(key, now)) {
            Err(WriteError::Absent) => Ok(()),
            made => made,
        }
    }

    /// Deletes an item that the operation has created but cannot finish.
    fn take_back(&mut self, key: &Key<'_>, now: Seconds) {
        let deleted = self.table.delete(key, None, now);
        debug_assert_eq!(deleted, Ok(()));
    }

    /// Changes when an item expires, if there is an item. The caller has made room for that.
    fn change_expiry(&mut self, key: &Key<'_>, expiry: Expiry, now: Seconds) {
        let touched = self.table.touch(key, expiry, now);
        debug_assert!(matches!(touched, Ok(()) | Err(WriteError::Absent)));
    }

    fn inspect<T>(&mut self, key: &[u8], now: Seconds, see: impl FnOnce(&Answer<'_>) -> T) -> T {
        self.ledger.figures.on_inspect();
        let key = self.key(key);
        match self.table.peek(&key, now) {
            Some(item) => see(&Answer::Found(Found {
                item,
                is_new: false,
                is_won: false,
            })),
            None => see(&Answer::Missing),
        }
    }

    /// Counts a value that was refused before it arrived.
    pub(crate) const fn count_too_large(&mut self) {
        self.ledger.figures.on_too_large();
    }

    /// Deletes the item that a refused value was meant to replace. It does not count as a delete,
    /// because the client has asked for none.
    pub(crate) fn forget(&mut self, key: &[u8], now: Seconds) {
        // There may be no item.
        let _ = self.table.delete(&self.key(key), None, now);
    }

    fn delete(&mut self, key: &[u8], if_version: Option<Version>, now: Seconds) -> Answer<'static> {
        let result = self.table.delete(&self.key(key), if_version, now);
        self.ledger.figures.on_delete(result.is_ok());
        deleted(result)
    }

    fn invalidate(
        &mut self,
        key: &[u8],
        if_version: Option<Version>,
        touch: Option<Expiry>,
        version: Option<Version>,
        now: Seconds,
    ) -> Answer<'static> {
        let key = self.key(key);
        if let Err(error) = self.make_room(&key, touch.flatten(), now) {
            return Answer::Written(Err(error));
        }
        let result = self.table.invalidate(&key, if_version, now);
        if result.is_err() {
            self.ledger.figures.on_delete(false);
            return deleted(result.map(|_| ()));
        }
        if let Some(expiry) = touch {
            self.change_expiry(&key, expiry, now);
        }
        self.renumber(&key, version, now);
        Answer::Done
    }

    /// Gives an item the client's version, if the client has chosen one.
    fn renumber(&mut self, key: &Key<'_>, version: Option<Version>, now: Seconds) {
        if let Some(version) = version {
            self.table.renumber(key, version, now);
        }
    }
}

fn deleted(result: Result<(), DeleteError>) -> Answer<'static> {
    match result {
        Ok(()) => Answer::Done,
        Err(DeleteError::Absent) => Answer::Missing,
        Err(DeleteError::VersionDiffers) => Answer::Differs,
    }
}
