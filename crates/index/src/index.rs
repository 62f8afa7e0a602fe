//! The tree, and the operations on it. Threads share it: gets take no lock, and a write waits for
//! another one only where a node is split.
//!
//! The tree is `scc::TreeIndex`. `masstree` 0.9.5, the crate with the algorithm of eRPC §7.2,
//! failed the tests of this crate: its scans miss items before a bound that differs from them in an
//! earlier word than the last, and show some twice while others write.
//!
//! Invariants: one key's gets and writes are linearizable. A scan shows keys in their order, each
//! once, every key that is there from its begin to its end, and none that was never there; a key
//! that comes or goes meanwhile may be shown or not. A scan or sum pins what it reads for at most
//! [`CHUNK`] items at a time, so memory of deleted items comes back while a long one runs.
//!
//! Called by `service.rs` and by programs that have the index in their own process.

use std::ops::Bound;
use std::sync::Arc;

use scc::{Guard, TreeIndex};

use crate::bytes::Bytes;
use crate::range::{Direction, Range, Start};

/// Items that are read between two releases of what was pinned.
const CHUNK: usize = 1024;

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

#[derive(Default)]
struct Shared {
    tree: TreeIndex<Bytes, Bytes>,
    #[cfg(feature = "mutants")]
    mutant: Option<Mutant>,
    /// The first value of each key that was read, for a planted bug.
    #[cfg(feature = "mutants")]
    old: std::sync::Mutex<std::collections::HashMap<Vec<u8>, Vec<u8>>>,
}

/// A planted bug of the index.
#[cfg(feature = "mutants")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// A get returns the first value that it ever found for the key.
    OldRead,
    /// A scan that goes on shows its last key again.
    Again,
}

/// The items of a range together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Total {
    /// Their number.
    pub items: u64,
    /// The sum of their numbers, without what is above 64 bits. The number of an item is the first
    /// eight bytes of its value, little endian; missing ones are zeros.
    pub sum: u64,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index").finish_non_exhaustive()
    }
}

impl Index {
    /// An index without items.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An index with a planted bug.
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

    /// Passes the value of a key to `read`, if there is an item, and returns the result.
    #[inline]
    pub fn get<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        #[cfg(feature = "mutants")]
        if self.shared.mutant == Some(Mutant::OldRead) {
            return self.get_old(key).map(|value| read(&value));
        }
        let guard = Guard::new();
        let value = self.shared.tree.peek(key, &guard)?;
        Some(read(value.as_slice()))
    }

    #[cfg(feature = "mutants")]
    fn get_old(&self, key: &[u8]) -> Option<Vec<u8>> {
        let guard = Guard::new();
        let value = self.shared.tree.peek(key, &guard)?.as_slice().to_vec();
        let mut old = self.shared.old.lock().ok()?;
        Some(old.entry(key.to_vec()).or_insert(value).clone())
    }

    /// Writes an item.
    pub fn put(&self, key: &[u8], value: &[u8]) {
        let tree = &self.shared.tree;
        tree.upsert_sync(Bytes::new(key), Bytes::new(value));
    }

    /// Deletes an item. False: there was none.
    pub fn delete(&self, key: &[u8]) -> bool {
        self.shared.tree.remove_sync(key)
    }

    /// Shows the items of a valid range in their order, until `show` returns false or the range has
    /// no more.
    pub fn scan(
        &self,
        range: Range<'_>,
        direction: Direction,
        mut show: impl FnMut(&[u8], &[u8]) -> bool,
    ) {
        self.visit(range, direction, |key, value| show(key, value.as_slice()));
    }

    /// Counts the items of a valid range, and adds up their numbers, up to `limit` of them.
    #[must_use]
    pub fn total(&self, range: Range<'_>, limit: u64) -> Total {
        let mut total = Total::default();
        if limit > 0 {
            self.visit(range, Direction::Forward, |_, value| {
                total.items += 1;
                total.sum = total.sum.wrapping_add(value.number());
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
        mut show: impl FnMut(&[u8], &Bytes) -> bool,
    ) {
        let mut last: Option<Bytes> = None;
        loop {
            let at = last.clone();
            let rest = match &at {
                None => range,
                Some(at) => self.rest(range, at.as_slice(), direction),
            };
            let guard = Guard::new();
            let mut items = self.shared.tree.range::<[u8], _>(bounds(rest), &guard);
            for seen in 0.. {
                let next = match direction {
                    Direction::Forward => items.next(),
                    Direction::Backward => items.next_back(),
                };
                let Some((key, value)) = next else { return };
                if self.is_shown(last.as_ref(), key, direction) {
                    continue;
                }
                if !show(key.as_slice(), value) {
                    return;
                }
                last = Some(key.clone());
                if seen >= CHUNK {
                    break;
                }
            }
        }
    }

    /// Whether the scan has passed this key already. The tree promises no order between the items
    /// of nodes that are split while it reads.
    fn is_shown(&self, last: Option<&Bytes>, key: &Bytes, direction: Direction) -> bool {
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
                start: Start::At(last),
                ..range
            };
        }
        range.after(last, direction)
    }
}

fn bounds<'a>(range: Range<'a>) -> (Bound<&'a [u8]>, Bound<&'a [u8]>) {
    let start = match range.start {
        Start::First => Bound::Unbounded,
        Start::At(key) => Bound::Included(key),
        Start::After(key) => Bound::Excluded(key),
    };
    (start, range.end.map_or(Bound::Unbounded, Bound::Excluded))
}

#[cfg(test)]
mod tests;
