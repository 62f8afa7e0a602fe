//! The places of a channel: one for each call that has not ended, and for each that has ended while
//! a server may still hold its request. So the limit of the channel's calls bounds also what stuck
//! servers hold.
//!
//! A place goes with its call: from the caller's handle into the slot of the mailbox, to the
//! attempt that is sent, and back to the slot when that ends. Its drop frees it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Debug)]
pub(crate) struct Places {
    taken: AtomicUsize,
    most: usize,
}

/// A place that is taken; its drop frees it.
#[derive(Debug)]
pub(crate) struct Place(Arc<Places>);

impl Places {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            taken: AtomicUsize::new(0),
            most,
        })
    }

    pub(crate) fn take(self: &Arc<Self>) -> Option<Place> {
        // Before the comparison: the drop takes this one back too.
        let place = Place(Arc::clone(self));
        let taken = self.taken.fetch_add(1, Ordering::Relaxed);
        (taken < self.most).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
