//! How far Raft has handed out committed entries. Called by `node` and `applying`.

/// The last entries that are known to be committed.
#[derive(Debug)]
pub(super) struct Committed {
    last: u64,
    /// The last one that an earlier run found.
    earlier: u64,
}

impl Committed {
    /// All entries up to this one are applied already.
    pub(super) const fn from(applied: u64) -> Self {
        Self {
            last: applied,
            earlier: applied,
        }
    }

    /// Begins a run.
    pub(super) const fn on_run(&mut self) {
        self.earlier = self.last;
    }

    /// Takes the index of the last entry.
    pub(super) const fn on_committed(&mut self, last: u64) {
        self.last = last;
    }

    pub(super) const fn last(&self) -> u64 {
        self.last
    }

    pub(super) const fn earlier(&self) -> u64 {
        self.earlier
    }
}
