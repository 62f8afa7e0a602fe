//! Writes a long value in slices, between which the table does other work.
//!
//! A value longer than a [`SLICE`] first takes room, then gets its bytes, one slice in each call,
//! and at last its entry. So it becomes visible when it is complete, and a get sees the old value
//! until then. Whether the write happens is decided twice: at the start, so that a write that
//! cannot happen costs nothing, and at the end, when it happens.
//!
//! In a cache, a value that can overwrite its old value in place does so in one piece. A copy
//! elsewhere in the log would leave the old value behind as garbage, and so evict other items.
//! Otherwise the room is an item in the log that no entry names. The log may evict it like any dead
//! item; then the write has lost its room, and is done in one piece. Room for a long value may be
//! the room of thousands of items, so one call removes only a few of them. In a store, the room is
//! the pages of the value; its slot is taken at the end, because each slot has an entry.
//!
//! The table remembers [`MOST_WRITINGS`] writes in progress (`pending`); further writes are done in
//! one piece.
//! An append or a prepend is such a write if its result is long, however short its own bytes are;
//! `joining` puts the slices together. If its old value is overwritten meanwhile, it begins again,
//! three times at most. If making the rest of the room would evict the old item from a cache,
//! it is done in one piece. A caller that comes back with another key, verb or length gives up its
//! earlier write.
//!
//! A caller that vanishes costs little: a write that was not continued for two seconds is
//! abandoned to make room for another one. If its caller comes back, the write is done in one
//! piece. A write that is being continued is never abandoned, because otherwise a crowd of writers
//! would copy all their values twice.

use std::ops::Range;

use crate::classes::CHUNK;
use crate::config::{MAX_VALUE, MOST_WRITINGS, SLICE};
use crate::index::Place;
use crate::item::{Header, Seconds, Shape, Version, chunk_at};
use crate::mutant::Mutant;
use crate::table::body::{Storage, Table};
use crate::table::joining::Source;
use crate::table::key::Key;
use crate::table::pending::{Base, MOST_PAGES, Stage, Task, Writing};
use crate::table::write::{Write, WriteError, expiry_word, judge};

/// Items that one call may remove from the log. Each costs a line of the index, which is rarely in
/// the cache.
const MOST_LEAVING: usize = 128;

/// Calls that may make room for one value. If other writes use the room up as fast, the last of
/// these calls makes all of it.
const MOST_ROOM_CALLS: u16 = 512;

/// Pages that one call fills.
const SLICE_PAGES: usize = SLICE / CHUNK;

/// A key, with the header and the shape of its new item.
type NewItem<'a> = (&'a Key<'a>, &'a Header, &'a Shape);

