//! Writes of values.

use dunlin_store::{Seconds, Version, Write, WriteError};

use crate::operation::Store;
use crate::partition::Partition;

impl Partition<'_> {
    pub(super) fn write(&mut self, store: &Store<'_>, now: Seconds) -> Result<Version, WriteError> {
        let key = self.key(store.key);
        let mut write = Write {
            verb: store.verb,
            value: store.value,
            flags: store.flags,
            expiry: store.expiry,
            if_version: store.if_version,
            stale_if_older: store.stale_if_older,
            version: store.version,
        };
        // If the write is older than the item, and so marks it as out of date, the item keeps its
        // claim and its expiry.
        let mut was_claimed = false;
        if let (true, Some(version)) = (store.stale_if_older, store.if_version)
            && let Some(old) = self.table.peek(&key, now)
            && version < old.version()
        {
            write.expiry = old.expiry();
            was_claimed = old.is_claimed();
        }
        let result = self.table.write(&key, &write, now);
        if was_claimed && result.is_ok() {
            self.table.claim(&key, now);
        }
        self.ledger
            .figures
            .on_write(store.if_version.is_some(), result);
        result
    }
}
