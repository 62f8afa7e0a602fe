//! The length of the log: which entries leave it, and when.
//!
//! Applied entries leave when the log has more than twice `kept_entries` of them, or twice
//! `kept_bytes`. Entries that a follower still needs to catch up stay longer, within another limit:
//! otherwise a leader under load would drop the entries after a snapshot while the snapshot is on
//! its way, and its follower would need one snapshot after the other.

use raft::ProgressState;

use super::journal::Journal;
use super::{Node, Output, items};
use crate::work::{Items, Work};

/// How many times the entries and bytes that a log keeps it may have, and while a follower catches
/// up.
const SLACK: u64 = 2;
pub(super) const SLACK_FOR_FOLLOWER: u64 = 16;

impl<A> Node<A> {
    /// Drops the entries that the items contain and no follower needs, in the next run.
    pub fn shorten(&mut self) {
        self.is_to_shorten = true;
    }

    /// Makes the snapshot for which Raft has asked, and drops entries that no follower needs soon.
    pub(super) fn tend_log(&mut self, out: &mut Output<A>) {
        let applied = self.machine.applied();
        if self.log().take_question() {
            let image = self.snapshot();
            self.raft.mut_store().offer(applied, image);
        }
        let end = match std::mem::take(&mut self.is_to_shorten) {
            true => applied
                .min(self.needed().unwrap_or(u64::MAX))
                .max(self.log().base()),
            false => self.surplus(applied),
        };
        if end == self.log().base() {
            return;
        }
        self.checkpoint(end, out);
        self.raft.mut_store().compact(end);
    }

    /// The index up to which entries are to be dropped now.
    fn surplus(&self, applied: u64) -> u64 {
        let (log, options) = (self.log(), &self.options);
        let (entries, bytes) = (options.kept_entries, options.kept_bytes);
        let exceeds = |slack: u64| {
            let (entries, bytes) = (entries.saturating_mul(slack), bytes.saturating_mul(slack));
            log.exceeds(applied, entries, bytes)
        };
        if !exceeds(SLACK) {
            return log.base();
        }
        if exceeds(SLACK_FOR_FOLLOWER) {
            return log.surplus(applied, entries, bytes, u64::MAX);
        }
        let needed = self.needed().unwrap_or(u64::MAX);
        let has_room = !log.exceeds(applied, u64::MAX, bytes.saturating_mul(SLACK));
        match has_room && needed < log.base() + entries / 2 {
            // Entries are not dropped one by one while a follower catches up.
            true => log.base(),
            false => log.surplus(applied, entries, bytes, needed),
        }
    }

    /// The place after which some follower that answers needs the entries: its last one, or that of
    /// the snapshot that it gets. Without the entries after its snapshot it would need another.
    fn needed(&self) -> Option<u64> {
        if !self.leads() {
            return None;
        }
        let (own, log) = (self.raft.raft.id, self.log());
        let others = self.raft.raft.prs().iter().filter(|it| *it.0 != own);
        let answering = others.filter(|(_, other)| other.recent_active);
        let places = answering.filter_map(|(_, other)| match other.state {
            ProgressState::Snapshot => Some(other.pending_snapshot),
            _ if other.matched >= log.base() => Some(other.matched),
            _ => log.offered(),
        });
        places.min()
    }

    /// The members, the items and the clients.
    fn snapshot(&self) -> Vec<u8> {
        items::join(self.roster(), &self.machine.to_image())
    }

    /// Has the disk save the items, so that its log can begin after an index. It gets no second
    /// image while it saves one; then its log is shortened the next time.
    fn checkpoint(&mut self, base: u64, out: &mut Output<A>) {
        if !self.journal.as_ref().is_some_and(Journal::may_checkpoint) {
            return;
        }
        let (image, Some((term, _))) = (self.snapshot(), self.raft.store().at(base)) else {
            return;
        };
        if let Some(journal) = &mut self.journal {
            journal.on_checkpoint();
        }
        out.work.push(Work::Checkpoint(Items {
            applied: self.machine.applied(),
            base: (base, term),
            image,
        }));
    }
}
