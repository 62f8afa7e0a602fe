//! The slots that keep their entry in the table of calls from one call to the next: the next call
//! in such a slot needs no search for a free entry, and its entry is in the cache.
//!
//! Invariant: a slot is listed if and only if it has an entry, in use or not, without the mark
//! `CallMarks::LOOSE`. At most [`MOST`] slots are listed, so their entries fit into a second-level
//! cache. Called by `client/calls`.

use crate::handle::SlotIdx;
use crate::session::slots::SlotRange;

/// The most slots that keep an entry: together 64 KiB.
const MOST: usize = 512;

/// The slots that keep an entry.
#[derive(Debug, Default)]
pub(super) struct Kept {
    slots: Vec<SlotIdx>,
}

impl Kept {
    /// Makes room for an endpoint with this number of slots, so that listing never allocates.
    pub(super) fn make_room(&mut self, slots: usize) {
        let room = slots.min(MOST);
        self.slots.reserve(room.saturating_sub(self.slots.len()));
    }

    /// Lists the slot, which keeps its entry from now on. False if too many are listed.
    pub(super) fn add(&mut self, at: SlotIdx) -> bool {
        debug_assert!(
            !self.slots.contains(&at),
            "a listed slot's entry is not loose"
        );
        let has_room = self.slots.len() < MOST;
        if has_room {
            self.slots.push(at);
        }
        has_room
    }

    /// Removes the slots of a session that has ended.
    pub(super) fn forget(&mut self, range: SlotRange) {
        self.slots.retain(|at| !range.contains(*at));
    }

    /// The listed slots.
    pub(super) fn iter(&self) -> impl Iterator<Item = SlotIdx> {
        self.slots.iter().copied()
    }
}

#[cfg(test)]
mod tests;