impl Table {
    /// Does a part of a write, and returns the result once the write has happened or cannot happen.
    /// `None`: the caller does other work, and then calls again with the same arguments. A call
    /// copies at most a [`SLICE`] of its value, or two if it completes an append or a prepend. Some
    /// writes are done in one piece: those whose result is not longer than a slice; in a cache,
    /// values that overwrite an old value of the same size, and those that are added to one of the
    /// oldest items; and writes beyond [`MOST_WRITINGS`], or that were abandoned, have lost their
    /// room, or were overtaken by other writes of the key.
    ///
    /// ```
    /// # use dunlin_store::{Config, Mode, Region, Seconds, Seed, Table, Write, Writing};
    /// # let config = Config { mode: Mode::Store, seed: Seed::new([17, 4]), first_version: 1 };
    /// # let mut table = Table::new(Region::new(4 << 20)?, config)?;
    /// let (now, key) = (Seconds(1), table.key(b"film").expect("it has 1 to 250 bytes"));
    /// let value = vec![7; 1 << 20];
    /// let mut writing = Writing::default();
    /// let written = loop {
    ///     if let Some(written) = table.write_part(&key, &Write::set(&value), &mut writing, now) {
    ///         break written;
    ///     }
    ///     assert!(table.get(&key, now).is_none());
    /// };
    /// assert!(written.is_ok() && table.get(&key, now).is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_part(
        &mut self,
        key: &Key<'_>,
        write: &Write<'_>,
        writing: &mut Writing,
        now: Seconds,
    ) -> Option<Result<Version, WriteError>> {
        let task = task_of(key, write);
        if self.writings.has_other_task(*writing, task) {
            self.abandon(std::mem::take(writing));
        }
        let is_long = (SLICE + 1..=MAX_VALUE).contains(&write.value.len());
        if !is_long && !write.verb.joins() {
            return Some(self.write(key, write, now));
        }
        let full = WriteError::NoMemory;
        let own = *writing;
        let part = self.retry(full, own, now, |table| {
            table.try_part(key, write, writing, now)
        });
        let outcome = part.transpose()?;
        if outcome.is_err() {
            self.abandon(*writing);
        }
        *writing = Writing::default();
        Some(outcome)
    }

    /// Abandons a write in progress, and frees its room.
    pub fn abandon(&mut self, writing: Writing) {
        if let Some(stage) = self.writings.end(writing) {
            self.give_back(&stage);
        }
    }

    /// Frees the pages of a write that does not end.
    fn give_back(&mut self, stage: &Stage) {
        if let Stage::Paged { pages, .. } = stage
            && !self.has(Mutant::LostPages)
            && let Storage::Classes(classes) = &mut self.storage
        {
            for page in pages.iter().take_while(|page| **page != u32::MAX) {
                classes.free_page(&mut self.memory, *page);
            }
        }
    }

    /// Whether this write is in progress: it has neither ended nor been abandoned.
    #[must_use]
    pub fn is_under_way(&self, writing: Writing) -> bool {
        self.writings.stage(writing).is_some()
    }

    /// Abandons a write, except this one, that was not continued for two seconds. False: there is
    /// none.
    pub(super) fn give_up_idle(&mut self, own: Writing, now: Seconds) -> bool {
        let idle = self.writings.idle(own, now);
        if let Some(idle) = idle {
            self.abandon(idle);
        }
        idle.is_some()
    }

    fn try_part(
        &mut self,
        key: &Key<'_>,
        write: &Write<'_>,
        writing: &mut Writing,
        now: Seconds,
    ) -> Result<Option<Version>, WriteError> {
        let source = self.source(key, write, now)?;
        if source.is_short() {
            self.abandon(*writing);
            return self.try_write(key, write, now).map(Some);
        }
        let header = long_header(key, &source, now);
        let shape = header.shape(self.mode);
        let (item, base) = ((key, &header, &shape), self.base(&source));
        let is_overtaken =
            self.writings.has_other_base(*writing, base) && !self.has(Mutant::MixedJoin);
        let stage = self.writings.stage(*writing);
        let needs_room = is_overtaken || matches!(stage, Some(Stage::Room(_)));
        if needs_room && self.leaves_for(&source, shape.size) {
            self.abandon(*writing);
            return self.try_write(key, write, now).map(Some);
        }
        if is_overtaken {
            return match self.begin_again(item, base, *writing, now)? {
                true => Ok(None),
                false => self.try_write(key, write, now).map(Some),
            };
        }
        let stage = match stage {
            Some(stage @ (Stage::Logged { .. } | Stage::Paged { .. })) => stage,
            Some(Stage::Room(calls)) => {
                let stage = self.make_part_of_room(item, calls + 1, now);
                self.writings.set_stage(*writing, stage, now);
                return Ok(None);
            }
            None if *writing != Writing::default() => {
                // It was abandoned in favour of another one.
                return self.try_write(key, write, now).map(Some);
            }
            None => {
                if !self.may_take_parts(&source, item, now)? {
                    return self.try_write(key, write, now).map(Some);
                }
                let stage = self.begin_stage(item, now)?;
                *writing = self.writings.begin(task_of(key, write), stage, base, now);
                return Ok(None);
            }
        };
        if self.has_lost_room(&stage) {
            self.writings.end(*writing);
            return self.try_write(key, write, now).map(Some);
        }
        let stage = self.copy_part(stage, &shape, &source);
        self.writings.set_stage(*writing, stage, now);
        if !is_copied(&stage, &shape, source.len) {
            return Ok(None);
        }
        let version = self.end_parts(key, &source, header, &stage, now)?;
        self.writings.end(*writing);
        Ok(Some(version))
    }

    /// Begins a write again, because the value to which it adds bytes was overwritten. False: that
    /// has happened too often.
    fn begin_again(
        &mut self,
        item: NewItem<'_>,
        base: Option<Base>,
        writing: Writing,
        now: Seconds,
    ) -> Result<bool, WriteError> {
        let Some(stage) = self.writings.restart(writing, base) else {
            self.abandon(writing);
            return Ok(false);
        };
        self.give_back(&stage);
        let begun = self.begin_stage(item, now);
        match begun {
            Ok(stage) => self.writings.set_stage(writing, stage, now),
            // A write without room has no stage from which it could continue.
            Err(_) => self.abandon(writing),
        }
        begun.map(|_| true)
    }

    /// Decides whether a write happens, and whether in slices.
    fn may_take_parts(
        &mut self,
        source: &Source<'_>,
        (key, _, shape): NewItem<'_>,
        now: Seconds,
    ) -> Result<bool, WriteError> {
        let found = self.find(key, now);
        judge(found.as_ref(), source.write)?;
        let fits = found.is_some_and(|found| self.fits_in_place(&found.header, shape));
        Ok(!fits && !self.leaves_for(source, shape.size) && !self.is_crowded(now))
    }

    /// Whether the table cannot take another write, because all of its writes are being continued.
    fn is_crowded(&mut self, now: Seconds) -> bool {
        let is_full = self.writings.list.len() == MOST_WRITINGS;
        is_full && !self.give_up_idle(Writing::default(), now)
    }

    /// Begins to take room: in a store all pages, in a cache the room of a few items.
    fn begin_stage(&mut self, item: NewItem<'_>, now: Seconds) -> Result<Stage, WriteError> {
        let (limit, (_, _, shape)) = (self.index.bottom(), item);
        let classes = match &mut self.storage {
            Storage::Log(log) if shape.size > log.most_item() => return Err(WriteError::TooLong),
            Storage::Log(_) => return Ok(self.make_part_of_room(item, 1, now)),
            Storage::Classes(classes) => classes,
        };
        let mut pages = [u32::MAX; MOST_PAGES];
        for number in 0..shape.chunks {
            let Some(page) = classes.take_page(&mut self.memory, limit) else {
                for taken in &pages[..number] {
                    classes.free_page(&mut self.memory, *taken);
                }
                return Err(WriteError::NoMemory);
            };
            pages[number] = page;
        }
        Ok(Stage::Paged { pages, full: 0 })
    }

    /// Removes some items from the log, and appends the item without its value if there is enough
    /// room. No entry names it. `calls`: the number of calls that have made room for it, including
    /// this one.
    fn make_part_of_room(&mut self, item: NewItem<'_>, calls: u16, now: Seconds) -> Stage {
        let (key, header, shape) = item;
        let most = match calls < MOST_ROOM_CALLS {
            true => MOST_LEAVING,
            false => usize::MAX,
        };
        let has_room = self.make_log_room(shape.size, most, now);
        let Storage::Log(log) = &mut self.storage else {
            return Stage::Room(calls);
        };
        if !has_room {
            return Stage::Room(calls);
        }
        let position = log.position();
        let place = Place::at(log.append(shape.size));
        self.write_head(place, header, shape, key);
        Stage::Logged {
            place,
            position,
            done: 0,
        }
    }

    /// Writes header, stamp and key of a long value's item.
    fn write_head(&mut self, place: Place, header: &Header, shape: &Shape, key: &Key<'_>) {
        let at = place.byte();
        header.write(&mut self.memory, place);
        self.next_stamp = self.next_stamp.wrapping_add(1);
        self.memory.set_word(at + shape.key_at - 8, self.next_stamp);
        self.memory[at + shape.key_at..at + shape.list_at].copy_from_slice(key.bytes());
    }

    /// Whether the log has evicted the room of a write.
    fn has_lost_room(&self, stage: &Stage) -> bool {
        match (stage, &self.storage) {
            (Stage::Logged { position, .. }, Storage::Log(log)) => {
                log.has_left(*position) && !self.has(Mutant::LostRoom)
            }
            _ => false,
        }
    }

    /// Copies the next slice of a value.
    fn copy_part(&mut self, stage: Stage, shape: &Shape, source: &Source<'_>) -> Stage {
        let (range, next) = match stage {
            Stage::Logged {
                place,
                position,
                done,
            } => {
                let end = source.len.min(done + SLICE);
                let next = Stage::Logged {
                    place,
                    position,
                    done: end,
                };
                (done..end, next)
            }
            Stage::Paged { pages, full } => {
                let end = shape.chunks.min(full + SLICE_PAGES);
                // All pages are full if the last call has only found no slot.
                let in_pages = |pages: usize| (source.len - shape.tail_len).min(pages * CHUNK);
                let range = in_pages(full)..in_pages(end);
                (range, Stage::Paged { pages, full: end })
            }
            Stage::Room(_) => return stage,
        };
        self.copy_range(&next, shape, source, range);
        next
    }

    /// Copies bytes of a value into its room, except for those that stay with the key.
    fn copy_range(
        &mut self,
        stage: &Stage,
        shape: &Shape,
        source: &Source<'_>,
        range: Range<usize>,
    ) {
        let start = range.start;
        self.with_bytes(source, range, |table, bytes| match stage {
            Stage::Logged { place, .. } => {
                let to = place.byte() + shape.tail_at + start;
                table.memory[to..to + bytes.len()].copy_from_slice(bytes);
            }
            Stage::Paged { pages, .. } => table.copy_to_pages(pages, start, bytes),
            Stage::Room(_) => {}
        });
    }

    /// Copies bytes into the pages of a value, from byte `at` of the value on.
    fn copy_to_pages(&mut self, pages: &[u32], mut at: usize, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (page, skipped) = (pages[at / CHUNK], at % CHUNK);
            let (now, later) = bytes.split_at(bytes.len().min(CHUNK - skipped));
            let to = chunk_at(page) + skipped;
            self.memory[to..to + now.len()].copy_from_slice(now);
            at += now.len();
            bytes = later;
        }
    }

    /// Makes a complete value visible, if the write may still happen.
    fn end_parts(
        &mut self,
        key: &Key<'_>,
        source: &Source<'_>,
        header: Header,
        stage: &Stage,
        now: Seconds,
    ) -> Result<Version, WriteError> {
        let (write, found) = (source.write, self.find(key, now));
        let marks = judge(found.as_ref(), write)?;
        if found.is_none() {
            self.make_index_room(key.hash())?;
        }
        let shape = header.shape(self.mode);
        let in_room = source.len - if shape.chunks > 0 { shape.tail_len } else { 0 };
        let again = source.unstamped();
        let again = again.start.min(in_room)..again.end.min(in_room);
        self.copy_range(stage, &shape, source, again);
        let place = match stage {
            Stage::Logged { place, .. } => *place,
            Stage::Paged { pages, .. } => {
                let place = self.take_listed(&shape, &pages[..shape.chunks]);
                let place = place.ok_or(WriteError::NoMemory)?;
                self.write_head(place, &header, &shape, key);
                let to = place.byte() + shape.tail_at;
                self.with_bytes(source, in_room..source.len, |table, tail| {
                    table.memory[to..to + tail.len()].copy_from_slice(tail);
                });
                place
            }
            Stage::Room(_) => unreachable!("a value without room is not whole"),
        };
        let version = match write.version {
            Some(version) => version.0,
            None => self.take_version(),
        };
        let header = Header {
            version,
            marks,
            ..header
        };
        header.write(&mut self.memory, place);
        self.enter(key, found, place, &header);
        self.stats.writes += 1;
        Ok(Version(version))
    }

    /// Takes a slot for a value whose pages are full, and writes the page list.
    fn take_listed(&mut self, shape: &Shape, pages: &[u32]) -> Option<Place> {
        let limit = self.index.bottom();
        let Storage::Classes(classes) = &mut self.storage else {
            return None;
        };
        let place = classes.take(&mut self.memory, shape.size, limit)?;
        let list = place.byte() + shape.list_at;
        for (number, page) in pages.iter().enumerate() {
            let at = list + 4 * number;
            self.memory[at..at + 4].copy_from_slice(&page.to_le_bytes());
        }
        Some(place)
    }
}

fn task_of(key: &Key<'_>, write: &Write<'_>) -> Task {
    Task {
        key: key.hash(),
        verb: write.verb,
        len: write.value.len(),
    }
}

/// The header of a long value, before it has a version.
fn long_header(key: &Key<'_>, source: &Source<'_>, now: Seconds) -> Header {
    let write = source.write;
    let header = source.inherit(Header {
        version: 0,
        expiry: expiry_word(write.expiry),
        last_access: now.0,
        flags: write.flags,
        key_len: u8::try_from(key.bytes().len()).expect("a key has at most 250 bytes"),
        value_len: u32::try_from(source.len).expect("a value has at most 1 MiB"),
        marks: 0,
        is_wide: false,
    });
    header.sized()
}

/// Whether all bytes of a value that go into its room are copied.
fn is_copied(stage: &Stage, shape: &Shape, len: usize) -> bool {
    match stage {
        Stage::Room(_) => false,
        Stage::Logged { done, .. } => *done == len,
        Stage::Paged { full, .. } => *full == shape.chunks,
    }
}

#[cfg(test)]
mod tests;
