//! A table whose free entries are reused, last in, first out, so that few are hot.
//!
//! An entry keeps its content while it is free: the next user finds what the last one left, such as
//! a vector with room. Invariant: freeing never allocates, because the list of free entries has
//! room for all of them. Each table has a type of index of its own ([`Index`]), so that the index
//! of one table's entry cannot reach into another table.

use std::marker::PhantomData;

/// The index of an entry of one kind of table.
pub(crate) trait Index: Copy {
    fn new(index: u32) -> Self;
    fn get(self) -> u32;
}

/// A table of `T`, by index.
#[derive(Debug)]
pub(crate) struct Slab<I, T> {
    entries: Vec<T>,
    free: Vec<u32>,
    index: PhantomData<I>,
}

impl<I, T> Default for Slab<I, T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            index: PhantomData,
        }
    }
}

impl<I: Index, T: Default> Slab<I, T> {
    /// A free entry as its last user left it, or a new one.
    #[inline]
    pub(crate) fn take(&mut self) -> I {
        match self.free.pop() {
            Some(index) => I::new(index),
            None => self.grow(),
        }
    }

    #[cold]
    fn grow(&mut self) -> I {
        let index = u32::try_from(self.entries.len()).expect("fewer than 2^32 fit in memory");
        self.entries.push(T::default());
        self.free.reserve(self.entries.capacity() - self.free.len());
        I::new(index)
    }
}

impl<I: Index, T> Slab<I, T> {
    /// Gives an entry back.
    #[inline]
    pub(crate) fn release(&mut self, index: I) {
        debug_assert!((index.get() as usize) < self.entries.len());
        self.free.push(index.get());
    }

    /// Entries that are not free.
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

    /// The same, to change it.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: I) -> Option<&mut T> {
        self.entries.get_mut(index.get() as usize)
    }

    /// The entry at an index that its owner stored itself.
    #[inline]
    pub(crate) fn at(&self, index: I) -> &T {
        &self.entries[index.get() as usize]
    }

    /// The same, to change it.
    #[inline]
    pub(crate) fn at_mut(&mut self, index: I) -> &mut T {
        &mut self.entries[index.get() as usize]
    }

    /// All entries, free or not.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter()
    }

    /// The same, to change them.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut()
    }
}

#[cfg(test)]
mod tests;
