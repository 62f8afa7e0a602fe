//! Decides where a value is put (in its old place, in the log, or in a slot), and which items leave
//! to make room.

use crate::classes::CHUNK;
use crate::config::{
    BYTES_PER_MOVE, INDEX_SHARE, MOST_MOVED_BYTES, MOST_MOVES, MOST_SPLITS, Mode, SLICE,
};
use crate::index::{GROUP, IndexEntry, MOST_HEAT, Place};
use crate::item::{Header, Seconds, Shape, Version, chunk_at};
use crate::log::Step;
use crate::mutant::Mutant;
use crate::table::body::{Found, Storage, Table, page_of};
use crate::table::departure::Reason;
use crate::table::key::Key;
use crate::table::write::WriteError;

/// While the log has one lap, the index takes at most the log's size divided by this.
const CEDED_SHARE: usize = 16;

/// The reads that a small item of a new key is credited with while most keys come again.
const NEW_CREDIT: u64 = 2;

/// The parts of a read in which the price of a lap is counted.
const FRACTION_BITS: u32 = 10;
const FRACTIONS: u64 = 1 << FRACTION_BITS;

/// 2^64 divided by the golden ratio: its multiples are spread evenly (Knuth, vol. 3, §6.4).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The items that a write may still move ahead.
struct Budget {
    items: usize,
    bytes: usize,
}

impl Table {
    /// Writes an item; `found` is the present item of the key. This sets the header's version and
    /// length, and its width if it must be wide.
    pub(super) fn put(
        &mut self,
        key: &Key<'_>,
        found: Option<Found>,
        header: Header,
        (value, version): (&[u8], Option<Version>),
        now: Seconds,
    ) -> Result<Version, WriteError> {
        let value_len = u32::try_from(value.len()).expect("a value has at most 1 MiB");
        let mut header = Header {
            value_len,
            ..header
        }
        .sized();
        let shape = header.shape(self.mode);
        // Only a write that happens takes one of the table's own versions.
        let mut number = |table: &mut Self| {
            header.version = version.map_or_else(|| table.take_version(), |version| version.0);
            header
        };
        if let Some(found) = found
            && self.fits_in_place(&found.header, &shape)
        {
            let header = number(self);
            self.fill(found.entry.place(), &header, key.bytes(), value);
            self.enter_again(&found, header.expiry != 0);
            self.note_expiry(key, &header);
            self.stats.on_rewritten(&found.header, &header);
            return Ok(Version(header.version));
        }
        let (found, place) = self.take_place(key, found, &shape, now)?;
        let header = number(self);
        self.fill(place, &header, key.bytes(), value);
        self.enter(key, found, place, &header);
        Ok(Version(header.version))
    }

    /// Whether a value of that shape can overwrite an item in place.
    pub(super) fn fits_in_place(&self, old: &Header, shape: &Shape) -> bool {
        let old = old.shape(self.mode);
        match &self.storage {
            Storage::Log(_) => old.size == shape.size,
            Storage::Classes(classes) => {
                old.chunks + shape.chunks == 0 && classes.is_same(old.size, shape.size)
            }
        }
    }

    /// Takes memory for an item of that shape. Returns the item that the key has after that,
    /// because this may have moved or removed it.
    fn take_place(
        &mut self,
        key: &Key<'_>,
        found: Option<Found>,
        shape: &Shape,
        now: Seconds,
    ) -> Result<(Option<Found>, Place), WriteError> {
        if self.mode == Mode::Cache {
            return self.take_log(key, found, shape, now);
        }
        if found.is_none() {
            self.make_index_room(key.hash())?;
        }
        let place = self.take_slot(shape).ok_or(WriteError::NoMemory)?;
        Ok((found, place))
    }

