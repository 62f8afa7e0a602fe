//! The home of a pool's msgbufs: a list of the msgbufs that any thread has dropped. The pool
//! empties the list when it has no free block left. When the pool is gone, the home keeps the
//! pool's regions until the last of their msgbufs has returned.
//!
//! Invariant: once the pool is gone, `outstanding` counts the msgbufs that are still in use, and
//! the thread that brings it to zero frees the regions. Therefore, no msgbuf needs a reference
//! count of its own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::block::Block;
use crate::region::RegionBox;

/// The state that a pool shares with its msgbufs.
#[derive(Debug, Default)]
pub(crate) struct Home {
    /// Length of the list of returned msgbufs: a hint that can be read without the lock.
    waiting: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    returned: Vec<Block>,
    orphans: Option<Orphans>,
}

/// The state that remains of a dropped pool, for its last msgbufs.
#[derive(Debug)]
struct Orphans {
    outstanding: usize,
    regions: Vec<RegionBox>,
}

impl Home {
    /// Msgbufs that were dropped and wait to be collected.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Acquire)
    }

    /// Moves the blocks of all returned msgbufs into `into`, which must be empty. The list reuses
    /// the memory of `into`, so neither side allocates each time.
    pub(crate) fn collect(&self, into: &mut Vec<Block>) {
        debug_assert!(into.is_empty());
        let mut state = self.lock();
        std::mem::swap(&mut state.returned, into);
        self.waiting.store(0, Ordering::Release);
    }

    /// Adds the block of a dropped msgbuf to the list.
    pub(crate) fn take(&self, block: Block) {
        let mut state = self.lock();
        let Some(orphans) = &mut state.orphans else {
            state.returned.push(block);
            self.waiting.store(state.returned.len(), Ordering::Release);
            return;
        };
        // This must happen before the block counts as returned: the thread that returns the last
        // block immediately frees the regions, and with them the memory to which the block points.
        let own = block.into_own_region();
        orphans.outstanding -= 1;
        let regions = if orphans.outstanding == 0 {
            std::mem::take(&mut orphans.regions)
        } else {
            Vec::new()
        };
        drop(state);
        // To drop a region unmaps its memory, which takes long, and drops the region's reference to
        // this home. So the lock is released first, and the caller's reference keeps the home
        // alive.
        drop(own);
        drop(regions);
    }

    /// Takes over the regions of the pool, which is being dropped. `outstanding` counts the msgbufs
    /// in use, including those on the list of returned ones.
    pub(crate) fn orphan(&self, outstanding: usize, regions: Vec<RegionBox>) {
        let mut state = self.lock();
        let returned = std::mem::take(&mut state.returned);
        let outstanding = outstanding - returned.len();
        // As in `take`, this must happen while the regions still exist.
        let own: Vec<_> = returned.into_iter().map(Block::into_own_region).collect();
        let regions = if outstanding == 0 {
            regions
        } else {
            state.orphans = Some(Orphans {
                outstanding,
                regions,
            });
            Vec::new()
        };
        drop(state);
        drop(own);
        drop(regions);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Code that holds this lock leaves no change unfinished if it panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
