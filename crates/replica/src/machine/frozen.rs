//! A map as it was at one moment, read in slices while the map keeps changing.
//!
//! Invariant: keys up to the cursor have been read. If a later key has changed since the moment,
//! `before` has its value as of the moment; every other later key still has that value. So the
//! moment costs nothing, a change costs at most one insertion, and a slice costs its budget. The
//! moment ends when all keys have been read. A value that is longer than a slice is read in parts.
//! Until the last part, its key counts as a later one, so `before` keeps the value if it changes.
//! Called by `items` and `clients`, which note each change before the next slice is read.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Work that a slice may still do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// Bytes to write. The key and the lengths that precede a value may be written beyond that.
    pub(crate) bytes: usize,
    /// Keys to read.
    pub(crate) keys: usize,
}

impl Budget {
    /// The unlimited budget, for work that delays nothing.
    pub(crate) const UNLIMITED: Self = Self {
        bytes: usize::MAX,
        keys: usize::MAX,
    };

    /// The budget of a slice with this number of bytes. With a million items, a key costs 1 µs,
    /// because its item and its value lie apart, so the keys of a slice take half a millisecond.
    pub(crate) const fn slice(bytes: usize) -> Self {
        Self { bytes, keys: 512 }
    }

    pub(super) const fn spend(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
        self.keys = self.keys.saturating_sub(1);
    }

    pub(crate) const fn is_spent(&self) -> bool {
        self.bytes == 0 || self.keys == 0
    }
}

/// A map at one moment, if one is being read.
#[derive(Clone, Debug)]
pub(super) struct Frozen<K, V> {
    moment: Option<Moment<K, V>>,
}

/// How many bytes of a value were written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Written {
    /// The rest of the value, with this number of bytes.
    Rest(usize),
    /// This number of bytes, and more are left.
    Part(usize),
}

#[derive(Clone, Debug)]
struct Moment<K, V> {
    cursor: Option<K>,
    /// Bytes of the next key's value that have already been read.
    begun: usize,
    before: BTreeMap<K, Option<V>>,
}

impl<K: Ord + Clone, V> Frozen<K, V> {
    /// No moment is being read.
    pub(super) const fn none() -> Self {
        Self { moment: None }
    }

    /// Begins to read the map as it is now, in place of any earlier moment.
    pub(super) fn begin(&mut self) {
        self.moment = Some(Moment {
            cursor: None,
            begun: 0,
            before: BTreeMap::new(),
        });
    }

    /// Abandons the moment.
    pub(super) fn give_up(&mut self) {
        self.moment = None;
    }

    /// Drops some of the values that were noted, and returns whether any are left.
    pub(super) fn shed(&mut self, budget: &mut Budget) -> bool {
        let Some(moment) = &mut self.moment else {
            return false;
        };
        while !budget.is_spent() && moment.before.pop_first().is_some() {
            budget.spend(0);
        }
        !moment.before.is_empty()
    }

    /// Whether a moment is being read.
    pub(super) const fn is_under_way(&self) -> bool {
        self.moment.is_some()
    }

    /// Notes the value of a key before it changes, if a later slice needs it.
    #[inline]
    pub(super) fn note<Q>(&mut self, key: &Q, value: impl FnOnce() -> (K, Option<V>))
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        if let Some(moment) = self.moment.as_mut().filter(|it| it.needs(key)) {
            let (key, value) = value();
            moment.before.insert(key, value);
        }
    }

    /// Reads on in key order, until the budget is spent. `rest` gives the keys of the map after a
    /// key, in order, and their values. `put` gets the number of bytes of the value that were
    /// already written, and the most that it may write now. True: everything was read, or no moment
    /// is being read.
    pub(super) fn read<'v, Rest: Iterator<Item = (&'v K, &'v V)>>(
        &mut self,
        rest: impl FnOnce(Option<&K>) -> Rest,
        budget: &mut Budget,
        put: impl FnMut(&K, &V, usize, usize) -> Written,
    ) -> bool
    where
        K: 'v,
        V: 'v,
    {
        let moment = self.moment.as_mut();
        let is_whole = moment.is_none_or(|it| it.read(rest, budget, put));
        if is_whole {
            self.moment = None;
        }
        is_whole
    }
}

impl<K: Ord + Clone, V> Moment<K, V> {
    /// Whether a later slice needs the value that a key has now.
    fn needs<Q>(&self, key: &Q) -> bool
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

    fn read<'v, Rest: Iterator<Item = (&'v K, &'v V)>>(
        &mut self,
        rest: impl FnOnce(Option<&K>) -> Rest,
        budget: &mut Budget,
        mut put: impl FnMut(&K, &V, usize, usize) -> Written,
    ) -> bool
    where
        K: 'v,
        V: 'v,
    {
        let from = self.cursor.take();
        let mut rest = rest(from.as_ref()).peekable();
        // The last key, of the map and of `before`.
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
            let found = match is_changed {
                true => self
                    .before
                    .first_key_value()
                    .map(|it| (it.0, it.1.as_ref())),
                false => rest.peek().map(|it| (it.0, Some(it.1))),
            };
            let bytes = match found {
                Some((key, Some(value))) => match put(key, value, self.begun, budget.bytes) {
                    Written::Rest(bytes) => {
                        self.begun = 0;
                        bytes
                    }
                    Written::Part(bytes) => {
                        self.begun += bytes;
                        budget.spend(bytes);
                        break false;
                    }
                },
                // A key that did not exist at that moment. It may have been inserted just below a
                // key whose value has been written in part, so `begun` stays.
                _ => 0,
            };
            budget.spend(bytes);
            if is_changed && let Some((key, _)) = self.before.pop_first() {
                rest.next_if(|it| *it.0 == key);
                last_changed = Some(key);
            } else if let Some((key, _)) = rest.next() {
                (last, last_changed) = (Some(key), None);
            }
        };
        self.cursor = last_changed.or_else(|| last.cloned()).or(from);
        is_whole
    }
}

/// The keys of a map after a key, and their values.
pub(super) fn rest_of<'m, K: Ord, V>(
    map: &'m BTreeMap<K, V>,
    after: Option<&K>,
) -> impl Iterator<Item = (&'m K, &'m V)> + use<'m, K, V> {
    let start = after.map_or(Bound::Unbounded, Bound::Excluded);
    map.range::<K, _>((start, Bound::Unbounded))
}

#[cfg(test)]
mod tests;
