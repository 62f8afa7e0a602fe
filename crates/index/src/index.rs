//! The operations on the items. Threads share them: a get takes no lock, except that of a long
//! value. A write waits for another one where a node is split, and if both write the same key or
//! keys that share a lock; puts of long keys also take turns at the bytes of keys of about that
//! length (`long.rs`).
//!
//! The items are in trees of `scc::TreeIndex` (`trees.rs`). `masstree` 0.9.5, the crate with the
//! algorithm of eRPC §7.2, failed the tests of this crate: if the bound of a scan and an item
//! before it differ in an earlier word than the last, the scan misses the item; and scans show some
//! items twice while another thread writes.
//!
//! Invariants: the gets and writes of one key are linearizable. A scan shows each key once, in key
//! order. It shows every key that exists during the whole scan. It may or may not show a key that
//! is inserted or deleted meanwhile, and shows no other keys. A scan or sum lets the trees free
//! memory after each [`CHUNK`] items, so the memory of deleted items is freed even during a long
//! scan.
//!
//! The trees have the short values, and handles of the long ones (`values.rs`). A long value is
//! freed after its item was removed from its tree. So a reader that finds a handle without a value
//! reads the tree again. Puts of one key wait for each other, so that each knows the value that it
//! replaces. A delete finds its value while it removes the item.
//!
//! Called by `service.rs` and by programs that have the index in their own process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dunlin_keys::Key;
use scc::Guard;

use crate::range::{Direction, Range};
use crate::trees::Trees;
use crate::value::{Value, number};
use crate::values::{Handle, Values};

/// The number of items that a scan reads before it lets the trees free the memory of deleted items.
const CHUNK: usize = 1024;

/// Number of locks for puts. Each lock covers a part of the keys.
const LOCKS: usize = 256;

/// The items of a server. A clone is another handle of the same items.
///
/// ```
/// use dunlin_index::{Index, Range};
///
/// let index = Index::new();
/// index.put(b"b", b"2");
/// index.put(b"a", b"1");
/// assert_eq!(index.get(b"a", <[u8]>::to_vec), Some(b"1".to_vec()));
/// assert_eq!(index.total(Range::new(b"a", b"z"), u64::MAX).items, 2);
/// assert!(index.delete(b"a"));
/// ```
#[derive(Clone, Default)]
pub struct Index {
    shared: Arc<Shared>,
}

struct Shared {
    trees: Trees,
    values: Values,
    writers: [Mutex<()>; LOCKS],
    #[cfg(feature = "mutants")]
    mutant: Option<Mutant>,
    /// For a planted bug: the first value that was read for each key.
    #[cfg(feature = "mutants")]
    old: Mutex<std::collections::HashMap<Vec<u8>, Vec<u8>>>,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            trees: Trees::default(),
            values: Values::default(),
            writers: [const { Mutex::new(()) }; LOCKS],
            #[cfg(feature = "mutants")]
            mutant: None,
            #[cfg(feature = "mutants")]
            old: Mutex::default(),
        }
    }
}

/// A planted bug of the index.
#[cfg(feature = "mutants")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// A get returns the first value that it ever found for the key.
    OldRead,
    /// A scan that continues shows its last key again.
    Again,
}

/// The total of a range's items.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Total {
    /// Their number.
    pub items: u64,
    /// The sum of their numbers, modulo 2^64. The number of an item is the first eight bytes of its
    /// value, little endian; missing bytes are zeros.
    pub sum: u64,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index").finish_non_exhaustive()
    }
}

impl Index {
    /// Makes an empty index.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes an index with a planted bug.
    #[cfg(feature = "mutants")]
    #[must_use]
    pub fn with_mutant(mutant: Mutant) -> Self {
        Self {
            shared: Arc::new(Shared {
                mutant: Some(mutant),
                ..Shared::default()
            }),
        }
    }

