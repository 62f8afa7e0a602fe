//! Long values, which are kept outside the tree. A node of the tree keeps deleted items, with their
//! values, until it is split or empty. A long value is freed as soon as its item is deleted or
//! replaced.
//!
//! A value has a handle: its place, and how often the place has been used. Invariants: a handle
//! leads to the value for which it was made, or to none after that value was removed; each place is
//! free or has one value. Called by `index.rs`.

use std::sync::{Mutex, OnceLock, PoisonError, RwLock};

/// Number of places that are allocated together, and of entries in each of the two tables above
/// them.
const CHUNK: usize = 1024;

/// The name of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Handle {
    place: u32,
    use_number: u32,
}

/// A place; it is free while it has no bytes.
#[derive(Debug, Default)]
struct ValueCell {
    use_number: u32,
    bytes: Box<[u8]>,
}

type Chunk = Box<[RwLock<ValueCell>]>;
type Table = Box<[OnceLock<Chunk>]>;

/// Free places.
#[derive(Debug, Default)]
struct Free {
    places: Vec<u32>,
    /// Places from this one on have never been used.
    unused: u32,
}

/// The values of an index.
#[derive(Debug)]
pub(crate) struct Values {
    tables: Box<[OnceLock<Table>]>,
    free: Mutex<Free>,
}

impl Default for Values {
    fn default() -> Self {
        Self {
            tables: row(),
            free: Mutex::default(),
        }
    }
}

impl Values {
    /// Keeps a value, which must not be empty.
    ///
    /// # Panics
    /// If there are 2^30 values already.
    pub(crate) fn keep(&self, bytes: &[u8]) -> Handle {
        debug_assert!(!bytes.is_empty(), "a place without bytes is free");
        let place = self.free_place();
        let slot = self.place(place).expect("a free place is a place");
        let mut slot = slot.write().unwrap_or_else(PoisonError::into_inner);
        slot.use_number = slot.use_number.wrapping_add(1);
        slot.bytes = bytes.into();
        Handle {
            place,
            use_number: slot.use_number,
        }
    }

    /// Passes the value to `read`, if it still exists.
    #[inline]
    pub(crate) fn read<R>(&self, handle: Handle, read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let slot = self.place(handle.place)?;
        let slot = slot.read().unwrap_or_else(PoisonError::into_inner);
        let is_it = slot.use_number == handle.use_number && !slot.bytes.is_empty();
        is_it.then(|| read(&slot.bytes))
    }

    /// Removes the value, unless it was removed before.
    pub(crate) fn take_away(&self, handle: Handle) {
        let Some(slot) = self.place(handle.place) else {
            return;
        };
        let taken = {
            let mut slot = slot.write().unwrap_or_else(PoisonError::into_inner);
            match slot.use_number == handle.use_number {
                true => std::mem::take(&mut slot.bytes),
                false => return,
            }
        };
        if !taken.is_empty() {
            self.lock().places.push(handle.place);
        }
    }

    fn free_place(&self) -> u32 {
        let mut free = self.lock();
        if let Some(place) = free.places.pop() {
            return place;
        }
        let place = free.unused;
        let (table, chunk, _) = split(place);
        assert!(table < CHUNK, "an index has at most 2^30 long values");
        free.unused += 1;
        self.tables[table].get_or_init(row)[chunk].get_or_init(row);
        place
    }

    fn place(&self, place: u32) -> Option<&RwLock<ValueCell>> {
        let (table, chunk, place) = split(place);
        self.tables.get(table)?.get()?[chunk].get()?.get(place)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The indices that lead to a place: of its table, of the chunk in the table, and of the place in
/// the chunk.
const fn split(place: u32) -> (usize, usize, usize) {
    let place = place as usize;
    (
        place / (CHUNK * CHUNK),
        place / CHUNK % CHUNK,
        place % CHUNK,
    )
}

fn row<T: Default>() -> Box<[T]> {
    (0..CHUNK).map(|_| T::default()).collect()
}

#[cfg(test)]
mod tests;
