//! The items in two trees: one has the keys of eight bytes, the other one all other keys. A search
//! compares its key with those of a node one after another, so it waits for the memory of all of
//! them. Keys of eight bytes are words in their nodes and take a third of the lines that keys of
//! any length take.
//!
//! Invariants: a key is in the tree of its length; the order of words is the order of their bytes;
//! [`Trees::range`] shows both trees as one, in the order of the keys' bytes. Called by `index.rs`.

use std::iter::{self, Peekable};
use std::ops::{Bound, Deref};

use dunlin_keys::Key;
use scc::{Guard, TreeIndex};

use crate::range::{Direction, Range, Start};
use crate::value::Value;

/// Bytes of a word.
const WORD: usize = size_of::<u64>();

/// The trees.
#[derive(Default)]
pub(crate) struct Trees {
    words: TreeIndex<u64, Value>,
    others: TreeIndex<Key, Value>,
}

/// A key that was found in one of the trees.
#[derive(Debug)]
pub(crate) enum Found<'a> {
    Word([u8; WORD]),
    Other(&'a Key),
}

impl Found<'_> {
    /// A copy that outlives the trees' guard.
    #[inline]
    pub(crate) fn to_key(&self) -> Key {
        match self {
            Self::Word(word) => Key::from(&word[..]),
            Self::Other(key) => (*key).clone(),
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
            (None, None) => self.others.peek(key, guard),
        }
    }

    /// Inserts an item, or replaces its value.
    pub(crate) fn upsert(&self, key: &[u8], value: Value) {
        match word_of(key) {
            Some(word) => self.words.upsert_sync(word, value),
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
    ) -> impl Iterator<Item = (Found<'a>, &'a Value)> {
        let words = self.words.range::<u64, _>(words_in(range), guard);
        let others = self.others.range::<[u8], _>(keys_in(range), guard);
        let (mut words, mut others) = (in_order(words, direction), in_order(others, direction));
        iter::from_fn(move || {
            let is_word_next = match (words.peek(), others.peek()) {
                (Some((word, _)), Some((key, _))) => {
                    (word.to_be_bytes()[..] < ***key) == (direction == Direction::Forward)
                }
                (word, _) => word.is_some(),
            };
            match is_word_next {
                true => words
                    .next()
                    .map(|(word, value)| (Found::Word(word.to_be_bytes()), value)),
                false => others.next().map(|(key, value)| (Found::Other(key), value)),
            }
        })
    }
}

fn in_order<I: DoubleEndedIterator>(
    mut items: I,
    direction: Direction,
) -> Peekable<impl Iterator<Item = I::Item>> {
    let next = move || match direction {
        Direction::Forward => items.next(),
        Direction::Backward => items.next_back(),
    };
    iter::from_fn(next).peekable()
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

#[cfg(test)]
mod tests;
