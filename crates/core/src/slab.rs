//! A table whose free entries are reused, last in, first out, so that few are hot.
//!
//! An entry keeps its content while it is free: the next user finds what the last one left, such as
//! a vector with room. Invariant: freeing never allocates, because the list of free entries has
//! room for all of them.

/// A table of `T`, by index.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    entries: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T: Default> Slab<T> {
    /// A free entry as its last user left it, or a new one.
    #[inline]
    pub(crate) fn take(&mut self) -> u32 {
        match self.free.pop() {
            Some(index) => index,
            None => self.grow(),
        }
    }

    #[cold]
    fn grow(&mut self) -> u32 {
        let index = u32::try_from(self.entries.len()).expect("fewer than 2^32 fit in memory");
        self.entries.push(T::default());
        self.free.reserve(self.entries.capacity() - self.free.len());
        index
    }
}

impl<T> Slab<T> {
    /// Gives an entry back.
    #[inline]
    pub(crate) fn release(&mut self, index: u32) {
        debug_assert!((index as usize) < self.entries.len());
        self.free.push(index);
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

    /// The entry, free or not, if there ever was one at the index.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        self.entries.get(index as usize)
    }

    /// The same, to change it.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.entries.get_mut(index as usize)
    }

    /// The entry at an index that its owner stored itself.
    #[inline]
    pub(crate) fn at(&self, index: u32) -> &T {
        &self.entries[index as usize]
    }

    /// The same, to change it.
    #[inline]
    pub(crate) fn at_mut(&mut self, index: u32) -> &mut T {
        &mut self.entries[index as usize]
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
