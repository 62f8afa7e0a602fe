//! Committed entries on their way into the items.
//!
//! A leader applies them at once, because it answers clients with the outcome. A follower answers
//! its leader first. The entries that one run finds committed are applied at the end of the next
//! one, or before that, when there is no other work. Invariant: entries are applied in the order of
//! the log, so a node that has become the leader first applies those that it has left as a
//! follower. Called by `node`, `persist` and the node's owner.

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

    /// Applies the entries that this node has left since the run before.
    pub(super) fn apply_earlier(&mut self, out: &mut Output<A>) {
        if self.backlog.has_earlier() {
            let earlier = self.backlog.take_earlier();
            self.apply(&earlier, out);
            self.note_applied();
        }
    }

    /// Applies all entries that this node has left, between two runs.
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
            // The items have nothing of a change of the members but its index.
            let bytes = if is_change { &[][..] } else { &entry.data };
            let answer = self.machine.apply(entry.index, bytes);
            let answer = answer.unwrap_or_else(|_| {
                panic!("entry {} is of another version of dunlin", entry.index)
            });
            self.waiting.on_applied(entry.index, answer, out);
        }
    }
}
