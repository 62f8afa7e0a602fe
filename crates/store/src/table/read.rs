//! Reading an item.

use crate::config::{ACCESS_SECONDS, Mode, SLICE};
use crate::index::Place;
use crate::item::{Header, Seconds, Stamp, Value, Version, mark};
use crate::memory::Region;
use crate::mutant::Mutant;
use crate::table::body::{Found, Table};
use crate::table::key::Key;

/// An item in the memory of the table.
#[derive(Clone, Copy)]
pub struct Item<'a> {
    memory: &'a Region,
    place: Place,
    header: Header,
    mode: Mode,
}

impl<'a> Item<'a> {
    /// The key with which the item was written.
    #[must_use]
    pub fn key(&self) -> &'a [u8] {
        self.header.key(self.memory, self.place)
    }

    /// The item's value.
    #[inline]
    #[must_use]
    pub fn value(&self) -> Value<'a> {
        Value::read(self.memory, self.place, &self.header, self.mode)
    }

    /// For a value longer than a [`SLICE`]: the stamp of its write, for [`Table::read_slice`].
    #[must_use]
    pub fn stamp(&self) -> Option<Stamp> {
        self.header.stamp(self.memory, self.place)
    }

    /// The writer's flags, which mean nothing to the table.
    #[must_use]
    pub const fn flags(&self) -> u32 {
        self.header.flags
    }

    /// The version that the item's last write got.
    #[must_use]
    pub const fn version(&self) -> Version {
        Version(self.header.version)
    }

    /// When the item expires, if it does.
    #[must_use]
    pub fn expiry(&self) -> Option<Seconds> {
        (self.header.expiry != 0).then_some(Seconds(self.header.expiry))
    }

    /// When the item was last read before this get; if it was not read, when it was written. Of
    /// later reads, the table records one in [`ACCESS_SECONDS`], so the last one may be younger by
    /// less than that.
    #[must_use]
    pub const fn last_access(&self) -> Seconds {
        Seconds(self.header.last_access)
    }

    /// True if the item was read between its last write and this get.
    #[must_use]
    pub const fn was_read(&self) -> bool {
        self.header.marks & mark::READ != 0
    }

    /// True if the item was invalidated and not written since.
    #[must_use]
    pub const fn is_stale(&self) -> bool {
        self.header.marks & mark::STALE != 0
    }

    /// True if a client has claimed to write a new value ([`Table::claim`]).
    #[must_use]
    pub const fn is_claimed(&self) -> bool {
        self.header.marks & mark::CLAIMED != 0
    }
}

impl std::fmt::Debug for Item<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key = self.key().escape_ascii().to_string();
        f.debug_struct("Item")
            .field("key", &key)
            .field("version", &self.version())
            .field("value_len", &self.value().len())
            .finish_non_exhaustive()
    }
}

impl Table {
    /// The item of a key, if there is one. It counts as read.
    #[inline]
    pub fn get(&mut self, key: &Key<'_>, now: Seconds) -> Option<Item<'_>> {
        self.stats.gets += 1;
        self.hot.on_get(key);
        let found = self.find(key, now).filter(|_| !self.has(Mutant::Miss))?;
        self.stats.hits += 1;
        self.mark_read(&found, now);
        Some(self.item(&found))
    }

    /// The item of a key, if there is one. It does not count as read.
    pub fn peek(&mut self, key: &Key<'_>, now: Seconds) -> Option<Item<'_>> {
        let found = self.find(key, now)?;
        Some(self.item(&found))
    }

    /// Copies bytes of a long value from `from` on to `out`, at most [`SLICE`] of them, and returns
    /// how many; `None` if the value of `stamp` is gone. Between two slices the table may do other
    /// work: all slices come from one value, or a later call returns `None`.
    pub fn read_slice(
        &mut self,
        key: &Key<'_>,
        stamp: Stamp,
        from: usize,
        out: &mut [u8],
        now: Seconds,
    ) -> Option<usize> {
        let found = self.find(key, now)?;
        let item = self.item(&found);
        let is_same = item.stamp() == Some(stamp) || self.has(Mutant::MixedSlices);
        let len = out.len().min(SLICE);
        is_same.then(|| item.value().copy_from(from, &mut out[..len]))
    }

    /// As [`Self::read_slice`], but appends the bytes to `out`.
    pub fn append_slice(
        &mut self,
        key: &Key<'_>,
        stamp: Stamp,
        from: usize,
        out: &mut Vec<u8>,
        now: Seconds,
    ) -> Option<usize> {
        let found = self.find(key, now)?;
        let item = self.item(&found);
        let is_same = item.stamp() == Some(stamp) || self.has(Mutant::MixedSlices);
        is_same.then(|| item.value().append_part(from, SLICE, out))
    }

    #[inline]
    pub(super) fn item(&self, found: &Found) -> Item<'_> {
        Item {
            memory: &self.memory,
            place: found.entry.place(),
            header: found.header,
            mode: self.mode,
        }
    }

    /// Records a read. Most reads of an item write nothing: a cache line that is only read need not
    /// go back to memory.
    #[inline]
    fn mark_read(&mut self, found: &Found, now: Seconds) {
        let entry = found.entry.warmer();
        if self.mode == Mode::Cache && entry != found.entry {
            self.index.set_entry(&mut self.memory, found.slot, entry);
        }
        let header = &found.header;
        let age = now.0.saturating_sub(header.last_access);
        if header.marks & mark::READ == 0 || age >= ACCESS_SECONDS {
            Header::record_read(&mut self.memory, found.entry.place(), now);
        }
    }
}
