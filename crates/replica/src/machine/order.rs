//! The order of the keys of items.
//!
//! Places lie in blocks, each with the keys of one range, and in no order within a block. So a new
//! key waits for the memory of one block, where a tree of all keys would make it wait for one level
//! after another. A block is sorted when it is read, which costs less than the items themselves.
//! Invariants: the place of an item is in the one block that has the range of its key: the first
//! key of that block is not greater than the key of the item, and the first key of the next block
//! is greater. No block but the first is empty. Called by `items`, which passes the places with the
//! keys.

use std::collections::BTreeMap;
use std::ops::Bound;

use dunlin_keys::Key;
use dunlin_msgbuf::prefetch_lines;

use super::items::Item;
use super::places::{PlaceNum, Places, hash_of};

/// The most places in a block. With them, a block is eight cache lines.
const MOST: usize = 63;

/// A block with fewer places is joined to the one before it, if both fill at most a half, or if it
/// is empty.
const FEW: usize = MOST / 4;

#[derive(Clone, Debug)]
#[repr(align(64))]
struct Block {
    count: u32,
    hashes: [u32; MOST],
    places: [PlaceNum; MOST],
}

const LINES: usize = size_of::<Block>() / 64;
const _: () = assert!(LINES == 8, "a block has no unused line");

impl Block {
    const EMPTY: Self = Self {
        count: 0,
        hashes: [0; MOST],
        places: [PlaceNum::NONE; MOST],
    };

    const fn len(&self) -> usize {
        self.count as usize
    }

    fn push(&mut self, hash: u32, place: PlaceNum) {
        (self.hashes[self.len()], self.places[self.len()]) = (hash, place);
        self.count += 1;
    }

    fn pop(&mut self) -> Option<(u32, PlaceNum)> {
        self.count = self.count.checked_sub(1)?;
        Some((self.hashes[self.len()], self.places[self.len()]))
    }

    /// The position of a key.
    fn find(&self, hash: u32, key: &[u8], places: &Places) -> Option<usize> {
        let hashes = &self.hashes[..self.len()];
        // Without an early end, the processor compares eight at a time.
        if !hashes.iter().fold(false, |any, it| any | (*it == hash)) {
            return None;
        }
        let is_it = |at: &usize| hashes[*at] == hash && places.key(self.places[*at])[..] == *key;
        (0..self.len()).find(is_it)
    }

    fn take(&mut self, at: usize) -> PlaceNum {
        let taken = self.places[at];
        if let Some(last) = self.pop()
            && at < self.len()
        {
            (self.hashes[at], self.places[at]) = last;
        }
        taken
    }

    /// The places in the order of their keys.
    fn sorted(&self, places: &Places) -> Vec<PlaceNum> {
        let mut all = self.places[..self.len()].to_vec();
        all.iter().for_each(|place| places.prefetch(*place));
        all.sort_unstable_by(|one, other| places.key(*one).cmp(places.key(*other)));
        all
    }
}

#[derive(Clone, Debug)]
pub(super) struct Order {
    /// Blocks by their first keys; that of the first block is empty.
    blocks: BTreeMap<Key, Box<Block>>,
    count: usize,
}

impl Order {
    pub(super) const fn new() -> Self {
        Self {
            blocks: BTreeMap::new(),
            count: 0,
        }
    }

    /// The number of items.
    pub(super) const fn len(&self) -> usize {
        self.count
    }

    /// The place of a key.
    pub(super) fn find(&self, hash: u32, key: &[u8], places: &Places) -> Option<PlaceNum> {
        let (_, block) = self.blocks.range::<Key, _>(..=Key::from(key)).next_back()?;
        let at = block.find(hash, key, places)?;
        Some(block.places[at])
    }

    /// The block to which a key belongs, with its first key; `None` if there is no block.
    fn block_mut(&mut self, key: &Key) -> Option<(&Key, &mut Box<Block>)> {
        self.blocks.range_mut::<Key, _>(..=key).next_back()
    }

