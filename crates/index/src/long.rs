//! Keys of 23 to 255 bytes, which are too long for a node of a tree. A node keeps the places of
//! deleted items until it is split or empty. The bytes of a deleted key are freed earlier, as soon
//! as no thread can compare them any more.
//!
//! The first bytes of a key are in the node, so most comparisons read no other memory. The other
//! bytes are words in a cell of a chunk. Chunks of cells of one length are on a shelf.
//!
//! Invariants: a cell has the bytes of one key, or is free. A key frees its cell once: when it is
//! dropped, or after its deletion ([`LongKey::free_later`]), whichever comes first. A cell that is
//! free, or has another key's bytes by now, is not read by a thread that can still reach the key.
//! Called by `trees.rs`.

use std::cmp::Ordering;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use dunlin_keys::{Key, SHORT};
use scc::{Comparable, Equivalent, Guard};

use crate::range::MAX_KEY;

/// Bytes of a key that are in the node.
const HEAD: usize = 10;

/// Bytes of a word.
const WORD: usize = size_of::<u64>();

/// Cells of a chunk: as many as a byte can number.
const CELLS: usize = 1 << u8::BITS;

/// Words of a cell, on each shelf. The last one has room for all bytes after the head.
const WORDS: [usize; 5] = [2, 4, 8, 16, (MAX_KEY - HEAD).div_ceil(WORD)];

const _: () = assert!(SHORT >= HEAD && MAX_KEY <= u8::MAX as usize);

/// The cells of all keys of a tree.
#[derive(Debug)]
pub(crate) struct LongKeys([Arc<Shelf>; WORDS.len()]);

/// Cells of one length.
#[derive(Debug)]
struct Shelf {
    words: usize,
    stock: Mutex<Stock>,
}

#[derive(Debug, Default)]
struct Stock {
    chunks: Vec<Arc<Chunk>>,
    /// Free cells: the number of the chunk, and of the cell in it.
    free: Vec<(u32, u8)>,
}

#[derive(Debug)]
struct Chunk {
    shelf: Weak<Shelf>,
    number: u32,
    words: Box<[AtomicU64]>,
    /// How often each cell has been freed.
    frees: Box<[AtomicU32]>,
}

/// A key of the tree. A clone has a cell of its own.
#[derive(Debug)]
pub(crate) struct LongKey {
    chunk: Arc<Chunk>,
    /// How often the cell had been freed when it got the key.
    frees: u32,
    cell: u8,
    len: u8,
    head: [u8; HEAD],
}

// A key is as large as a short one.
const _: () = assert!(size_of::<LongKey>() == size_of::<Key>());

/// A key with which a tree is searched, of any length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sought<'a>(pub(crate) &'a [u8]);

/// True for the keys that this file keeps.
#[inline]
pub(crate) const fn is_long(key: &[u8]) -> bool {
    key.len() > SHORT && key.len() <= MAX_KEY
}

impl Default for LongKeys {
    fn default() -> Self {
        Self(WORDS.map(|words| {
            Arc::new(Shelf {
                words,
                stock: Mutex::default(),
            })
        }))
    }
}

impl LongKeys {
    /// Makes a key of the tree.
    ///
    /// # Panics
    /// If the key is not [long](is_long).
    pub(crate) fn keep(&self, key: &[u8]) -> LongKey {
        assert!(is_long(key), "the trees keep other keys elsewhere");
        let (head, rest) = key.split_first_chunk().expect("a long key has a head");
        let words = rest.len().div_ceil(WORD);
        let shelf = self.0.iter().find(|shelf| shelf.words >= words);
        let (chunk, cell) = Shelf::take(shelf.expect("the last shelf has room for all"));
        let made = LongKey {
            frees: chunk.frees[usize::from(cell)].load(Acquire),
            chunk,
            cell,
            len: u8::try_from(key.len()).expect("a key has at most 255 bytes"),
            head: *head,
        };
        for (word, bytes) in made.cell().iter().zip(rest.chunks(WORD)) {
            word.store(word_of(bytes), Relaxed);
        }
        made
    }

    /// The number of cells that have a key.
    #[cfg(test)]
    fn taken(&self) -> usize {
        let taken = self.0.iter().map(|shelf| {
            let stock = shelf.lock();
            stock.chunks.len() * CELLS - stock.free.len()
        });
        taken.sum()
    }
}

impl Shelf {
    fn lock(&self) -> MutexGuard<'_, Stock> {
        self.stock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a free cell.
    fn take(self: &Arc<Self>) -> (Arc<Chunk>, u8) {
        let mut stock = self.lock();
        if stock.free.is_empty() {
            let number = u32::try_from(stock.chunks.len()).expect("memory ends before");
            stock.chunks.push(Arc::new(Chunk {
                shelf: Arc::downgrade(self),
                number,
                words: (0..CELLS * self.words).map(|_| AtomicU64::new(0)).collect(),
                frees: (0..CELLS).map(|_| AtomicU32::new(0)).collect(),
            }));
            stock
                .free
                .extend((0..=u8::MAX).rev().map(|cell| (number, cell)));
        }
        let (number, cell) = stock.free.pop().expect("a new chunk is free");
        let chunk = Arc::clone(&stock.chunks[number as usize]);
        (chunk, cell)
    }
}

