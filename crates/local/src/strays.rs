//! The calls that are not offered to the tasks in their tags: each has an entry here until it is
//! settled. Called by `calls.rs`.
//!
//! The tag of a call that a future elsewhere awaits from the start has the number of its entry, so
//! it is found without a search. Other strays are rare, and are found by their tags in a map.

use std::collections::HashMap;

use dunlin_core::{Done, RpcError, Tag};
use dunlin_msgbuf::MsgBuf;

use crate::wake::WakeBy;

/// The result of a call, and its msgbufs.
pub(super) struct Ended {
    pub(super) request: MsgBuf,
    pub(super) response: MsgBuf,
    pub(super) result: Result<(), RpcError>,
}

/// A call for which the task in its tag does not wait, or no longer waits.
pub(super) enum Stray {
    /// The call runs, and this future waits for it.
    Awaited(WakeBy),
    /// The call runs, and its future was dropped.
    Abandoned,
    Ended(Ended),
}

/// Strays whose tags are the numbers of their entries. An entry belongs to its call until it is
/// released, so no two calls have the same tag.
#[derive(Default)]
pub(super) struct Numbered {
    entries: Vec<Option<Stray>>,
    free: Vec<usize>,
}

/// Strays whose tags name tasks.
#[derive(Default)]
pub(super) struct Named(HashMap<Tag, Stray>);

impl From<Done> for Ended {
    fn from(done: Done) -> Self {
        Self {
            request: done.request,
            response: done.response,
            result: done.result,
        }
    }
}

impl Numbered {
    /// An entry for a call that is about to be issued.
    pub(super) fn reserve(&mut self) -> usize {
        if let Some(entry) = self.free.pop() {
            return entry;
        }
        self.entries.push(None);
        // Releasing must never allocate.
        self.free.reserve(self.entries.capacity());
        self.entries.len() - 1
    }

    /// Frees the entry of a call that is settled.
    pub(super) fn release(&mut self, entry: usize) {
        debug_assert!(self.entries[entry].is_none(), "a settled call has no state");
        self.free.push(entry);
    }

    /// Drops the stray if there is no such entry: the tag of a call of the program's own may look
    /// like one of ours.
    pub(super) fn put(&mut self, entry: usize, stray: Stray) -> Option<Stray> {
        match self.entries.get_mut(entry) {
            Some(place) => place.replace(stray),
            None => no_entry(stray),
        }
    }

    pub(super) fn take(&mut self, entry: usize) -> Option<Stray> {
        self.entries.get_mut(entry)?.take()
    }
}

/// Drops a stray that has no entry, out of the way of those that have one.
#[cold]
#[inline(never)]
fn no_entry(stray: Stray) -> Option<Stray> {
    drop(stray);
    None
}

impl Named {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn put(&mut self, tag: Tag, stray: Stray) -> Option<Stray> {
        self.0.insert(tag, stray)
    }

    pub(super) fn take(&mut self, tag: Tag) -> Option<Stray> {
        self.0.remove(&tag)
    }
}
