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

    /// The stamp of the item's write, for [`Table::read_slice`]. Only values longer than a
    /// [`SLICE`] have one.
    #[must_use]
    pub fn stamp(&self) -> Option<Stamp> {
        self.header.stamp(self.memory, self.place)
    }

    /// The writer's flags, which the table only keeps.
    #[must_use]
    pub const fn flags(&self) -> u32 {
        self.header.flags
    }

    /// The version of the item's last write.
    #[must_use]
    pub const fn version(&self) -> Version {
        Version(self.header.version)
    }

    /// When the item expires, if ever.
    #[must_use]
    pub fn expiry(&self) -> Option<Seconds> {
        (self.header.expiry != 0).then_some(Seconds(self.header.expiry))
    }

    /// When the item was last read before this get, or, if it was not read, when it was written.
    /// After the first read, the table updates this time only once in [`ACCESS_SECONDS`], so the
    /// actual last read may be later by less than that.
    #[must_use]
    pub const fn last_access(&self) -> Seconds {
        Seconds(self.header.last_access)
    }

    /// Whether the item was read between its last write and this get.
    #[must_use]
    pub const fn was_read(&self) -> bool {
        self.header.marks & mark::READ != 0
    }

    /// Whether the item was invalidated and not written since.
    #[must_use]
    pub const fn is_stale(&self) -> bool {
        self.header.marks & mark::STALE != 0
    }

    /// Whether a client has claimed to write a new value ([`Table::claim`]).
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
    /// Gets the item of a key, and counts this as a read.
    #[inline]
    pub fn get(&mut self, key: &Key<'_>, now: Seconds) -> Option<Item<'_>> {
        self.stats.gets += 1;
        self.hot.on_get(key);
        let found = self.find(key, now).filter(|_| !self.has(Mutant::Miss))?;
        self.stats.hits += 1;
        self.mark_read(&found, now);
        Some(self.item(&found))
    }

    /// Gets the item of a key, without counting this as a read.
    pub fn peek(&mut self, key: &Key<'_>, now: Seconds) -> Option<Item<'_>> {
        let found = self.find(key, now)?;
        Some(self.item(&found))
    }

    /// Copies at most [`SLICE`] bytes of a long value, from offset `from` on, to `out`, and returns
    /// their number; `None` if the value with this stamp is gone. Between two slices the table may
    /// do other work: all slices come from one value, or a later call returns `None`.
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

    /// Like [`Self::read_slice`], but appends the bytes to `out`.
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

    /// Records a read. Most reads of an item write nothing, so that its cache line need not be
    /// written back to memory.
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
