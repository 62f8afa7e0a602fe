//! A map as it was at one moment, read in slices while the map goes on changing.
//!
//! Invariant: keys up to the cursor have been read. Of a later key that has changed since the
//! moment, `before` has what it had then; every other later key still has it. So the moment costs
//! nothing, a change costs one insertion at most, and a slice costs its budget. Called by `items`
//! and `clients`, which note each change before the next slice is read.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Work that a slice may still do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// Bytes to write. The last part may have more.
    pub(crate) bytes: usize,
    /// Keys to read.
    pub(crate) keys: usize,
}

impl Budget {
    /// The budget of a slice with this number of bytes. A key costs some 100 ns, so the keys of a
    /// slice take some tenths of a millisecond at most.
    pub(crate) const fn slice(bytes: usize) -> Self {
        Self { bytes, keys: 1024 }
    }

    const fn spend(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
        self.keys = self.keys.saturating_sub(1);
    }

    pub(crate) const fn is_spent(&self) -> bool {
        self.bytes == 0 || self.keys == 0
    }
}

/// A map at one moment.
#[derive(Clone, Debug)]
pub(super) struct Frozen<K, V> {
    cursor: Option<K>,
    before: BTreeMap<K, Option<V>>,
}

impl<K: Ord + Clone, V> Frozen<K, V> {
    /// The map as it is now.
    pub(super) const fn new() -> Self {
        Self {
            cursor: None,
            before: BTreeMap::new(),
        }
    }

    /// Whether a change of a key must be noted.
    pub(super) fn needs<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        let is_past = |cursor: &K| {
            let cursor: &Q = cursor.borrow();
            key <= cursor
        };
        let is_read = self.cursor.as_ref().is_some_and(is_past);
        !is_read && !self.before.contains_key(key)
    }

    /// Notes what a key had before a change that must be noted.
    pub(super) fn note(&mut self, key: K, value: Option<V>) {
        self.before.insert(key, value);
    }

    /// Reads on in the order of the keys, until the budget is spent; `put` returns the bytes that
    /// it has written. True: that was all.
    pub(super) fn read(
        &mut self,
        map: &BTreeMap<K, V>,
        budget: &mut Budget,
        mut put: impl FnMut(&K, &V) -> usize,
    ) -> bool {
        let from = self.cursor.take();
        let start = from.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut rest = map.range::<K, _>((start, Bound::Unbounded)).peekable();
        // The last key, of the map or of `before`.
        let (mut last, mut last_changed) = (None, None);
        let is_whole = loop {
            let changed = self.before.first_key_value().map(|it| it.0);
            let next = rest.peek().map(|it| it.0);
            if changed.is_none() && next.is_none() {
                break true;
            }
            if budget.is_spent() {
                break false;
            }
            let is_changed = changed.is_some_and(|key| next.is_none_or(|next| key <= next));
            if is_changed && let Some((key, value)) = self.before.pop_first() {
                rest.next_if(|it| *it.0 == key);
                budget.spend(value.map_or(0, |value| put(&key, &value)));
                last_changed = Some(key);
            } else if let Some((key, value)) = rest.next() {
                budget.spend(put(key, value));
                (last, last_changed) = (Some(key), None);
            }
        };
        self.cursor = last_changed.or_else(|| last.cloned()).or(from);
        is_whole
    }
}

#[cfg(test)]
mod tests;
