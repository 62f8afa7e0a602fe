//! A growable array in pages of its own, for tables that grow with the number of sessions.
//!
//! It differs from a `Vec` in two ways. It grows by an eighth, and moves pages instead of copying
//! entries, so no old copy stays in the allocator's heap. And it frees memory when it becomes
//! shorter. For 20 000 entries of 128 bytes, a `Vec` uses up to twice as much memory: to grow
//! memory that is aligned to cache lines, an allocator copies it, and may keep the old copies.
//!
//! Invariants: the first `len` entries are initialised, and the mapping has room for `capacity`
//! entries. Used by the tables of `dunlin-core`.

use std::alloc::{Layout, handle_alloc_error};
use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::sys::{Mapping, PAGE};

/// The least growth of an array that has more than a page, in bytes.
const STEP: usize = 4 * PAGE;

/// A growable array of `T` in pages of its own.
///
/// ```
/// let mut rows = dunlin_msgbuf::Rows::new();
/// rows.push(7);
/// rows.push(8);
/// rows.truncate(1);
/// assert_eq!(*rows, [7]);
/// ```
#[derive(Debug)]
pub struct Rows<T> {
    base: NonNull<T>,
    len: usize,
    capacity: usize,
    /// The memory; `None` until the first entry is added.
    memory: Option<Mapping>,
    owns: PhantomData<T>,
}

// SAFETY: the array owns its entries, like a `Vec`.
unsafe impl<T: Send> Send for Rows<T> {}
// SAFETY: as above; a shared array gives out shared references to its entries.
unsafe impl<T: Sync> Sync for Rows<T> {}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Rows<T> {
    /// An array without entries, which takes no memory.
    pub const fn new() -> Self {
        const { assert!(size_of::<T>() > 0 && align_of::<T>() <= PAGE) };
        Self {
            base: NonNull::dangling(),
            len: 0,
            capacity: 0,
            memory: None,
            owns: PhantomData,
        }
    }

    /// The number of entries for which there is room.
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Appends an entry. Like a `Vec`, it ends the process if the system has no memory.
    pub fn push(&mut self, entry: T) {
        if self.len == self.capacity {
            self.grow();
        }
        // SAFETY: there is room for one more entry, and nothing is in its place.
        unsafe { self.base.add(self.len).write(entry) };
        self.len += 1;
    }

    /// Drops the entries from `len` on, and frees the pages that only they have used, except for a
    /// reserve of an eighth of the remaining entries.
    pub fn truncate(&mut self, len: usize) {
        while self.len > len {
            self.len -= 1;
            // SAFETY: the entry was initialised, and no longer counts.
            unsafe { self.base.add(self.len).drop_in_place() };
        }
        let kept = with_spare(self.len * size_of::<T>());
        if self
            .memory
            .as_ref()
            .is_some_and(|memory| memory.len() > kept)
        {
            self.resize(kept);
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let bytes = self.memory.as_ref().map_or(0, Mapping::len);
        let needed = (self.len + 1).checked_mul(size_of::<T>());
        let needed = needed.expect("a table is shorter than the address space");
        let grown = if bytes == 0 { PAGE } else { with_spare(bytes) };
        self.resize(grown.max(needed.next_multiple_of(PAGE)));
    }

    /// Makes the mapping `bytes` long, which is a multiple of a page and enough for all entries.
    fn resize(&mut self, bytes: usize) {
        let resized = match self.memory.take() {
            Some(memory) => memory.resized(bytes),
            None => Mapping::new(bytes, false, false),
        };
        let Some(memory) = resized else {
            let layout = Layout::from_size_align(bytes, PAGE);
            handle_alloc_error(layout.unwrap_or(Layout::new::<T>()));
        };
        self.base = memory.base().cast();
        self.capacity = memory.len() / size_of::<T>();
        self.memory = Some(memory);
    }
}

/// Size of a mapping with `bytes` bytes in use, spare room included.
const fn with_spare(bytes: usize) -> usize {
    let spare = if bytes / 8 > STEP { bytes / 8 } else { STEP };
    (bytes + spare).next_multiple_of(PAGE)
}

impl<T> std::ops::Deref for Rows<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: the first `len` entries are initialised, and borrowed from the array.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }
}

impl<T> std::ops::DerefMut for Rows<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and the array is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
    }
}

impl<T> Drop for Rows<T> {
    fn drop(&mut self) {
        // SAFETY: the entries are initialised, and nothing uses them after this.
        unsafe { std::ptr::drop_in_place::<[T]>(&raw mut **self) };
    }
}

#[cfg(test)]
mod tests;