    /// Gives a new item an entry: the old item's, if there is one.
    pub(super) fn enter(
        &mut self,
        key: &Key<'_>,
        found: Option<Found>,
        place: Place,
        header: &Header,
    ) {
        let expires = header.expiry != 0;
        self.note_expiry(key, header);
        match found {
            Some(old) => {
                let entry = old.entry.moved_to(place).expiring(expires);
                self.index.set_entry(&mut self.memory, old.slot, entry);
                self.release(old.entry.place(), &old.header);
                self.stats.on_rewritten(&old.header, header);
            }
            None => {
                let entered = self
                    .index
                    .insert(&mut self.memory, key.hash(), place, expires);
                let slot = entered.expect("there is room in the chain");
                let credit = self.credit(header, key.hash());
                if credit != 0 {
                    let entry = self.index.entry(&self.memory, slot).warmed_by(credit);
                    self.index.set_entry(&mut self.memory, slot, entry);
                }
                self.stats.on_new(header);
            }
        }
    }

    /// Writes an item's bytes. Its list of pages is already written.
    fn fill(&mut self, place: Place, header: &Header, key: &[u8], value: &[u8]) {
        let shape = header.shape(self.mode);
        let at = place.byte();
        if self.has(Mutant::HalfWrite) && shape.chunks == 0 && value.len() > 40 {
            let half = shape.tail_at + value.len() / 2;
            self.memory[at + shape.tail_at..at + half].copy_from_slice(&value[..value.len() / 2]);
            header.write(&mut self.memory, place);
            self.memory[at + shape.key_at..at + shape.list_at].copy_from_slice(key);
            return;
        }
        header.write(&mut self.memory, place);
        if value.len() > SLICE {
            self.next_stamp = self.next_stamp.wrapping_add(1);
            self.memory.set_word(at + shape.key_at - 8, self.next_stamp);
        }
        self.memory[at + shape.key_at..at + shape.list_at].copy_from_slice(key);
        let (cut, tail) = value.split_at(value.len() - shape.tail_len);
        self.memory[at + shape.tail_at..at + shape.tail_at + tail.len()].copy_from_slice(tail);
        for (number, chunk) in cut.chunks(CHUNK).enumerate() {
            let to = chunk_at(page_of(&self.memory, at + shape.list_at, number));
            self.memory[to..to + chunk.len()].copy_from_slice(chunk);
        }
    }

    /// Takes a slot and pages, and writes the page list. If there is not enough memory, takes
    /// nothing.
    fn take_slot(&mut self, shape: &Shape) -> Option<Place> {
        let Storage::Classes(classes) = &mut self.storage else {
            return None;
        };
        let limit = self.index.bottom();
        let place = classes.take(&mut self.memory, shape.size, limit)?;
        let list = place.byte() + shape.list_at;
        for number in 0..shape.chunks {
            let Some(page) = classes.take_page(&mut self.memory, limit) else {
                for taken in 0..number {
                    let page = page_of(&self.memory, list, taken);
                    classes.free_page(&mut self.memory, page);
                }
                // The slot is the last of its class, so no other item moves.
                classes.free(&mut self.memory, place, shape.size);
                return None;
            };
            let at = list + 4 * number;
            self.memory[at..at + 4].copy_from_slice(&page.to_le_bytes());
        }
        Some(place)
    }

    /// Appends to the log, after removing the oldest items.
    fn take_log(
        &mut self,
        key: &Key<'_>,
        found: Option<Found>,
        shape: &Shape,
        now: Seconds,
    ) -> Result<(Option<Found>, Place), WriteError> {
        let Storage::Log(log) = &self.storage else {
            return Err(WriteError::NoMemory);
        };
        if shape.size > log.most_item() {
            return Err(WriteError::TooLong);
        }
        // Make room in the index first, because that may take memory from the log.
        if found.is_none() {
            self.make_index_room(key.hash())?;
        }
        self.make_log_room(shape.size, usize::MAX, now);
        // The key's old item may have moved, or may have left together with its entry.
        let found = self.look_up(key);
        let Storage::Log(log) = &mut self.storage else {
            return Err(WriteError::NoMemory);
        };
        Ok((found, Place::at(log.append(shape.size))))
    }

    /// Removes up to `most` of the oldest items, until `len` bytes fit. Returns whether they do.
    pub(super) fn make_log_room(&mut self, len: usize, most: usize, now: Seconds) -> bool {
        let mut budget = Budget {
            items: MOST_MOVES + len / BYTES_PER_MOVE,
            bytes: MOST_MOVED_BYTES,
        };
        self.cede_end(&mut budget, now);
        let mut left = most;
        while let Storage::Log(log) = &mut self.storage
            && let Step::Leave(at) = log.step(len)
        {
            if left == 0 {
                return false;
            }
            left -= 1;
            self.oldest_leaves(at, &mut budget, now);
        }
        true
    }