    /// Finds the place of a key, or adds the key with an item and returns `None`.
    pub(super) fn find_or_add(
        &mut self,
        hash: u32,
        key: &[u8],
        places: &mut Places,
        item: impl FnOnce() -> Item,
    ) -> Option<PlaceNum> {
        let owned = Key::from(key);
        let Some((_, block)) = self.block_mut(&owned) else {
            self.add(hash, &owned, places, item());
            return None;
        };
        prefetch_lines(&**block, LINES);
        if let Some(at) = block.find(hash, key, places) {
            return Some(block.places[at]);
        }
        match block.len() < MOST {
            true => {
                block.push(hash, places.add(hash, key, item()));
                self.count += 1;
            }
            false => self.add(hash, &owned, places, item()),
        }
        None
    }

    /// Adds a key where there is no block yet, or a full one.
    #[cold]
    fn add(&mut self, hash: u32, key: &Key, places: &mut Places, item: Item) {
        if self.blocks.is_empty() {
            let first = Key::from(&[][..]);
            self.blocks.insert(first, Box::new(Block::EMPTY));
        }
        let full = self.block_mut(key);
        if let Some((_, full)) = full.filter(|it| it.1.len() == MOST) {
            let (first, upper) = split(full, places);
            self.blocks.insert(first, upper);
        }
        let block = self.block_mut(key);
        let (_, block) = block.expect("the first block has the empty key");
        block.push(hash, places.add(hash, key, item));
        self.count += 1;
    }

    /// Removes a key, and returns its place.
    pub(super) fn remove(&mut self, hash: u32, key: &[u8], places: &Places) -> Option<PlaceNum> {
        let owned = Key::from(key);
        let (first, block) = self.block_mut(&owned)?;
        let place = block.take(block.find(hash, key, places)?);
        let few = (block.len() < FEW).then(|| first.clone());
        self.count -= 1;
        if let Some(first) = few {
            self.join(&first);
        }
        Some(place)
    }

    /// Joins a block to the one before it, if it is empty, or if both fill at most a half of one.
    fn join(&mut self, first: &Key) {
        let len = self.blocks.get(first).map_or(0, |it| it.len());
        let before = self.blocks.range::<Key, _>(..first).next_back();
        if before.is_some_and(|(_, it)| len == 0 || it.len() + len <= MOST / 2)
            && let Some(block) = self.blocks.remove(first)
            && let Some((_, before)) = self.block_mut(first)
        {
            let all = block.hashes.into_iter().zip(block.places);
            all.take(len)
                .for_each(|(hash, place)| before.push(hash, place));
        }
    }

    /// Moves out one of the places, in no particular order, to free them all.
    pub(super) fn pop(&mut self) -> Option<PlaceNum> {
        loop {
            let mut first = self.blocks.first_entry()?;
            if let Some((_, place)) = first.get_mut().pop() {
                self.count -= 1;
                return Some(place);
            }
            first.remove();
        }
    }

    /// The places of keys from a bound on, in the order of the keys.
    pub(super) fn from<'a>(
        &'a self,
        start: Bound<Key>,
        places: &'a Places,
    ) -> impl Iterator<Item = PlaceNum> {
        let blocks = match &start {
            Bound::Included(key) | Bound::Excluded(key) => {
                let first = self.blocks.range::<Key, _>(..=key).next_back();
                first.map_or(Bound::Unbounded, |it| Bound::Included(it.0))
            }
            Bound::Unbounded => Bound::Unbounded,
        };
        let all = self.blocks.range::<Key, _>((blocks, Bound::Unbounded));
        let all = all.flat_map(|(_, block)| block.sorted(places));
        all.skip_while(move |place| {
            let this = places.key(*place);
            match &start {
                Bound::Included(start) => this < start,
                Bound::Excluded(start) => this <= start,
                Bound::Unbounded => false,
            }
        })
    }
}

/// Moves the upper half of a full block into a new one, and returns it with its first key.
fn split(full: &mut Block, places: &Places) -> (Key, Box<Block>) {
    let sorted = full.sorted(places);
    let mut upper = Box::new(Block::EMPTY);
    let (low, high) = sorted.split_at(MOST / 2);
    full.count = 0;
    for (block, part) in [(full, low), (&mut *upper, high)] {
        for place in part {
            block.push(hash_of(places.key(*place)), *place);
        }
    }
    (places.key(high[0]).clone(), upper)
}

#[cfg(test)]
mod tests;
