//! The parts of a table, and the steps that all calls share.
//!
//! Invariants: each entry of the index names an item that lies completely in the log or in the
//! slots, and whose key has the entry's bucket and tag; no two entries have the same key; in store
//! mode each item in a slot has an entry. So an item that leaves the log is alive if and only if an
//! entry names its place, and no entries need checking when its memory is reused.

use std::fmt;

use super::departure::{Departure, Reason, Watcher};
use super::hot::Hot;
use super::key::Key;
use super::pending::Writings;
use super::stats::Stats;
use crate::classes::{Classes, Moved};
use crate::config::{BYTES_PER_FIRST_BUCKET, Config, MAX_KEY, MAX_VALUE, MIN_MEMORY, Mode};
use crate::departed::Departed;
use crate::due::Due;
use crate::hash::Seed;
use crate::index::{Index, IndexEntry, PLACE_BITS, Place, Slot};
use crate::item::{Header, Seconds, Version};
use crate::log::Log;
use crate::memory::Region;
use crate::mutant::Mutant;

/// Keys and values in one region of memory.
#[derive(Debug)]
pub struct Table {
    pub(super) memory: Region,
    pub(super) index: Index,
    pub(super) storage: Storage,
    pub(super) mode: Mode,
    pub(super) seed: Seed,
    pub(super) next_version: u64,
    pub(super) next_stamp: u64,
    /// The number of flushes so far, which skips 0 when it wraps. A bucket that has seen fewer is
    /// emptied when it is next used.
    pub(super) epoch: u32,
    flush_at: Option<Seconds>,
    /// The parts of the index that the sweep visits.
    pub(super) due: Due,
    /// Keys whose items were evicted from a cache.
    pub(super) departed: Departed,
    pub(super) stats: Stats,
    pub(super) hot: Hot,
    /// A buffer in which values are joined. Allocated once.
    pub(super) joined: Vec<u8>,
    pub(super) writings: Writings,
    watcher: Watcher,
    #[cfg(feature = "mutants")]
    mutant: Option<Mutant>,
}

/// The memory of items.
#[derive(Debug)]
pub(super) enum Storage {
    Log(Log),
    Classes(Classes),
}

/// The region is smaller than a table can be, or larger than its entries can address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SizeError {
    /// The region's length in bytes.
    pub len: usize,
}

/// An item that was found.
#[derive(Clone, Copy)]
pub(super) struct Found {
    pub(super) slot: Slot,
    pub(super) entry: IndexEntry,
    pub(super) header: Header,
}

impl Table {
    /// Makes a table in `memory`, which must be zero like a new region from [`Region::new`].
    ///
    /// # Errors
    /// [`SizeError`] if the region has less than [`MIN_MEMORY`] or more than 8 TiB.
    pub fn new(mut memory: Region, config: Config) -> Result<Self, SizeError> {
        let len = memory.len();
        if len < MIN_MEMORY || len as u64 > 8 << PLACE_BITS {
            return Err(SizeError { len });
        }
        let bits = (len / BYTES_PER_FIRST_BUCKET).ilog2();
        let index = Index::new(&mut memory, bits);
        let storage = match config.mode {
            Mode::Cache => Storage::Log(Log::new(index.bottom())),
            Mode::Store => Storage::Classes(Classes::new()),
        };
        Ok(Self {
            memory,
            index,
            storage,
            mode: config.mode,
            seed: config.seed,
            next_version: config.first_version,
            next_stamp: config.first_version,
            epoch: 0,
            flush_at: None,
            due: Due::new(1 << bits),
            departed: Departed::new(match config.mode {
                Mode::Cache => len,
                Mode::Store => 0,
            }),
            stats: Stats::default(),
            hot: Hot::new(config.seed),
            joined: Vec::with_capacity(MAX_VALUE),
            writings: Writings::new(),
            watcher: Watcher::default(),
            #[cfg(feature = "mutants")]
            mutant: None,
        })
    }

    /// Plants a bug.
    #[cfg(feature = "mutants")]
    pub fn plant(&mut self, mutant: Mutant) {
        self.mutant = Some(mutant);
    }

