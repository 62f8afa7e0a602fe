//! The items by their keys, and by the times at which they expire.
//!
//! Invariants: `due` has exactly the items that expire, each at its time; `bytes` is the size of
//! all items in an image. Called by `machine`.

use std::collections::BTreeSet;
use std::ops::Bound;

use dunlin_keys::Key;

use super::frozen::{Budget, Frozen, Written};
use super::order::Order;
use super::places::{Places, hash_of};
use crate::wire::cursor::{Cursor, put_count, put_counted, put_words};
use crate::wire::{MAX_KEY, MAX_VALUE, Malformed};

/// Bytes of an item in an image, in addition to its key and value.
const HEAD: usize = 24;

/// The most bytes of an item in an image.
pub(super) const MOST: usize = HEAD + MAX_KEY + MAX_VALUE;

/// The most keys that are looked at ahead: a processor has only few loads under way at a time.
pub(crate) const AHEAD: usize = 32;

/// Fewer items than this, of 200 bytes each with their key, fit into a cache of a core.
const FEW: usize = 1 << 12;

/// An item.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Item {
    pub(super) version: u64,
    /// The log's time in milliseconds at which the item expires; 0: never.
    pub(super) expires: u64,
    pub(super) value: Vec<u8>,
}

/// The length of an item's value and its time, before a change.
#[derive(Clone, Copy, Debug)]
struct Before {
    bytes: usize,
    expires: u64,
}

impl Item {
    fn size(&self, key: &[u8]) -> usize {
        HEAD + key.len() + self.value.len()
    }

    fn before(&self, key: &[u8]) -> Before {
        Before {
            bytes: self.size(key),
            expires: self.expires,
        }
    }

    /// Overwrites an item. A value of the same length is written in place, so most writes allocate
    /// no memory.
    fn replace(&mut self, version: u64, expires: u64, value: &[u8]) {
        (self.version, self.expires) = (version, expires);
        match self.value.len() == value.len() {
            true => self.value.copy_from_slice(value),
            false => self.value = value.to_vec(),
        }
    }

    /// Appends an item to an image, and returns its size.
    pub(super) fn put(&self, key: &[u8], image: &mut Vec<u8>) -> usize {
        self.put_head(key, image);
        image.extend_from_slice(&self.value);
        self.size(key)
    }

    /// Appends the fields before the value.
    fn put_head(&self, key: &[u8], image: &mut Vec<u8>) {
        put_words(image, &[self.version, self.expires]);
        put_counted(image, key);
        put_count(image, self.value.len());
    }
}