    /// Passes the value of a key to `read`, if there is an item, and returns the result. `read`
    /// must not write this index: a long value stays locked until it returns.
    #[inline]
    pub fn get<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.get_under(&Guard::new(), key, read)
    }

    /// Like [`Self::get`]. Gets that follow each other share a guard, which costs as much as two
    /// lines of memory. Until it is dropped, no memory of deleted items is freed.
    #[inline]
    pub(crate) fn get_under<R>(
        &self,
        guard: &Guard,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> R,
    ) -> Option<R> {
        #[cfg(feature = "mutants")]
        if self.shared.mutant == Some(Mutant::OldRead) {
            return self.get_old(key).map(|value| read(&value));
        }
        let mut read = Some(read);
        loop {
            let value = self.shared.trees.find(key, guard)?;
            if let Some(result) = self.show(value, &mut read) {
                return Some(result);
            }
        }
    }

    /// Passes a value of the tree to `read`; `None` if it is a long value that was freed.
    #[inline]
    fn show<R>(&self, value: &Value, read: &mut Option<impl FnOnce(&[u8]) -> R>) -> Option<R> {
        let mut show = |bytes: &[u8]| {
            let read = read.take().expect("a value is shown once");
            read(bytes)
        };
        match value {
            Value::Short(len, bytes) => Some(show(&bytes[..usize::from(*len)])),
            Value::Long(handle) => self.shared.values.read(*handle, show),
        }
    }

    #[cfg(feature = "mutants")]
    fn get_old(&self, key: &[u8]) -> Option<Vec<u8>> {
        let guard = Guard::new();
        let mut read = Some(<[u8]>::to_vec);
        let value = self.show(self.shared.trees.find(key, &guard)?, &mut read)?;
        let mut old = self.shared.old.lock().ok()?;
        Some(old.entry(key.to_vec()).or_insert(value).clone())
    }

    /// Writes an item.
    pub fn put(&self, key: &[u8], value: &[u8]) {
        let Shared { trees, values, .. } = &*self.shared;
        let value = Value::short(value).unwrap_or_else(|| Value::Long(values.keep(value)));
        let _writing = self.lock(key);
        let old = self.handle_of(key);
        trees.upsert(key, value);
        if let Some(old) = old {
            values.take_away(old);
        }
    }

    /// Deletes an item. False: there was none.
    pub fn delete(&self, key: &[u8]) -> bool {
        // A put that replaced the item meanwhile would make the tree say that there is none.
        let writing = self.lock(key);
        let mut old = None;
        let last_look = |value: &Value| old = value.handle();
        let is_deleted = self.shared.trees.remove(key, last_look);
        if let Some(old) = old.filter(|_| is_deleted) {
            self.shared.values.take_away(old);
        }
        drop(writing);
        // Without this, the memory of unused nodes is freed only after a while.
        Guard::new().accelerate();
        is_deleted
    }

    /// The handle of a key's long value, if it has one.
    fn handle_of(&self, key: &[u8]) -> Option<Handle> {
        let guard = Guard::new();
        self.shared.trees.find(key, &guard)?.handle()
    }

    /// Waits for other puts of a key.
    fn lock(&self, key: &[u8]) -> MutexGuard<'_, ()> {
        let mix = |sum: usize, byte: &u8| sum.wrapping_mul(31).wrapping_add(usize::from(*byte));
        let lock = &self.shared.writers[key.iter().fold(0, mix) % LOCKS];
        lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `show` with the items of a valid range in order, until `show` returns false or the
    /// range ends. `show` must not write this index: a long value stays locked until it returns.
    pub fn scan(
        &self,
        range: Range<'_>,
        direction: Direction,
        mut show: impl FnMut(&[u8], &[u8]) -> bool,
    ) {
        self.visit(range, direction, |key, value| show(key, value));
    }

    /// Counts the items of a valid range, up to `limit` of them, and adds up their numbers.
    #[must_use]
    pub fn total(&self, range: Range<'_>, limit: u64) -> Total {
        let mut total = Total::default();
        if limit > 0 {
            self.visit(range, Direction::Forward, |_, value| {
                total.items += 1;
                total.sum = total.sum.wrapping_add(number(value));
                total.items < limit
            });
        }
        total
    }

    /// Visits the items of a range, chunk by chunk.
    fn visit(
        &self,
        range: Range<'_>,
        direction: Direction,
        mut show: impl FnMut(&[u8], &[u8]) -> bool,
    ) {
        let mut last: Option<Key> = None;
        loop {
            let at = last.clone();
            let rest = match &at {
                None => range,
                Some(at) => self.rest(range, at, direction),
            };
            let guard = Guard::new();
            let mut items = self.shared.trees.range(rest, direction, &guard);
            for seen in 0.. {
                let Some((key, value)) = items.next() else {
                    return;
                };
                let key = key.into_key();
                if self.is_shown(last.as_ref(), &key, direction) {
                    continue;
                }
                let mut read = Some(|value: &[u8]| show(&key, value));
                let shown = self.show(value, &mut read);
                // If its value is gone, the item was deleted or replaced.
                if shown.or_else(|| self.get(&key, read?)) == Some(false) {
                    return;
                }
                last = Some(key);
                if seen >= CHUNK {
                    break;
                }
            }
        }
    }

    /// Whether the scan has already passed this key. The trees promise no order between the
    /// items of nodes that are split while it reads.
    fn is_shown(&self, last: Option<&Key>, key: &Key, direction: Direction) -> bool {
        #[cfg(feature = "mutants")]
        if self.shared.mutant == Some(Mutant::Again) {
            return false;
        }
        last.is_some_and(|last| match direction {
            Direction::Forward => key <= last,
            Direction::Backward => key >= last,
        })
    }

    fn rest<'a>(&self, range: Range<'a>, last: &'a [u8], direction: Direction) -> Range<'a> {
        #[cfg(feature = "mutants")]
        if self.shared.mutant == Some(Mutant::Again) && direction == Direction::Forward {
            return Range {
                start: crate::range::Start::At(last),
                ..range
            };
        }
        range.after(last, direction)
    }
}

#[cfg(test)]
mod tests;