    /// True if this bug is planted.
    #[inline]
    #[cfg_attr(
        not(feature = "mutants"),
        expect(clippy::unused_self, reason = "without the feature, no bug is planted")
    )]
    pub(super) fn has(&self, mutant: Mutant) -> bool {
        #[cfg(feature = "mutants")]
        let is_planted = self.mutant == Some(mutant);
        #[cfg(not(feature = "mutants"))]
        let is_planted = {
            let _ = mutant;
            false
        };
        is_planted
    }

    /// How the table behaves when its memory is used up.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// The length of the table's region in bytes.
    #[must_use]
    pub fn region_len(&self) -> usize {
        self.memory.len()
    }

    /// Hashes a key with the table's secret; `None` unless the key has 1 to [`MAX_KEY`] bytes. The
    /// result works only with this table.
    #[inline]
    #[must_use]
    pub fn key<'a>(&self, bytes: &'a [u8]) -> Option<Key<'a>> {
        if bytes.is_empty() || bytes.len() > MAX_KEY {
            return None;
        }
        Some(Key::new(bytes, self.seed.hash(bytes)))
    }

    /// Calls `see` with each item that leaves on its own, while the item still exists. This
    /// excludes items that a client deletes or overwrites.
    pub fn watch(&mut self, see: impl FnMut(Departure<'_>) + Send + 'static) {
        self.watcher = Watcher::new(see);
    }

    /// The figures at this moment.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let (items, laps) = match &self.storage {
            Storage::Log(log) => (log.bytes(), log.laps()),
            Storage::Classes(classes) => (classes.bytes(), 0),
        };
        let index = self.index.bytes() as u64;
        Stats {
            buckets: self.index.buckets(),
            index_bytes: index,
            used_bytes: index + items as u64,
            laps,
            oldest_access: self.oldest_access().into(),
            ..self.stats
        }
    }

    /// The last access of the item that leaves the log next.
    fn oldest_access(&self) -> u32 {
        let Storage::Log(log) = &self.storage else {
            return 0;
        };
        let place = log.first().map(Place::at);
        place.map_or(0, |place| Header::read(&self.memory, place).last_access)
    }

    /// Keys that clients have recently read most, at most [`HOT_KEYS`](crate::HOT_KEYS), each with
    /// its number of sampled gets, in descending order.
    #[must_use]
    pub fn hot_keys(&self) -> Vec<(&[u8], u64)> {
        self.hot.keys()
    }

    /// The number of gets that were sampled for [`Self::hot_keys`], about one in 64. Now and then
    /// it is halved, together with the numbers of the keys.
    #[must_use]
    pub const fn hot_samples(&self) -> u64 {
        self.hot.samples()
    }

    /// Forgets all items that were written before `at`. The call itself takes constant time: each
    /// bucket is emptied when it is next used or swept. Replaces a flush that is not due yet.
    pub fn flush(&mut self, at: Seconds, now: Seconds) {
        self.settle(now);
        self.flush_at = Some(at);
        self.settle(now);
    }

    /// Carries out a flush that is due.
    #[inline]
    pub(super) fn settle(&mut self, now: Seconds) {
        if self.flush_at.is_some_and(|at| at <= now) {
            self.flush_at = None;
            if !self.has(Mutant::LostFlush) {
                self.epoch = self.epoch.wrapping_add(1).max(1);
                self.due.note_all();
            }
        }
    }

    /// Finds a key's item, after doing the work that is due for its bucket. Removes an expired
    /// item, and returns `None` for it.
    #[inline]
    pub(super) fn find(&mut self, key: &Key<'_>, now: Seconds) -> Option<Found> {
        self.settle(now);
        if !self.is_fresh(key) {
            self.empty_bucket(self.index.bucket(key.hash()));
        }
        let found = self.look_up(key)?;
        if found.header.is_expired(now) && !self.has(Mutant::Expired) {
            self.remove_expired(key.hash(), found.slot);
            return None;
        }
        Some(found)
    }

    /// The item of a key, if it is in the noted slot, has not expired, and its bucket has no work
    /// due.
    #[inline(always)]
    pub(super) fn find_noted(&self, key: &Key<'_>, now: Seconds) -> Option<Found> {
        let slot = key.likely()?;
        if self.flush_at.is_some() || !self.is_fresh(key) {
            return None;
        }
        let found = self.found_at(slot, key)?;
        (!found.header.is_expired(now)).then_some(found)
    }

    /// Whether the bucket of a key has seen all flushes.
    #[inline]
    fn is_fresh(&self, key: &Key<'_>) -> bool {
        let bucket = || self.index.bucket(key.hash());
        self.epoch == 0 || self.index.is_fresh(&self.memory, bucket(), self.epoch)
    }

    /// Removes an expired item. Its argument is the slot, so it reads the item again. If it took
    /// the item as an argument, each search would write the item to memory.
    #[cold]
    #[inline(never)]
    fn remove_expired(&mut self, hash: u64, slot: Slot) {
        let found = self.found_in(slot);
        self.remove(hash, &found, Some(Reason::Expired));
    }

    /// Finds a key's item without changing anything.
    #[inline]
    pub(super) fn look_up(&self, key: &Key<'_>) -> Option<Found> {
        // If the key's entry is in the slot that was noted, no other slot has it.
        if let Some(slot) = key.likely()
            && let Some(found) = self.found_at(slot, key)
        {
            return Some(found);
        }
        self.search(key).map(|slot| self.found_in(slot))
    }

    /// The item of the entry in a slot, if it has this key.
    #[inline(always)]
    fn found_at(&self, slot: Slot, key: &Key<'_>) -> Option<Found> {
        let entry = self.index.entry(&self.memory, slot);
        if self.has(Mutant::NotedSlot) {
            return (!entry.is_empty()).then(|| self.found_in(slot));
        }
        if !self.index.has_tag(entry, key.hash()) {
            return None;
        }
        let header = Header::read(&self.memory, entry.place());
        self.has_key(&header, entry, key).then_some(Found {
            slot,
            entry,
            header,
        })
    }

    /// The item of the entry in a slot.
    pub(super) fn found_in(&self, slot: Slot) -> Found {
        let entry = self.index.entry(&self.memory, slot);
        let header = Header::read(&self.memory, entry.place());
        Found {
            slot,
            entry,
            header,
        }
    }

    /// Finds the slot of a key's entry. Returns only the slot, which is faster than returning
    /// everything that was read on the way.
    #[inline(never)]
    fn search(&self, key: &Key<'_>) -> Option<Slot> {
        let is_it = |entry: IndexEntry| self.is_of(entry, key);
        let found = self.index.find(&self.memory, key.hash(), is_it);
        found.map(|(slot, _)| slot)
    }

    /// Whether an entry's item has this key.
    #[inline]
    fn is_of(&self, entry: IndexEntry, key: &Key<'_>) -> bool {
        let header = Header::read(&self.memory, entry.place());
        self.has_key(&header, entry, key)
    }

    /// Whether the item of this entry, with this header, has this key.
    #[inline]
    fn has_key(&self, header: &Header, entry: IndexEntry, key: &Key<'_>) -> bool {
        usize::from(header.key_len) == key.bytes().len()
            && is_same(header.key(&self.memory, entry.place()), key.bytes())
    }

    /// Removes an item. With a reason, it leaves on its own, and the watcher sees it.
    pub(super) fn remove(&mut self, hash: u64, found: &Found, reason: Option<Reason>) {
        self.report(found, reason);
        self.index.remove(&mut self.memory, hash, found.slot);
        self.release(found.entry.place(), &found.header);
    }

    /// Counts and reports an item that is about to leave.
    pub(super) fn report(&mut self, found: &Found, reason: Option<Reason>) {
        let header = &found.header;
        self.stats.on_gone(header, found.entry.heat(), reason);
        if let Some(reason) = reason {
            let departure = Departure {
                key: header.key(&self.memory, found.entry.place()),
                version: Version(header.version),
                reason,
            };
            self.watcher.see(departure);
        }
    }

    /// Empties a bucket that has not seen all flushes. Returns the number of cache lines that this
    /// has touched, without the bucket's first line.
    #[cold]
    pub(super) fn empty_bucket(&mut self, bucket: u64) -> u64 {
        let mut lines = 0;
        while let Some((slot, entry)) = self.index.entry_of(&self.memory, bucket, 0) {
            let header = Header::read(&self.memory, entry.place());
            let found = Found {
                slot,
                entry,
                header,
            };
            self.report(&found, Some(Reason::Flushed));
            self.index.remove_from(&mut self.memory, bucket, slot);
            self.release(entry.place(), &header);
            lines += 1 + self.lines_of_release(&header);
        }
        self.index.refresh(&mut self.memory, bucket, self.epoch);
        lines
    }

    /// Frees the memory of an item that no longer has an entry.
    pub(super) fn release(&mut self, place: Place, header: &Header) {
        let shape = header.shape(self.mode);
        // The log frees its bytes when the tail passes them.
        let Storage::Classes(classes) = &mut self.storage else {
            return;
        };
        for number in 0..shape.chunks {
            let page = page_of(&self.memory, place.byte() + shape.list_at, number);
            classes.free_page(&mut self.memory, page);
        }
        if let Some(moved) = classes.free(&mut self.memory, place, shape.size) {
            self.follow(moved);
        }
    }

    /// The most cache lines that freeing the memory of an item with this header touches. In a
    /// store, the last item of the same class moves into the freed slot, the entry of the moved
    /// item changes, and each page of a long value is put into a list. A log touches nothing.
    pub(super) fn lines_of_release(&self, header: &Header) -> u64 {
        if matches!(self.storage, Storage::Log(_)) {
            return 0;
        }
        let shape = header.shape(self.mode);
        (2 + 2 * shape.size.div_ceil(64) + shape.chunks) as u64
    }

    /// Updates the entry of an item that has moved.
    fn follow(&mut self, moved: Moved) {
        if self.has(Mutant::LostMove) {
            return;
        }
        let header = Header::read(&self.memory, moved.to);
        let hash = self.seed.hash(header.key(&self.memory, moved.to));
        let is_it = |entry: IndexEntry| entry.place() == moved.from;
        let found = self.index.find(&self.memory, hash, is_it);
        let (slot, entry) = found.expect("each item in a slot has an entry");
        let entry = entry.moved_to(moved.to);
        self.index.set_entry(&mut self.memory, slot, entry);
    }

    /// Takes the number of the next write. 0 means no version, so the highest number is followed by
    /// 1.
    pub(super) fn take_version(&mut self) -> u64 {
        let version = self.next_version;
        if self.has(Mutant::OldVersion) && version.is_multiple_of(16) {
            return version.wrapping_sub(1);
        }
        self.next_version = version.wrapping_add(1).max(1);
        version
    }
}

