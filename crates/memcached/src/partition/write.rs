//! Writes of values.

use dunlin_store::{Key, Seconds, Version, Write, WriteError, Writing};

use crate::operation::Store;
use crate::partition::Partition;

impl Partition<'_> {
    pub(super) fn write(&mut self, store: &Store<'_>, now: Seconds) -> Result<Version, WriteError> {
        let key = self.key(store.key);
        let (write, was_claimed) = self.prepare(&key, store, now);
        let result = self.table.write(&key, &write, now);
        self.on_written((&key, store), was_claimed, result, now);
        result
    }

    /// Does a part of a write, and returns its result once there is one; see [`Table::write_part`].
    ///
    /// [`Table::write_part`]: dunlin_store::Table::write_part
    pub(crate) fn write_part(
        &mut self,
        store: &Store<'_>,
        writing: &mut Writing,
        now: Seconds,
    ) -> Option<Result<Version, WriteError>> {
        let key = self.key(store.key);
        let (write, was_claimed) = self.prepare(&key, store, now);
        let result = self.table.write_part(&key, &write, writing, now)?;
        self.on_written((&key, store), was_claimed, result, now);
        Some(result)
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

    fn on_written(
        &mut self,
        (key, store): (&Key<'_>, &Store<'_>),
        was_claimed: bool,
        result: Result<Version, WriteError>,
        now: Seconds,
    ) {
        if was_claimed && result.is_ok() {
            self.table.claim(key, now);
        }
        let figures = &mut self.ledger.figures;
        figures.on_write(store.if_version.is_some(), result);
    }
}
