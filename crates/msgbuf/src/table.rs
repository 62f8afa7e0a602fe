//! A table of entries by [`RegionId`], looked up without a lock.
//!
//! Invariants: a row with an id points to the live entry of that id. Rows change under their lock.
//! An id is reused only after 2³² other ids, so a name never finds a later region instead of its
//! own. The only such table is the table of regions, in `region`.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::name::RegionId;

/// Ids, and the entries that they name.
#[derive(Debug)]
pub(crate) struct Table<T> {
    rows: [Row<T>; ROWS],
    locks: [Mutex<()>; LOCKS],
    next_id: AtomicU32,
}

/// One row of the table. The id is next to the pointer, so that a search compares ids without
/// following the pointer: the row may by now belong to a later region, which another thread may be
/// about to free.
#[derive(Debug)]
struct Row<T> {
    id: AtomicU32,
    named: AtomicPtr<T>,
}

/// Largest number of entries at the same time.
pub(crate) const ROWS: usize = 1 << 16;
/// Number of locks of the table; two rows in use rarely share a lock.
const LOCKS: usize = 64;

impl<T> Table<T> {
    pub(crate) const fn new() -> Self {
        Self {
            rows: [const { Row::vacant() }; ROWS],
            locks: [const { Mutex::new(()) }; LOCKS],
            // All fields are zero, so that the table takes no room in a program's file. No entry
            // gets id 0.
            next_id: AtomicU32::new(0),
        }
    }

    /// The entry of that id, if it exists.
    #[inline]
    pub(crate) fn find(&self, id: RegionId) -> Option<NonNull<T>> {
        let row = &self.rows[row_of(id)];
        if row.id.load(Ordering::Acquire) != id.0 {
            return None;
        }
        NonNull::new(row.named.load(Ordering::Relaxed))
    }

    /// Takes the lock that prevents the removal of the entry of that id.
    pub(crate) fn lock(&self, id: RegionId) -> MutexGuard<'_, ()> {
        // The lock guards no data that a panic could leave inconsistent.
        self.locks[row_of(id) % LOCKS]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds `it` under a new id; `false` if the table is full. Calls `set` with the id before any
    /// other thread can find the entry.
    pub(crate) fn insert(&self, it: NonNull<T>, set: impl Fn(RegionId)) -> bool {
        for _ in 0..ROWS {
            let id = RegionId(self.next_id.fetch_add(1, Ordering::Relaxed));
            // Row 0 stays empty: it belongs to `RegionId::NONE`.
            if row_of(id) == 0 {
                continue;
            }
            let _row_is_ours = self.lock(id);
            let row = &self.rows[row_of(id)];
            if row.id.load(Ordering::Relaxed) == RegionId::NONE.0 {
                set(id);
                row.named.store(it.as_ptr(), Ordering::Relaxed);
                row.id.store(id.0, Ordering::Release);
                return true;
            }
        }
        false
    }

    /// Removes an id. Afterwards, no thread that takes the lock of the id finds the entry.
    pub(crate) fn remove(&self, id: RegionId) {
        let _no_reader = self.lock(id);
        self.rows[row_of(id)]
            .id
            .store(RegionId::NONE.0, Ordering::Release);
    }
}

impl<T> Row<T> {
    const fn vacant() -> Self {
        Self {
            id: AtomicU32::new(RegionId::NONE.0),
            named: AtomicPtr::new(std::ptr::null_mut()),
        }
    }
}

/// The row of an id. Several ids share a row, but never two live ones.
#[inline]
pub(crate) const fn row_of(id: RegionId) -> usize {
    id.0 as usize % ROWS
}