    /// Removes the oldest item, or moves it to the head of the log if it was read (MICA:
    /// approximate LRU).
    fn oldest_leaves(&mut self, at: usize, budget: &mut Budget, now: Seconds) {
        let place = Place::at(at);
        let header = Header::read(&self.memory, place);
        let size = header.shape(self.mode).size;
        let hash = self.seed.hash(header.key(&self.memory, place));
        let is_it = |entry: IndexEntry| entry.place() == place;
        let alive = self.index.find(&self.memory, hash, is_it);
        if let Some((slot, entry)) = alive
            && !self.has(Mutant::LateEntry)
        {
            let found = Found {
                slot,
                entry,
                header,
            };
            let reads = self.reads_to_stay(size, hash);
            let stays = entry.heat() >= reads.max(1);
            if stays && budget.allows(size) && self.lasts(&found, hash, now) {
                self.move_ahead(&found, size, reads);
                return;
            }
            self.evict(&found, hash, now);
        }
        self.log_leaves(size);
    }

    /// The number of reads that an item pays for another lap: a fifth of a read for an item of the
    /// mean size, and in proportion for other sizes, so that each read keeps the same number of
    /// bytes for the same number of laps (GreedyDual-Size: Cao and Irani, USITS 1997). A fraction
    /// of a read costs a whole one in that fraction of the laps; the key's hash and the lap's
    /// number decide in which.
    fn reads_to_stay(&self, size: usize, hash: u64) -> u64 {
        let Storage::Log(log) = &self.storage else {
            return 0;
        };
        let mean = (self.memory.len() as u64 / self.stats.items.max(1)).max(1);
        let fractions = size as u64 * (FRACTIONS / 5) / mean;
        let draw = hash.wrapping_add(log.laps().wrapping_mul(GOLDEN)) >> (64 - FRACTION_BITS);
        ((fractions + draw) / FRACTIONS).min(MOST_HEAT)
    }

    /// The reads that a new item of a cache is credited with. One that is larger than the mean gets
    /// none. If the key's item was evicted a short time ago, a client has missed it since, and as a
    /// small item takes little memory, it may stay for many laps until its next read. Other items
    /// may belong to a scan and never be read, so their credit is 0 unless most keys come again.
    fn credit(&mut self, header: &Header, hash: u64) -> u64 {
        if self.mode == Mode::Store {
            return 0;
        }
        let returns = self.departed.takes(hash);
        let mean = self.stats.item_bytes / self.stats.items.max(1);
        let is_small = u64::from(header.key_len) + u64::from(header.value_len) <= mean;
        match (is_small, returns) {
            (true, true) => MOST_HEAT,
            (true, false) if self.departed.most_return() => NEW_CREDIT,
            _ => 0,
        }
    }

    /// Whether an item has neither expired nor been flushed.
    fn lasts(&self, found: &Found, hash: u64, now: Seconds) -> bool {
        let bucket = self.index.bucket(hash);
        !found.header.is_expired(now) && self.index.is_fresh(&self.memory, bucket, self.epoch)
    }

    /// Removes the oldest item, and reports the reason.
    fn evict(&mut self, found: &Found, hash: u64, now: Seconds) {
        let bucket = self.index.bucket(hash);
        if !self.index.is_fresh(&self.memory, bucket, self.epoch) {
            self.empty_bucket(bucket);
            return;
        }
        let reason = match found.header.is_expired(now) {
            true => Reason::Expired,
            false => Reason::Evicted,
        };
        if reason == Reason::Evicted {
            self.departed.on_left(hash);
        }
        self.remove(hash, found, Some(reason));
    }

    fn log_leaves(&mut self, size: usize) {
        if let Storage::Log(log) = &mut self.storage {
            log.leave(size);
        }
    }

