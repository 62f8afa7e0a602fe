//! Items at places that stay the same while the items live, so that a write of an existing key
//! mostly needs no search in the map of keys.
//!
//! Invariants: a place is in use, or free and without a key, and then it names the next free place.
//! `near` has guesses: for each hash of a key, the place where such a key was found last. Each
//! guess is compared with the key, so keys with the same hash cost a search, and nothing else. Two
//! guesses are a pair, in which both are tried.
//! Places lie in chunks, so that none is ever moved. Called by `items`.

use dunlin_keys::Key;

use super::items::Item;
use super::meaning::{mix, step};

/// Places in a chunk.
const CHUNK: usize = 1 << 10;

/// The fewest and the most guesses. There are at least four for each item, so that few items share
/// one, up to 256 KiB.
const FEWEST: usize = 1 << 6;
const MOST: usize = 1 << 15;
const SHARE: usize = 4;

/// The number of no place.
const NONE: u32 = u32::MAX;

/// The number of a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PlaceNum(u32);

/// A place: a key and its item.
#[derive(Clone, Debug)]
struct Keyed {
    /// Empty if the place is free. Then the version of its item is the number of the next free
    /// place.
    key: Key,
    item: Item,
}

/// The place where a key with some hash was found.
#[derive(Clone, Copy, Debug)]
struct Guess {
    /// The upper half of the hash. If it differs, the place is not looked at, which would mostly
    /// wait for memory.
    hash: u32,
    place: u32,
}

impl Guess {
    const NONE: Self = Self {
        hash: 0,
        place: NONE,
    };
}

#[derive(Clone, Debug)]
pub(super) struct Places {
    chunks: Vec<Vec<Keyed>>,
    free: u32,
    near: Vec<Guess>,
}

impl Places {
    pub(super) const fn new() -> Self {
        Self {
            chunks: Vec::new(),
            free: NONE,
            near: Vec::new(),
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// The item at a place in use.
    #[inline]
    pub(super) fn item(&self, place: PlaceNum) -> &Item {
        &self.at(place.0).expect("the map names it").item
    }

    #[inline]
    pub(super) fn item_mut(&mut self, place: PlaceNum) -> &mut Item {
        &mut self.at_mut(place.0).expect("the map names it").item
    }

    /// The place of a key, if there is a right guess.
    #[inline]
    pub(super) fn guess(&self, key: &[u8]) -> Option<PlaceNum> {
        let hash = hash_of(key);
        let index = self.index_of(hash);
        let first = self.check(index, hash, key);
        first.or_else(|| self.check(index ^ 1, hash, key))
    }

    #[inline]
    fn check(&self, index: usize, hash: u64, key: &[u8]) -> Option<PlaceNum> {
        let guess = self.near.get(index)?;
        if guess.hash != upper(hash) {
            return None;
        }
        let place = self.at(guess.place)?;
        // A free place has the empty key, which no item has.
        (*place.key == *key && !key.is_empty()).then_some(PlaceNum(guess.place))
    }

    /// Notes where a search has found a key. The guess that was there becomes the other one of its
    /// pair.
    pub(super) fn note(&mut self, key: &[u8], place: PlaceNum) {
        let hash = hash_of(key);
        let index = self.index_of(hash);
        if let Ok([guess, other]) = self.near.get_disjoint_mut([index, index ^ 1]) {
            let noted = Guess {
                hash: upper(hash),
                place: place.0,
            };
            *other = std::mem::replace(guess, noted);
        }
    }

    /// Adds a key, which has no place, and its item.
    pub(super) fn add(&mut self, key: &[u8], item: Item) -> PlaceNum {
        let added = Keyed {
            key: Key::from(key),
            item,
        };
        let number = self.free;
        let place = match self.at_mut(number) {
            Some(place) => {
                let next = std::mem::replace(place, added).item.version;
                self.free = u32::try_from(next).expect("it is the number of a place");
                PlaceNum(number)
            }
            None => self.append(added),
        };
        self.note(key, place);
        place
    }

    fn append(&mut self, added: Keyed) -> PlaceNum {
        if self.chunks.last().is_none_or(|it| it.len() == CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        let before = (self.chunks.len() - 1) * CHUNK;
        let chunk = self.chunks.last_mut().expect("it has room");
        chunk.push(added);
        let count = before + chunk.len();
        if count * SHARE > self.near.len() && self.near.len() < MOST {
            // The guesses are lost, which costs a search for each key.
            self.near = vec![Guess::NONE; (self.near.len() * 2).max(FEWEST)];
        }
        let number = u32::try_from(count - 1).ok().filter(|it| *it != NONE);
        PlaceNum(number.expect("there are fewer than 2^32 items"))
    }

    /// Moves the item out, and frees its place.
    pub(super) fn remove(&mut self, place: PlaceNum) -> Item {
        let next = Item {
            version: self.free.into(),
            expires: 0,
            value: Vec::new(),
        };
        self.free = place.0;
        let place = self.at_mut(place.0).expect("the map names it");
        place.key = Key::from(&[][..]);
        std::mem::replace(&mut place.item, next)
    }

    /// Drops a chunk of places, none of which is in use, and returns its size in bytes; `None` if
    /// there is none left.
    pub(super) fn drop_chunk(&mut self) -> Option<usize> {
        (self.free, self.near) = (NONE, Vec::new());
        let chunk = self.chunks.pop()?;
        Some(chunk.len() * size_of::<Keyed>())
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "some bits of a hash")]
    fn index_of(&self, hash: u64) -> usize {
        hash as usize & self.near.len().wrapping_sub(1)
    }

    #[inline]
    fn at(&self, number: u32) -> Option<&Keyed> {
        let number = number as usize;
        self.chunks.get(number / CHUNK)?.get(number % CHUNK)
    }

    #[inline]
    fn at_mut(&mut self, number: u32) -> Option<&mut Keyed> {
        let number = number as usize;
        self.chunks.get_mut(number / CHUNK)?.get_mut(number % CHUNK)
    }
}

/// The hash of a key; quick for keys of 8 to 16 bytes, whose ends have all of them.
#[inline]
fn hash_of(key: &[u8]) -> u64 {
    match (key.first_chunk::<8>(), key.last_chunk::<8>()) {
        (Some(first), Some(last)) if key.len() <= 16 => {
            let ends = [*first, *last].map(u64::from_le_bytes);
            step(key.len() as u64, ends)
        }
        _ => mix(0, key),
    }
}

const fn upper(hash: u64) -> u32 {
    (hash >> 32) as u32
}

#[cfg(test)]
mod tests;