/// Whether two keys of equal length are the same. Keys are short, and calling `memcmp` costs more
/// than these comparisons. Two words, which may overlap, cover a key of 8 to 16 bytes.
#[inline]
pub(super) fn is_same(one: &[u8], other: &[u8]) -> bool {
    let ends = |key: &[u8]| {
        let words = [*key.first_chunk()?, *key.last_chunk()?];
        (key.len() <= 16).then(|| words.map(u64::from_le_bytes))
    };
    match (ends(one), ends(other)) {
        (Some([first, last]), Some(other)) => (first ^ other[0]) | (last ^ other[1]) == 0,
        _ => is_same_long(one, other),
    }
}

/// Like [`is_same`], for keys of any length.
fn is_same_long(one: &[u8], other: &[u8]) -> bool {
    let (ones, rest) = one.as_chunks::<8>();
    let (others, other_rest) = other.as_chunks::<8>();
    let pairs = ones.iter().zip(others);
    let differ = pairs.fold(0, |differ, (one, other)| {
        differ | (u64::from_le_bytes(*one) ^ u64::from_le_bytes(*other))
    });
    let pairs = rest.iter().zip(other_rest);
    pairs.fold(differ, |differ, (one, other)| {
        differ | u64::from(one ^ other)
    }) == 0
}

/// Page `number` of the list at `list`.
pub(super) fn page_of(memory: &Region, list: usize, number: usize) -> u32 {
    let at = list + 4 * number;
    u32::from_le_bytes(memory[at..at + 4].as_chunks::<4>().0[0])
}

impl fmt::Display for SizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { len } = self;
        write!(
            f,
            "a table needs {MIN_MEMORY} bytes to 8 TiB, and the region has {len}"
        )
    }
}

impl std::error::Error for SizeError {}
