//! The items by their keys, and by the times at which they go.
//!
//! Invariant: an item is due at its time if it has one, and nothing else is due. Called by
//! `machine`.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::key::Key;

/// An item.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Item {
    pub(super) version: u64,
    /// The log's time in milliseconds at which it goes; 0: it stays.
    pub(super) expires: u64,
    pub(super) value: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Items {
    all: BTreeMap<Key, Item>,
    due: BTreeSet<(u64, Vec<u8>)>,
}

impl Items {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<&Item> {
        self.all.get(key)
    }

    /// The version of a key's item; 0: it has none.
    pub(super) fn version(&self, key: &[u8]) -> u64 {
        self.get(key).map_or(0, |item| item.version)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &Item)> {
        self.all.iter().map(|(key, item)| (&**key, item))
    }

    /// The items whose keys begin with a prefix, after a key.
    pub(super) fn range<'a>(
        &'a self,
        prefix: &'a [u8],
        after: &'a [u8],
    ) -> impl Iterator<Item = (&'a [u8], &'a Item)> {
        let start = match after < prefix {
            true => Bound::Included(prefix),
            false => Bound::Excluded(after),
        };
        // An empty prefix and no key to begin after: all items.
        let start = match after.is_empty() && prefix.is_empty() {
            true => Bound::Unbounded,
            false => start,
        };
        let rest = self.all.range::<[u8], _>((start, Bound::Unbounded));
        let rest = rest.map(|(key, item)| (&**key, item));
        rest.take_while(move |(key, _)| key.starts_with(prefix))
    }

    pub(super) fn put(&mut self, key: &[u8], item: Item) {
        if item.expires != 0 {
            self.due.insert((item.expires, key.to_vec()));
        }
        match self.all.entry(Key::from(key)) {
            Entry::Vacant(place) => {
                place.insert(item);
            }
            Entry::Occupied(mut place) => {
                let (before, now) = (place.get().expires, item.expires);
                place.insert(item);
                if before != 0 && before != now {
                    self.due.remove(&(before, key.to_vec()));
                }
            }
        }
    }

    /// Removes the item of a key. False: it has none.
    pub(super) fn remove(&mut self, key: &[u8]) -> bool {
        self.forget(key);
        self.all.remove(key).is_some()
    }

    /// The time at which the next item goes, if one does.
    pub(super) fn next_expiry(&self) -> Option<u64> {
        self.due.first().map(|(time, _)| *time)
    }

    /// Removes an item whose time is over, and returns its key.
    pub(super) fn expire(&mut self, time: u64) -> Option<Vec<u8>> {
        let (due, _) = self.due.first()?;
        if *due > time {
            return None;
        }
        let (_, key) = self.due.pop_first()?;
        self.all.remove(&key[..]);
        Some(key)
    }

    fn forget(&mut self, key: &[u8]) {
        if let Some(item) = self.all.get(key).filter(|item| item.expires != 0) {
            self.due.remove(&(item.expires, key.to_vec()));
        }
    }
}
