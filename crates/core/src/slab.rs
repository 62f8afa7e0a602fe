//! A table whose free entries are reused, last in, first out, so that the entries in use stay in
//! the cache.
//!
//! An entry keeps its content while it is free: its next user finds what the last one left, such as
//! a vector with room. The entry that was freed last is kept outside the list of free entries, so a
//! call that begins right after another has ended does not touch the list. Invariant: freeing never
//! allocates, because the list of free entries has room for all of them. Each table has its own
//! index type ([`Index`]), so an index cannot be used in another table.

use std::marker::PhantomData;

use dunlin_msgbuf::Rows;

/// The index of an entry of one kind of table.
pub(crate) trait Index: Copy {
    fn new(index: u32) -> Self;
    fn get(self) -> u32;
}

/// No entry.
const NONE: u32 = u32::MAX;

/// A table of `T`, by index.
#[derive(Debug)]
pub(crate) struct Slab<I, T> {
    entries: Rows<T>,
    free: Free<I>,
}

/// The free entries of a table.
#[derive(Debug)]
pub(crate) struct Free<I> {
    /// The entry that was freed last, or [`NONE`] if that entry is in use again.
    spare: u32,
    others: Vec<u32>,
    index: PhantomData<I>,
}

impl<I: Index> Free<I> {
    /// Takes a free entry.
    #[inline(always)]
    fn pop(&mut self) -> Option<u32> {
        match std::mem::replace(&mut self.spare, NONE) {
            NONE => self.others.pop(),
            spare => Some(spare),
        }
    }

    /// Puts back an entry that is free again.
    #[inline(always)]
    pub(crate) fn put(&mut self, index: I) {
        let before = std::mem::replace(&mut self.spare, index.get());
        if before != NONE {
            self.others.push(before);
        }
    }

    fn len(&self) -> usize {
        self.others.len() + usize::from(self.spare != NONE)
    }
}

impl<I, T> Default for Slab<I, T> {
    fn default() -> Self {
        Self {
            entries: Rows::new(),
            free: Free {
                spare: NONE,
                others: Vec::new(),
                index: PhantomData,
            },
        }
    }
}

impl<I: Index, T: Default> Slab<I, T> {
    /// Takes a free entry as its last user left it, or a new one.
    #[inline]
    pub(crate) fn take(&mut self) -> I {
        self.take_or(T::default)
    }
}

impl<I: Index, T> Slab<I, T> {
    /// Takes a free entry as its last user left it, or one that `make` makes.
    #[inline]
    pub(crate) fn take_or(&mut self, make: impl FnOnce() -> T) -> I {
        match self.take_free() {
            Some((index, _)) => index,
            None => self.grow(make()),
        }
    }

    #[cold]
    fn grow(&mut self, entry: T) -> I {
        let index = u32::try_from(self.entries.len()).expect("fewer than 2^32 fit in memory");
        self.entries.push(entry);
        let others = &mut self.free.others;
        others.reserve(self.entries.capacity() - others.len());
        I::new(index)
    }

    /// Gives back the memory of the entries from `len` on, which are free.
    pub(crate) fn shorten(&mut self, len: usize) {
        self.entries.truncate(len);
        let is_left = |index: u32| (index as usize) < len;
        self.free.others.retain(|index| is_left(*index));
        self.free.others.shrink_to(self.entries.capacity());
        if !is_left(self.free.spare) {
            self.free.spare = NONE;
        }
    }

    /// Takes a free entry as its last user left it, if there is one.
    #[inline(always)]
    pub(crate) fn take_free(&mut self) -> Option<(I, &mut T)> {
        let index = self.free.pop()?;
        Some((I::new(index), self.entries.get_mut(index as usize)?))
    }

    /// Gives an entry back.
    #[inline]
    pub(crate) fn release(&mut self, index: I) {
        debug_assert!((index.get() as usize) < self.entries.len());
        self.free.put(index);
    }

    /// The entry, free or not, and the list of free entries, to which the caller may add it.
    #[inline(always)]
    pub(crate) fn get_beside_free(&mut self, index: I) -> Option<(&mut T, &mut Free<I>)> {
        let entry = self.entries.get_mut(index.get() as usize)?;
        Some((entry, &mut self.free))
    }

    /// The number of entries in use.
    #[inline]
    pub(crate) fn live(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// One more than the highest index ever used.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The indexes that were ever used.
    pub(crate) fn indexes(&self) -> impl Iterator<Item = I> + use<I, T> {
        let len = u32::try_from(self.entries.len()).expect("fewer than 2^32 fit in memory");
        (0..len).map(I::new)
    }

    /// The entry, free or not, if there ever was one at the index.
    #[inline]
    pub(crate) fn get(&self, index: I) -> Option<&T> {
        self.entries.get(index.get() as usize)
    }

    /// The entry, free or not, to be changed.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: I) -> Option<&mut T> {
        self.entries.get_mut(index.get() as usize)
    }

    /// The entry at an index that its owner stored itself.
    #[inline]
    pub(crate) fn at(&self, index: I) -> &T {
        &self.entries[index.get() as usize]
    }

    /// The entry at an index that its owner stored itself, to be changed.
    #[inline]
    pub(crate) fn at_mut(&mut self, index: I) -> &mut T {
        &mut self.entries[index.get() as usize]
    }

    /// All entries, free or not.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.entries.iter()
    }

    /// All entries, free or not, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut()
    }
}

#[cfg(test)]
mod tests;
