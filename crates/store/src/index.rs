//! The index maps keys to items, in buckets of one cache line, and grows by one bucket at a time.
//!
//! The index lies at the end of the region and grows downwards. Its lines come in groups of eight:
//! seven are buckets, and the eighth goes to any bucket that needs a second line. It grows by
//! linear hashing (Litwin, VLDB 1980): one bucket is split at a time, in order, so growth never
//! pauses and never needs a second index. A tag has the bits of the hash that later splits need, so
//! a split reads no item.
//!
//! Invariants: bucket `b` is line `b + b / 7`; the chains are dense (`chain.rs`); each line is in
//! exactly one chain, or is spare, or is zero because its bucket does not exist yet. The index does
//! not know keys: its callers compare them. It never takes memory on its own: the table asks
//! [`Index::needs_group`], and first makes room below [`Index::bottom`].

mod chain;
mod entry;
mod growth;

use crate::memory::Region;

pub(crate) use chain::{Line, SLOTS, Slot};
pub(crate) use entry::{IndexEntry, MOST_HEAT, PLACE_BITS, Place};

use chain::Words;
use entry::TAG_BITS;

/// Buckets of a group, which has one more line for chains.
const GROUP_BUCKETS: u64 = 7;

/// The step by which the index grows, in bytes.
pub(crate) const GROUP: usize = 512;

/// The index grows when its buckets have more entries than this on average. At 5, 10 to 18 % of the
/// buckets overflow, because under linear hashing, buckets that have not been split yet hold more
/// entries. If the spare lines are too few for that, the index grows earlier.
const LOAD: u64 = 5;

/// A chain needs another line, but no spare line is left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Full;

/// Where an entry probably is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Likely {
    /// The entry is in this slot, and its item is at this place.
    Here(Slot, Place),
    /// The entry is in this line of the bucket, if in any.
    Further(Line),
    Nowhere,
}

#[derive(Debug)]
pub(crate) struct Index {
    /// The end of the region.
    end: usize,
    /// Binary logarithm of the number of buckets at the start; the tag begins at this bit of the
    /// hash.
    first_bits: u32,
    /// All buckets below two to this power exist.
    level: u32,
    /// Buckets below this one have been split at this level.
    split: u64,
    groups: u64,
    spare: Option<Line>,
    spares: u64,
    entries: u64,
    /// The entries of a bucket during a split. Its capacity is enough for any chain of random keys.
    moving: Vec<IndexEntry>,
}

impl Index {
    /// Makes an index of `1 << bits` buckets at the end of a region, which must be zero there.
    pub(crate) fn new(memory: &mut Region, bits: u32) -> Self {
        let mut index = Self {
            end: memory.len(),
            first_bits: bits,
            level: bits,
            split: 0,
            groups: 0,
            spare: None,
            spares: 0,
            entries: 0,
            moving: Vec::with_capacity(512),
        };
        while index.groups * GROUP_BUCKETS < 1 << bits {
            index.add_group(memory);
        }
        index
    }

    /// The first byte of the index.
    pub(crate) fn bottom(&self) -> usize {
        self.end - self.bytes()
    }

    pub(crate) fn bytes(&self) -> usize {
        usize::try_from(self.groups).expect("the index is in memory") * GROUP
    }

    pub(crate) fn buckets(&self) -> u64 {
        (1 << self.level) + self.split
    }

    /// The bucket of a key's hash. If a bucket does not exist yet, its keys are in the bucket from
    /// which it will be split off. The computation has no branch, which would be mispredicted for
    /// half of the keys.
    #[inline]
    pub(crate) fn bucket(&self, hash: u64) -> u64 {
        let low = hash & ((2 << self.level) - 1);
        low ^ u64::from(low >= self.buckets()) << self.level
    }

    #[inline]
    fn tag(&self, hash: u64) -> u64 {
        hash >> self.first_bits & ((1 << TAG_BITS) - 1)
    }

    /// The first line of a bucket.
    #[inline]
    fn first(bucket: u64) -> Line {
        let line = bucket + bucket / GROUP_BUCKETS;
        Line(u32::try_from(line).expect("a table has fewer than 2^32 lines"))
    }

    /// The first line of the bucket of `hash`.
    #[inline]
    pub(crate) fn first_line(&self, hash: u64) -> Line {
        Self::first(self.bucket(hash))
    }

