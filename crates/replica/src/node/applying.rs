//! Applies committed entries to the items.
//!
//! A leader applies them at once, because it answers clients with the result. A follower first
//! answers its leader. It applies the entries that one run finds committed at the end of the next
//! run, or earlier if there is no other work. Invariant: entries are applied in log order, so a new
//! leader first applies the entries that it left as a follower. The log keeps each entry until it
//! is applied, so an entry is read where it lies. Called by `node` and the node's owner.

use raft::eraftpb::EntryType;

use super::Node;
use super::output::Output;
use crate::machine::AHEAD;

impl<A> Node<A> {
    /// Takes the index of the last entry that is committed.
    pub(super) fn on_committed(&mut self, last: u64, out: &mut Output<A>) {
        self.committed.on_committed(last);
        if self.leads() {
            self.apply_to(last, out);
        }
    }

    /// Whether committed entries are left to apply.
    pub(super) const fn has_left(&self) -> bool {
        self.machine.applied() < self.committed.last()
    }

    /// Applies the entries that were left by an earlier run.
    pub(super) fn apply_earlier(&mut self, out: &mut Output<A>) {
        let last = self.committed.earlier();
        if self.machine.applied() < last {
            self.apply_to(last, out);
            self.note_applied();
        }
    }

    /// Applies all entries that are left, between two runs.
    pub(crate) fn apply_left(&mut self, out: &mut Output<A>) {
        self.committed.on_run();
        self.apply_earlier(out);
    }

    fn apply_to(&mut self, last: u64, out: &mut Output<A>) {
        let mut next = self.machine.applied() + 1;
        while next <= last {
            let end = last.min(next + AHEAD as u64 - 1);
            // An entry that is alone could not wait for its item any earlier.
            if end > next {
                let entries = self.raft.store().range(next, end);
                self.machine.look_ahead(entries.map(|it| &it.data[..]));
            }
            for index in next..=end {
                self.apply(index, out);
            }
            next = end + 1;
        }
    }

    fn apply(&mut self, index: u64, out: &mut Output<A>) {
        let entry = self.raft.store().entry(index);
        let entry = entry.expect("the log has the entries that are not applied");
        let answer = match entry.entry_type {
            EntryType::EntryConfChangeV2 => {
                let entry = entry.clone();
                self.apply_change(&entry);
                // The items only take the index of a change of members.
                self.machine.apply(index, &[])
            }
            _ => self.machine.apply(index, &entry.data),
        };
        let answer =
            answer.unwrap_or_else(|_| panic!("entry {index} is of another version of dunlin"));
        self.waiting.on_applied(index, answer, out);
    }
}
