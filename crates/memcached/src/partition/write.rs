//! Writes of values.

use dunlin_store::{Key, Seconds, Verb, Version, Write, WriteError, Writing};

use crate::operation::{Answer, Emptying, Store, Written};
use crate::partition::Partition;

impl Partition<'_> {
    pub(super) fn write(&mut self, store: &Store<'_>, now: Seconds) -> Result<Written, WriteError> {
        let key = self.key(store.key);
        let (write, was_claimed) = self.prepare(&key, store, now);
        let result = match self.is_too_long(&key, &write, now) {
            true => Err(WriteError::TooLong),
            false => self.table.write(&key, &write, now),
        };
        self.on_written((&key, store), was_claimed, result, now)
    }

    /// Does a part of a write, and returns its result once there is one; see [`Table::write_part`].
    ///
    /// [`Table::write_part`]: dunlin_store::Table::write_part
    pub(crate) fn write_part(
        &mut self,
        store: &Store<'_>,
        writing: &mut Writing,
        now: Seconds,
    ) -> Option<Result<Written, WriteError>> {
        let key = self.key(store.key);
        let (write, was_claimed) = self.prepare(&key, store, now);
        let result = match self.is_too_long(&key, &write, now) {
            true => {
                self.abandon(std::mem::take(writing));
                Err(WriteError::TooLong)
            }
            false => self.table.write_part(&key, &write, writing, now)?,
        };
        Some(self.on_written((&key, store), was_claimed, result, now))
    }

    /// Whether a value would be longer than clients may write. The length of what a client sends
    /// was compared before it came, but without the value to which the bytes are added.
    fn is_too_long(&mut self, key: &Key<'_>, write: &Write<'_>, now: Seconds) -> bool {
        let Some(most) = self.ledger.most_value else {
            return false;
        };
        let old = match write.verb.joins() {
            true => self.table.peek(key, now),
            false => None,
        };
        old.map_or(0, |item| item.value().len()) + write.value.len() > most
    }

    /// Abandons a write in progress.
    pub(crate) fn abandon(&mut self, writing: Writing) {
        self.table.abandon(writing);
    }

    /// Returns the table's write, and whether the item keeps a claim. If a write with
    /// `stale_if_older` names a version that is older than the version of the item, it marks the
    /// item as out of date, and the item keeps its claim and its expiry.
    fn prepare<'a>(&mut self, key: &Key<'_>, store: &Store<'a>, now: Seconds) -> (Write<'a>, bool) {
        let mut write = Write {
            verb: store.verb,
            value: store.value,
            flags: store.flags,
            expiry: store.expiry,
            if_version: store.if_version,
            stale_if_older: store.stale_if_older,
            version: store.version,
        };
        if let Some(expiry) = store.vivify
            && store.verb.joins()
            && self.table.peek(key, now).is_none()
        {
            (write.verb, write.expiry, write.if_version) = (Verb::Set, expiry, None);
        }
        let mut was_claimed = false;
        if let (true, Some(version)) = (store.stale_if_older, store.if_version)
            && let Some(old) = self.table.peek(key, now)
            && version < old.version()
        {
            write.expiry = old.expiry();
            was_claimed = old.is_claimed();
        }
        (write, was_claimed)
    }

    /// Does what follows a write, and returns the result for its answer.
    fn on_written(
        &mut self,
        (key, store): (&Key<'_>, &Store<'_>),
        was_claimed: bool,
        result: Result<Version, WriteError>,
        now: Seconds,
    ) -> Result<Written, WriteError> {
        if was_claimed && result.is_ok() {
            self.table.claim(key, now);
        }
        let figures = &mut self.ledger.figures;
        figures.on_write(store.if_version.is_some(), result);
        let version = result?;
        let mut len = store.value.len();
        if store.verb.joins() {
            len = self.table.peek(key, now).map_or(len, |it| it.value().len());
        }
        Ok(Written { version, len })
    }

    /// Replaces an item's value by an empty one. The item keeps its version, unless the client has
    /// chosen another one or wants the item to be out of date.
    pub(super) fn empty(&mut self, emptying: &Emptying<'_>, now: Seconds) -> Answer<'static> {
        let key = self.key(emptying.key);
        let version = self.table.peek(&key, now).map(|item| item.version());
        let is_it = version.is_some() && emptying.if_version.is_none_or(|it| Some(it) == version);
        if !is_it {
            self.ledger.figures.on_delete(false);
            return match version {
                Some(_) => Answer::Differs,
                None => Answer::Missing,
            };
        }
        let write = Write {
            flags: emptying.flags,
            expiry: emptying.expiry,
            version: emptying.version.or(version),
            ..Write::set(b"")
        };
        if let Err(error) = self.table.write(&key, &write, now) {
            return Answer::Written(Err(error));
        }
        match emptying.invalidates {
            // If the item has expired by its new expiry, there is nothing to mark.
            true => {
                if self.table.invalidate(&key, None, now).is_ok() {
                    self.renumber(&key, emptying.version, now);
                }
            }
            false => self.ledger.figures.on_delete(true),
        }
        Answer::Done
    }
}