    /// Looks for the tag of `hash` in a line of its bucket, and returns the first such entry and
    /// its item's place, or the line that may have it.
    #[inline]
    pub(crate) fn likely(&self, memory: &Region, hash: u64, at: Line) -> Likely {
        let line = self.line(memory, at);
        // The header comes after the slots, so it cannot hide a match in them; a match of the
        // header itself is ignored.
        let matches = matching(line, self.tag(hash));
        let slot = (matches.trailing_zeros() as usize).wrapping_sub(1);
        match line[..SLOTS].get(slot) {
            Some(word) => Likely::Here(Slot::new(at, slot), entry_of(word).place()),
            None => Self::next(line).map_or(Likely::Nowhere, Likely::Further),
        }
    }

    /// True if an entry has the tag of `hash`.
    #[inline]
    pub(crate) fn has_tag(&self, entry: IndexEntry, hash: u64) -> bool {
        entry.has_tag(self.tag(hash))
    }

    /// Finds the entry of an item: the first entry with the tag of `hash` for which `is_it` returns
    /// true.
    #[inline]
    pub(crate) fn find(
        &self,
        memory: &Region,
        hash: u64,
        mut is_it: impl FnMut(IndexEntry) -> bool,
    ) -> Option<(Slot, IndexEntry)> {
        let tag = self.tag(hash);
        let mut at = Self::first(self.bucket(hash));
        loop {
            let line = self.line(memory, at);
            let mut matches = matching(line, tag) & ((2 << SLOTS) - 2);
            while matches != 0 {
                let slot = matches.trailing_zeros() as usize - 1;
                let entry = entry_of(&line[slot]);
                if is_it(entry) {
                    return Some((Slot::new(at, slot), entry));
                }
                matches &= matches - 1;
            }
            at = Self::next(line)?;
        }
    }

    /// True if the chain of `hash` has room for another entry.
    pub(crate) fn has_room(&self, memory: &Region, hash: u64) -> bool {
        self.spare.is_some() || self.last(memory, Self::first(self.bucket(hash))).2 < SLOTS
    }

    /// Adds an entry for an item that has none, and returns its slot.
    pub(crate) fn insert(
        &mut self,
        memory: &mut Region,
        hash: u64,
        place: Place,
        expires: bool,
    ) -> Result<Slot, Full> {
        let entry = IndexEntry::new(place, self.tag(hash), expires);
        let slot = self.push(memory, Self::first(self.bucket(hash)), entry)?;
        self.entries += 1;
        Ok(slot)
    }

    /// Removes an entry that was found for `hash`. Other slots of the chain change.
    pub(crate) fn remove(&mut self, memory: &mut Region, hash: u64, at: Slot) {
        self.remove_from(memory, self.bucket(hash), at);
    }

    /// Like [`Index::remove`], for an entry of this bucket.
    pub(crate) fn remove_from(&mut self, memory: &mut Region, bucket: u64, at: Slot) {
        self.pull(memory, Self::first(bucket), at);
        self.entries -= 1;
    }

    /// The entry number `place` of a bucket, counted along its chain.
    pub(crate) fn entry_of(
        &self,
        memory: &Region,
        bucket: u64,
        place: usize,
    ) -> Option<(Slot, IndexEntry)> {
        let mut at = Self::first(bucket);
        for _ in 0..place / SLOTS {
            at = Self::next(self.line(memory, at))?;
        }
        let slot = Slot::new(at, place % SLOTS);
        let entry = self.entry(memory, slot);
        (!entry.is_empty()).then_some((slot, entry))
    }

    /// Whether the bucket has seen `epoch` flushes.
    #[inline]
    pub(crate) fn is_fresh(&self, memory: &Region, bucket: u64, epoch: u32) -> bool {
        self.epoch(memory, Self::first(bucket)) == epoch
    }

    /// Records that the bucket, which is empty, has seen `epoch` flushes.
    pub(crate) fn refresh(&self, memory: &mut Region, bucket: u64, epoch: u32) {
        self.set_epoch(memory, Self::first(bucket), epoch);
    }
}

/// The words of a line that have the tag, as bits; the second bit stands for the first word. All
/// words are compared, because a jump that depended on the position of the match would usually be
/// mispredicted. The last word is the header, which is no slot, but comparing eight words takes
/// half the instructions of comparing seven. If the first bit stood for the first word, that word
/// would need no shift, and the compiler would not compare four words at a time.
#[inline]
fn matching(line: &Words, tag: u64) -> u64 {
    let mut matches = 0;
    for (slot, word) in line.iter().enumerate() {
        matches |= u64::from(entry_of(word).has_tag(tag)) << (slot + 1);
    }
    matches
}

/// The entry in a word of a line.
#[inline]
fn entry_of(word: &[u8; 8]) -> IndexEntry {
    IndexEntry::from_word(u64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests;