impl Item {
    /// Appends a part of an item to an image: at most `most` bytes of its value from position
    /// `from` on, but at least one. The first part includes the item's other fields.
    fn put_part(&self, key: &[u8], from: usize, most: usize, image: &mut Vec<u8>) -> Written {
        if from == 0 && self.value.len() <= most {
            return Written::Rest(self.put(key, image));
        }
        if from == 0 {
            self.put_head(key, image);
        }
        let rest = &self.value[from..];
        let part = &rest[..rest.len().min(most.max(1))];
        image.extend_from_slice(part);
        match part.len() == rest.len() {
            true => Written::Rest(part.len()),
            false => Written::Part(part.len()),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Items {
    order: Order,
    places: Places,
    due: BTreeSet<(u64, Vec<u8>)>,
    bytes: usize,
    /// The items of the image under way.
    frozen: Frozen<Key, Item>,
}

impl PartialEq for Items {
    /// An image under way is not part of the state.
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due && self.iter().eq(other.iter())
    }
}

impl Eq for Items {}

impl Items {
    pub(super) const fn new() -> Self {
        Self {
            order: Order::new(),
            places: Places::new(),
            due: BTreeSet::new(),
            bytes: 0,
            frozen: Frozen::none(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// Bytes of all items in an image.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Begins an image of the items as they are now.
    pub(super) fn freeze(&mut self) {
        self.frozen.begin();
    }

    /// Abandons the image.
    pub(super) fn thaw(&mut self) {
        self.frozen.give_up();
    }

    /// Appends the next items to the image. True: the image now has all of them.
    pub(super) fn read(&mut self, budget: &mut Budget, image: &mut Vec<u8>) -> bool {
        let put = |key: &Key, item: &Item, from, most| item.put_part(key, from, most, image);
        let (order, places) = (&self.order, &self.places);
        let rest = |after: Option<&Key>| {
            let start = after.map_or(Bound::Unbounded, |it| Bound::Excluded(it.clone()));
            let all = order.from(start, places);
            all.map(|place| (places.key(place), places.item(place)))
        };
        self.frozen.read(rest, budget, put)
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<&Item> {
        let hash = hash_of(key);
        let guess = self.places.guess(hash, key);
        let place = guess.or_else(|| self.order.find(hash, key, &self.places))?;
        Some(self.places.item(place))
    }

    /// Starts to load what writes of these keys need, all at once: first the guesses, then the
    /// items, then their values. Few items are in the caches anyway.
    pub(super) fn look_ahead<'a>(&self, keys: impl Iterator<Item = &'a [u8]>) {
        if self.order.len() < FEW {
            return;
        }
        let mut hashes = [0; AHEAD];
        let mut count = 0;
        for (hash, key) in hashes.iter_mut().zip(keys) {
            *hash = hash_of(key);
            self.places.prefetch_guesses(*hash);
            count += 1;
        }
        let hashes = &hashes[..count];
        for hash in hashes {
            self.places.prefetch_places(*hash);
        }
        for hash in hashes {
            self.places.prefetch_values(*hash);
        }
    }

    /// The version of a key's item; 0 if it has none.
    pub(super) fn version(&self, key: &[u8]) -> u64 {
        self.get(key).map_or(0, |item| item.version)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &Item)> {
        self.range(b"", b"")
    }

    /// The items whose keys begin with a prefix and come after a key.
    pub(super) fn range<'a>(
        &'a self,
        prefix: &'a [u8],
        after: &'a [u8],
    ) -> impl Iterator<Item = (&'a [u8], &'a Item)> {
        let start = match after < prefix {
            true => Bound::Included(Key::from(prefix)),
            false => Bound::Excluded(Key::from(after)),
        };
        // All items, if the prefix is empty and there is no key to begin after.
        let start = match after.is_empty() && prefix.is_empty() {
            true => Bound::Unbounded,
            false => start,
        };
        let places = &self.places;
        let rest = self.order.from(start, places);
        let rest = rest.map(|place| (&**places.key(place), places.item(place)));
        rest.take_while(move |(key, _)| key.starts_with(prefix))
    }

    /// Reads the next item of an image.
    pub(super) fn take(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Malformed> {
        let (version, expires) = (cursor.u64()?, cursor.u64()?);
        let key = cursor.counted()?;
        let value = cursor.counted()?;
        if !(1..=MAX_KEY).contains(&key.len()) || value.len() > MAX_VALUE {
            return Err(Malformed);
        }
        self.put(key, version, expires, value);
        Ok(())
    }

    /// Drops some of the items, and returns whether any are left.
    pub(super) fn shed(&mut self, budget: &mut Budget) -> bool {
        while !budget.is_spent()
            && let Some(place) = self.order.pop()
        {
            budget.spend(self.places.remove(place).value.len());
        }
        while !budget.is_spent()
            && let Some(bytes) = self.places.drop_chunk()
        {
            budget.spend(bytes);
        }
        while !budget.is_spent() && self.due.pop_first().is_some() {
            budget.spend(0);
        }
        let has_more = self.frozen.shed(budget);
        has_more || !(self.places.is_empty() && self.due.is_empty())
    }

    /// Writes an item. `expires` is the log's time at which it expires, or 0.
    pub(super) fn put(&mut self, key: &[u8], version: u64, expires: u64, value: &[u8]) {
        if expires != 0 {
            self.due.insert((expires, key.to_vec()));
        }
        self.bytes += HEAD + key.len() + value.len();
        let item = || Item {
            version,
            expires,
            value: value.to_vec(),
        };
        let hash = hash_of(key);
        let place = match self.places.guess(hash, key) {
            Some(place) => place,
            None => match self.order.find_or_add(hash, key, &mut self.places, item) {
                Some(place) => {
                    self.places.note(hash, place);
                    place
                }
                None => return self.on_replaced(key, None, expires),
            },
        };
        let place = self.places.item_mut(place);
        match self.frozen.is_under_way() {
            // No image needs the old item, so it can be overwritten.
            false => {
                let before = place.before(key);
                place.replace(version, expires, value);
                self.account(key, before, expires);
            }
            true => {
                let before = std::mem::replace(place, item());
                self.on_replaced(key, Some(before), expires);
            }
        }
    }

    /// Accounts for the item that a key had before, and saves it for the image under way. `expires`
    /// is the time at which the key is due now, or the time with which the caller has just removed
    /// the key from `due`; 0: neither.
    fn on_replaced(&mut self, key: &[u8], before: Option<Item>, expires: u64) {
        if let Some(before) = &before {
            self.account(key, before.before(key), expires);
        }
        self.frozen.note(key, || (Key::from(key), before));
    }

    fn account(&mut self, key: &[u8], before: Before, expires: u64) {
        self.bytes -= before.bytes;
        if before.expires != 0 && before.expires != expires {
            self.due.remove(&(before.expires, key.to_vec()));
        }
    }

    /// Removes the item of a key. False: there is none.
    pub(super) fn remove(&mut self, key: &[u8]) -> bool {
        let before = self.take_out(key);
        let had_one = before.is_some();
        self.on_replaced(key, before, 0);
        had_one
    }

    /// Moves the item of a key out.
    fn take_out(&mut self, key: &[u8]) -> Option<Item> {
        let place = self.order.remove(hash_of(key), key, &self.places)?;
        Some(self.places.remove(place))
    }

    /// The time at which the next item expires, if any will.
    pub(super) fn next_expiry(&self) -> Option<u64> {
        self.due.first().map(|(time, _)| *time)
    }

    /// Removes an item that has expired, and returns its key.
    pub(super) fn expire(&mut self, time: u64) -> Option<Vec<u8>> {
        let (due, _) = self.due.first()?;
        if *due > time {
            return None;
        }
        let (expires, key) = self.due.pop_first()?;
        let before = self.take_out(&key);
        self.on_replaced(&key, before, expires);
        Some(key)
    }
}