impl Chunk {
    /// The words of a cell.
    #[inline]
    fn cell(&self, cell: u8) -> &[AtomicU64] {
        let words = self.words.len() / CELLS;
        &self.words[usize::from(cell) * words..][..words]
    }

    /// Frees a cell, unless it has been freed more often than this.
    fn free(&self, cell: u8, frees: u32) {
        let next = frees.wrapping_add(1);
        let count = &self.frees[usize::from(cell)];
        let is_first = count.compare_exchange(frees, next, AcqRel, Relaxed).is_ok();
        // Without a shelf, the tree is gone, and the chunk goes with its last key.
        if is_first && let Some(shelf) = self.shelf.upgrade() {
            shelf.lock().free.push((self.number, cell));
        }
    }
}

impl LongKey {
    /// The words of the bytes after the head, and perhaps others.
    #[inline]
    fn cell(&self) -> &[AtomicU64] {
        self.chunk.cell(self.cell)
    }

    /// The words of the bytes after the head.
    #[inline]
    fn words(&self) -> impl Iterator<Item = u64> {
        let words = (usize::from(self.len) - HEAD).div_ceil(WORD);
        self.cell()[..words].iter().map(|word| word.load(Relaxed))
    }

    /// Copies the bytes.
    pub(crate) fn to_key(&self) -> Key {
        let mut bytes = [0; MAX_KEY + WORD];
        bytes[..HEAD].copy_from_slice(&self.head);
        for (word, out) in self.words().zip(bytes[HEAD..].chunks_exact_mut(WORD)) {
            out.copy_from_slice(&word.to_be_bytes());
        }
        Key::from(&bytes[..usize::from(self.len)])
    }

    /// Compares the key with the bytes of any key.
    #[inline]
    fn compare(&self, bytes: &[u8]) -> Ordering {
        let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() else {
            return self.head[..].cmp(bytes);
        };
        self.compare_parts(head, rest.chunks(WORD).map(word_of), bytes.len())
    }

    /// Words that are not full end with zeros. So if all words are equal that both keys have, the
    /// bytes that only one of them has decide, and it is the greater one.
    #[inline]
    fn compare_parts(
        &self,
        head: &[u8; HEAD],
        words: impl Iterator<Item = u64>,
        len: usize,
    ) -> Ordering {
        let heads = self.head.cmp(head);
        heads.then_with(|| {
            let pairs = self.words().zip(words);
            let mut orders = pairs.map(|(own, other)| own.cmp(&other));
            let differs = orders.find(|it| it.is_ne());
            differs.unwrap_or_else(|| usize::from(self.len).cmp(&len))
        })
    }

    /// Frees the cell of a key that has left the tree, when no thread can reach the key any more.
    ///
    /// A thread that splits a node makes a new node reachable before the old one is unreachable. So
    /// a thread that begins after the key has left the new node may find it in the old one, until
    /// the split has ended. The split ends within the first wait, and such a thread within the
    /// second.
    pub(crate) fn free_later(&self, guard: &Guard) {
        let (chunk, cell, frees) = (Arc::clone(&self.chunk), self.cell, self.frees);
        guard.defer_execute(move || {
            Guard::new().defer_execute(move || chunk.free(cell, frees));
        });
    }
}

impl Clone for LongKey {
    fn clone(&self) -> Self {
        let shelf = self.chunk.shelf.upgrade();
        let shelf = shelf.expect("only a tree clones its keys, and it has the shelves");
        let (chunk, cell) = shelf.take();
        for (to, from) in chunk.cell(cell).iter().zip(self.cell()) {
            to.store(from.load(Relaxed), Relaxed);
        }
        Self {
            frees: chunk.frees[usize::from(cell)].load(Acquire),
            chunk,
            cell,
            ..*self
        }
    }
}

impl Drop for LongKey {
    fn drop(&mut self) {
        self.chunk.free(self.cell, self.frees);
    }
}

impl PartialEq for LongKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for LongKey {}

impl PartialOrd for LongKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for LongKey {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.compare_parts(&other.head, other.words(), other.len.into())
    }
}

impl Equivalent<LongKey> for Sought<'_> {
    #[inline]
    fn equivalent(&self, key: &LongKey) -> bool {
        usize::from(key.len) == self.0.len() && key.compare(self.0).is_eq()
    }
}

impl Comparable<LongKey> for Sought<'_> {
    #[inline]
    fn compare(&self, key: &LongKey) -> Ordering {
        key.compare(self.0).reverse()
    }
}

/// The word of up to eight bytes. Words have the order of their bytes.
#[inline]
fn word_of(bytes: &[u8]) -> u64 {
    let mut word = [0; WORD];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_be_bytes(word)
}

#[cfg(test)]
mod tests;
