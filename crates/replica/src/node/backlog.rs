//! Committed entries that a follower has left for its next run. Invariant: they are in log order,
//! and the first `earlier` of them were there before the present run. Called by `node`, `applying`
//! and `restoring`.

use raft::eraftpb::Entry;

/// Committed entries that a follower has not applied yet.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    entries: Vec<Entry>,
    /// The number of leading entries that were there before this run.
    earlier: usize,
}

impl Backlog {
    pub(super) const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Begins a run.
    pub(super) const fn on_run(&mut self) {
        self.earlier = self.entries.len();
    }

    pub(super) fn add(&mut self, entries: Vec<Entry>) {
        match self.entries.is_empty() {
            true => self.entries = entries,
            false => self.entries.extend(entries),
        }
    }

    /// Whether any entries were there before this run.
    pub(super) const fn has_earlier(&self) -> bool {
        self.earlier > 0
    }

    /// Moves out the entries that were there before this run.
    pub(super) fn take_earlier(&mut self) -> Vec<Entry> {
        match std::mem::take(&mut self.earlier) {
            0 => Vec::new(),
            count if count == self.entries.len() => self.take(),
            count => self.entries.drain(..count).collect(),
        }
    }

    /// Moves all entries out.
    pub(super) fn take(&mut self) -> Vec<Entry> {
        std::mem::take(self).entries
    }
}