    /// Copies the oldest item to the head, and subtracts the reads that it needed for that.
    fn move_ahead(&mut self, found: &Found, size: usize, reads: u64) {
        let Storage::Log(log) = &mut self.storage else {
            return;
        };
        let from = found.entry.place().byte();
        log.leave(size);
        // The item fits: either the head is below the tail, or the older lap is used up.
        let to = log.append(size);
        self.memory.copy_within(from..from + size, to);
        let entry = found.entry.moved_to(Place::at(to)).cooled_by(reads);
        if !self.has(Mutant::LostMoveAhead) {
            self.index.set_entry(&mut self.memory, found.slot, entry);
        }
        self.stats.moved_ahead += 1;
    }

    /// If the index is too small and the tail is near the end of the log, gives that end to the
    /// index. The items there are the oldest, so they leave in order, a few for each write.
    fn cede_end(&mut self, budget: &mut Budget, now: Seconds) {
        for _ in 0..MOST_MOVES {
            let missing = self.missing_index_bytes();
            let Storage::Log(log) = &mut self.storage else {
                return;
            };
            let wanted = missing.min(log.bytes() / CEDED_SHARE);
            match (log.to_end(), log.oldest()) {
                (Some(to_end), Some(oldest)) if to_end <= wanted => {
                    self.oldest_leaves(oldest, budget, now);
                    if let Storage::Log(log) = &mut self.storage
                        && log.oldest().is_none()
                    {
                        log.give_end(wanted);
                    }
                }
                _ => return,
            }
        }
    }

    /// The number of bytes that the index lacks, if it may grow.
    fn missing_index_bytes(&self) -> usize {
        let most = self.memory.len() / INDEX_SHARE;
        let missing = usize::try_from(self.index.deficit()).expect("it is less than memory");
        (missing * GROUP).min(most.saturating_sub(self.index.bytes()))
    }

    /// Makes room in the chain of `hash` for another entry.
    pub(super) fn make_index_room(&mut self, hash: u64) -> Result<(), WriteError> {
        self.grow();
        if self.index.has_room(&self.memory, hash) {
            return Ok(());
        }
        if self.mode == Mode::Store {
            return Err(WriteError::NoMemory);
        }
        self.crowd_out(hash);
        Ok(())
    }

    /// Splits a few buckets, if there are too many entries.
    fn grow(&mut self) {
        let mut splits = 0;
        while splits < MOST_SPLITS && self.index.wants_growth() {
            if self.index.needs_group() && !self.add_group() {
                break;
            }
            let bucket = self.index.next_split();
            if !self.index.is_fresh(&self.memory, bucket, self.epoch) {
                self.empty_bucket(bucket);
            }
            self.index.split(&mut self.memory, self.epoch);
            splits += 1;
        }
        self.stats.splits += splits as u64;
        self.stats.most_splits = self.stats.most_splits.max(splits as u64);
    }

    /// Gives the memory below the index to it, if no item lies there.
    fn add_group(&mut self) -> bool {
        if self.index.bytes() + GROUP > self.memory.len() / INDEX_SHARE {
            return false;
        }
        let bottom = self.index.bottom() - GROUP;
        let is_free = match &mut self.storage {
            Storage::Log(log) => log.lower_limit(bottom),
            Storage::Classes(classes) => classes.top() <= bottom,
        };
        if is_free {
            self.index.add_group(&mut self.memory);
        }
        is_free
    }

    /// Removes the oldest item of a chain that has no room.
    fn crowd_out(&mut self, hash: u64) {
        let Storage::Log(log) = &self.storage else {
            return;
        };
        let bucket = self.index.bucket(hash);
        let entries = (0..).map_while(|at| self.index.entry_of(&self.memory, bucket, at));
        let oldest = entries.min_by_key(|(_, entry)| log.distance(entry.place().byte()));
        let (slot, entry) = oldest.expect("a full chain has entries");
        let header = Header::read(&self.memory, entry.place());
        let found = Found {
            slot,
            entry,
            header,
        };
        self.remove(hash, &found, Some(Reason::Crowded));
    }
}

impl Budget {
    /// If the budget allows a move of `size` bytes, counts it and returns true.
    fn allows(&mut self, size: usize) -> bool {
        let may = self.items > 0 && self.bytes >= size;
        if may {
            self.items -= 1;
            self.bytes -= size;
        }
        may
    }
}
