//! Items at places that stay the same while the items live, so that a write of an existing key
//! mostly needs no search in the order of keys.
//!
//! Invariants: a place is in use, or free and without a key, and then it names the next free place.
//! `guesses` has a guess for nearly every item, by a hash of its key. Each guess is compared with
//! the key, so keys with the same hash cost a search, and nothing else. Places lie in chunks, so
//! that none is ever moved. Called by `items`.

mod guesses;

use dunlin_msgbuf::{prefetch_line, prefetch_read};

use dunlin_keys::Key;

use super::items::Item;
use super::meaning::{mix, step};
use guesses::Guesses;

/// Places in a chunk.
const CHUNK: usize = 1 << 10;

/// The number of no place.
const NONE: u32 = u32::MAX;

/// The number of a place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct PlaceNum(u32);

impl PlaceNum {
    /// No place.
    pub(super) const NONE: Self = Self(NONE);
}

/// A place: a key and its item, which share a cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Keyed {
    /// Empty if the place is free. Then the version of its item is the number of the next free
    /// place.
    key: Key,
    item: Item,
}

const _: () = assert!(size_of::<Keyed>() == 64, "a place is a cache line");

#[derive(Clone, Debug)]
pub(super) struct Places {
    chunks: Vec<Vec<Keyed>>,
    free: u32,
    guesses: Guesses,
}

impl Places {
    pub(super) const fn new() -> Self {
        Self {
            chunks: Vec::new(),
            free: NONE,
            guesses: Guesses::new(),
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// The item at a place in use.
    #[inline]
    pub(super) fn item(&self, place: PlaceNum) -> &Item {
        &self.at(place.0).expect("the order names it").item
    }

    /// The key of a place in use.
    #[inline]
    pub(super) fn key(&self, place: PlaceNum) -> &Key {
        &self.at(place.0).expect("the order names it").key
    }

    #[inline]
    pub(super) fn item_mut(&mut self, place: PlaceNum) -> &mut Item {
        &mut self.at_mut(place.0).expect("the order names it").item
    }

    /// The place of a key with this hash, if there is a right guess.
    #[inline]
    pub(super) fn guess(&self, hash: u32, key: &[u8]) -> Option<PlaceNum> {
        // A place that is free has no guess.
        let is_right = |place: u32| self.at(place).is_some_and(|it| *it.key == *key);
        self.guesses.find(hash, is_right).map(PlaceNum)
    }

    /// Notes where a search has found a key for which there was no right guess.
    pub(super) fn note(&mut self, hash: u32, place: PlaceNum) {
        self.guesses.note(hash, place.0);
    }

    /// Starts to load the guesses for a hash.
    #[inline]
    pub(super) fn prefetch_guesses(&self, hash: u32) {
        self.guesses.prefetch(hash);
    }

    /// Starts to load the places that may have a key with this hash.
    #[inline]
    pub(super) fn prefetch_places(&self, hash: u32) {
        for place in self.guesses.of(hash) {
            self.at(place).into_iter().for_each(prefetch_read);
        }
    }

    /// Starts to load a place.
    #[inline]
    pub(super) fn prefetch(&self, place: PlaceNum) {
        self.at(place.0).into_iter().for_each(prefetch_read);
    }

    /// Starts to load the values at these places, up to two lines of each.
    #[inline]
    pub(super) fn prefetch_values(&self, hash: u32) {
        for place in self.guesses.of(hash) {
            if let Some(place) = self.at(place) {
                prefetch_line(&place.item.value[..], 0);
                prefetch_line(&place.item.value[..], 1);
            }
        }
    }

    /// Adds a key with this hash, which has no place, and its item.
    pub(super) fn add(&mut self, hash: u32, key: &[u8], item: Item) -> PlaceNum {
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
        self.note(hash, place);
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
        self.guesses.grow(count);
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
        let number = place.0;
        let place = self.at_mut(number).expect("the order names it");
        let hash = hash_of(&std::mem::replace(&mut place.key, Key::from(&[][..])));
        let item = std::mem::replace(&mut place.item, next);
        self.guesses.forget(hash, number);
        item
    }

    /// Drops a chunk of guesses or of places, none of which is in use, and returns its size in
    /// bytes; `None` if there is none left.
    pub(super) fn drop_chunk(&mut self) -> Option<usize> {
        self.free = NONE;
        if let Some(bytes) = self.guesses.drop_chunk() {
            return Some(bytes);
        }
        let chunk = self.chunks.pop()?;
        Some(chunk.len() * size_of::<Keyed>())
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

/// The hash of a key. It is quick for keys of 8 to 16 bytes, because the first eight bytes and the
/// last eight contain the whole key.
#[inline]
pub(super) fn hash_of(key: &[u8]) -> u32 {
    let hash = match (key.first_chunk::<8>(), key.last_chunk::<8>()) {
        (Some(first), Some(last)) if key.len() <= 16 => {
            let ends = [*first, *last].map(u64::from_le_bytes);
            step(key.len() as u64, ends)
        }
        _ => mix(0, key),
    };
    (hash >> 32) as u32
}

#[cfg(test)]
mod tests;
