//! Applies committed entries to the items.
//!
//! A leader applies them at once, because it answers clients with the result. A follower first
//! answers its leader. It applies the entries that one run finds committed at the end of the next
//! run, or earlier if there is no other work. Invariant: entries are applied in log order, so a new
//! leader first applies the entries that it left as a follower. Called by `node` and the node's
//! owner.

use raft::eraftpb::{Entry, EntryType};

use super::Node;
use super::output::Output;

impl<A> Node<A> {
    /// Takes entries that are committed.
    pub(super) fn on_committed(&mut self, entries: Vec<Entry>, out: &mut Output<A>) {
        match self.leads() {
            true => {
                if !self.backlog.is_empty() {
                    let left = self.backlog.take();
                    self.apply(&left, out);
                }
                self.apply(&entries, out);
            }
            false => self.backlog.add(entries),
        }
    }

    /// Applies the entries that were left by an earlier run.
    pub(super) fn apply_earlier(&mut self, out: &mut Output<A>) {
        if self.backlog.has_earlier() {
            let earlier = self.backlog.take_earlier();
            self.apply(&earlier, out);
            self.note_applied();
        }
    }

    /// Applies all entries that are left, between two runs.
    pub(crate) fn apply_left(&mut self, out: &mut Output<A>) {
        self.backlog.on_run();
        self.apply_earlier(out);
    }

    fn apply(&mut self, entries: &[Entry], out: &mut Output<A>) {
        for entry in entries {
            let is_change = entry.entry_type == EntryType::EntryConfChangeV2;
            if is_change {
                self.apply_change(entry);
            }
            // A change of members has no effect on the items except its index.
            let bytes = if is_change { &[][..] } else { &entry.data };
            let answer = self.machine.apply(entry.index, bytes);
            let answer = answer.unwrap_or_else(|_| {
                panic!("entry {} is of another version of dunlin", entry.index)
            });
            self.waiting.on_applied(entry.index, answer, out);
        }
    }
}
