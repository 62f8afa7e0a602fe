//! The items in three trees: one has the keys of eight bytes, one those of 23 to 255 bytes
//! (`long.rs`), and one all other keys. A search compares its key with those of a node one after
//! another, so it waits for the memory of all of them. Keys of eight bytes are words in their nodes
//! and take a third of the lines that keys of any length take.
//!
//! Invariants: a key is in the tree of its length; the order of words is the order of their bytes;
//! [`Trees::range`] shows all trees as one, in the order of the keys' bytes. Called by `index.rs`.

use std::iter;
use std::ops::{Bound, Deref};

use dunlin_keys::Key;
use scc::{Guard, TreeIndex};

use crate::long::{LongKey, LongKeys, Sought, is_long};
use crate::range::{Direction, Range, Start};
use crate::value::Value;

/// Bytes of a word.
const WORD: usize = size_of::<u64>();

/// The trees.
#[derive(Default)]
pub(crate) struct Trees {
    words: TreeIndex<u64, Value>,
    others: TreeIndex<Key, Value>,
    long: TreeIndex<LongKey, Value>,
    /// The bytes of the keys of `long`.
    shelves: LongKeys,
}

/// A key that was found in one of the trees.
#[derive(Debug)]
pub(crate) enum Found<'a> {
    Word([u8; WORD]),
    Other(&'a Key),
    Long(Key),
}

/// An item that was found in one of the trees.
type Shown<'a> = (Found<'a>, &'a Value);

impl Found<'_> {
    /// A copy that outlives the trees' guard.
    #[inline]
    pub(crate) fn into_key(self) -> Key {
        match self {
            Self::Word(word) => Key::from(&word[..]),
            Self::Other(key) => key.clone(),
            Self::Long(key) => key,
        }
    }
}

impl Deref for Found<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Word(word) => word,
            Self::Other(key) => key,
            Self::Long(key) => key,
        }
    }
}

impl Trees {
    /// The value of a key. Short keys are compared word by word.
    #[inline]
    pub(crate) fn find<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Option<&'g Value> {
        match (word_of(key), Key::short(key)) {
            (Some(word), _) => self.words.peek(&word, guard),
            (None, Some(key)) => self.others.peek(&key, guard),
            (None, None) if is_long(key) => self.long.peek(&Sought(key), guard),
            (None, None) => self.others.peek(key, guard),
        }
    }

    /// Inserts an item, or replaces its value.
    pub(crate) fn upsert(&self, key: &[u8], value: Value) {
        match word_of(key) {
            Some(word) => self.words.upsert_sync(word, value),
            None if is_long(key) => {
                let guard = Guard::new();
                let old = self.long.peek_entry(&Sought(key), &guard);
                self.long.upsert_sync(self.shelves.keep(key), value);
                if let Some((old, _)) = old {
                    old.free_later(&guard);
                }
            }
            None => self.others.upsert_sync(Key::from(key), value),
        }
    }

    /// Removes an item, after it has shown its value to `last_look`. False: there was none.
    pub(crate) fn remove(&self, key: &[u8], mut last_look: impl FnMut(&Value)) -> bool {
        let look = |value: &Value| {
            last_look(value);
            true
        };
        match word_of(key) {
            Some(word) => self.words.remove_if_sync(&word, look),
            None if is_long(key) => {
                let guard = Guard::new();
                let old = self.long.peek_entry(&Sought(key), &guard);
                let is_removed = self.long.remove_if_sync(&Sought(key), look);
                if let Some((old, _)) = old.filter(|_| is_removed) {
                    old.free_later(&guard);
                }
                is_removed
            }
            None => self.others.remove_if_sync(key, look),
        }
    }

    /// The items of a valid range. The trees promise no order between the items of nodes that are
    /// split meanwhile.
    pub(crate) fn range<'a>(
        &'a self,
        range: Range<'a>,
        direction: Direction,
        guard: &'a Guard,
    ) -> impl Iterator<Item = Shown<'a>> {
        let words = self.words.range::<u64, _>(words_in(range), guard);
        let others = self.others.range::<[u8], _>(keys_in(range), guard);
        let long = self.long.range::<Sought<'a>, _>(sought_in(range), guard);
        let words = words.map(|(word, value)| (Found::Word(word.to_be_bytes()), value));
        let others = others.map(|(key, value)| (Found::Other(key), value));
        let long = long.map(|(key, value)| (Found::Long(key.to_key()), value));
        let rest = merge(
            in_order(others, direction),
            in_order(long, direction),
            direction,
        );
        merge(in_order(words, direction), rest, direction)
    }
}

fn in_order<I: DoubleEndedIterator>(
    mut items: I,
    direction: Direction,
) -> impl Iterator<Item = I::Item> {
    iter::from_fn(move || match direction {
        Direction::Forward => items.next(),
        Direction::Backward => items.next_back(),
    })
}

/// The items of two iterators with different keys, in the direction that both have.
fn merge<'a>(
    left: impl Iterator<Item = Shown<'a>>,
    right: impl Iterator<Item = Shown<'a>>,
    direction: Direction,
) -> impl Iterator<Item = Shown<'a>> {
    let (mut left, mut right) = (left.peekable(), right.peekable());
    iter::from_fn(move || {
        let is_left_next = match (left.peek(), right.peek()) {
            (Some((one, _)), Some((other, _))) => {
                (one[..] < other[..]) == (direction == Direction::Forward)
            }
            (one, _) => one.is_some(),
        };
        match is_left_next {
            true => left.next(),
            false => right.next(),
        }
    })
}

/// The key as a word, if it has the length of one.
#[inline]
fn word_of(key: &[u8]) -> Option<u64> {
    key.try_into().ok().map(u64::from_be_bytes)
}

/// The first bytes of the key as a word, with zeros after a shorter key. If the key is longer than
/// a word, this is the last word before the key. Otherwise, it is the first word that is not before
/// the key.
fn word_near(key: &[u8]) -> u64 {
    let mut word = [0; WORD];
    let len = key.len().min(WORD);
    word[..len].copy_from_slice(&key[..len]);
    u64::from_be_bytes(word)
}

/// The words in a range of keys.
fn words_in(range: Range<'_>) -> (Bound<u64>, Bound<u64>) {
    let start = match range.start {
        Start::First => Bound::Unbounded,
        // A key comes before all longer ones of which it is a prefix.
        Start::At(key) if key.len() > WORD => Bound::Excluded(word_near(key)),
        Start::After(key) if key.len() >= WORD => Bound::Excluded(word_near(key)),
        Start::At(key) | Start::After(key) => Bound::Included(word_near(key)),
    };
    let end = match range.end {
        None => Bound::Unbounded,
        Some(key) if key.len() > WORD => Bound::Included(word_near(key)),
        Some(key) => Bound::Excluded(word_near(key)),
    };
    (start, end)
}

fn keys_in(range: Range<'_>) -> (Bound<&[u8]>, Bound<&[u8]>) {
    let start = match range.start {
        Start::First => Bound::Unbounded,
        Start::At(key) => Bound::Included(key),
        Start::After(key) => Bound::Excluded(key),
    };
    (start, range.end.map_or(Bound::Unbounded, Bound::Excluded))
}

fn sought_in(range: Range<'_>) -> (Bound<Sought<'_>>, Bound<Sought<'_>>) {
    let (start, end) = keys_in(range);
    (start.map(Sought), end.map(Sought))
}

#[cfg(test)]
mod tests;
