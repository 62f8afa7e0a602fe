//! The length of the log: which entries are dropped, and when.
//!
//! Applied entries are dropped when the log has more than twice `kept_entries` of them, or twice
//! `kept_bytes`. Entries that a follower still needs to catch up stay longer, up to another limit.
//! Otherwise a leader under load would drop the entries after a snapshot while the snapshot is in
//! flight, and the follower would need one snapshot after the other.

use raft::ProgressState;

use super::DROPPED;
use super::Node;
use super::dropping::Dropping;
use super::journal::Journal;
use super::output::Output;

/// How many times `kept_entries` and `kept_bytes` a log may have: usually, and while a follower
/// catches up.
const SLACK: u64 = 2;
pub(super) const SLACK_FOR_FOLLOWER: u64 = 16;

impl<A> Node<A> {
    /// Makes the next run drop the entries that the items contain and no follower needs.
    pub fn shorten(&mut self) {
        self.is_to_shorten = true;
    }

    /// Begins the snapshot that Raft has asked for, drops entries that no follower needs soon, and
    /// makes a slice of the image under way.
    pub(super) fn tend_log(&mut self, out: &mut Output<A>) {
        self.answer_question();
        self.drop_entries();
        self.go_on_drawing(out);
    }

    /// Drops the next entries. After the last of them, the disk's log can begin later, too.
    fn drop_entries(&mut self) {
        if self.dropping.is_none() {
            self.dropping = self.ordered().or_else(|| self.surplus());
        }
        let Some(dropping) = self.dropping else {
            return;
        };
        let (log, applied) = (self.log(), self.machine.applied());
        let slice = log.base() + DROPPED as u64;
        let most = dropping.most.min(slice);
        let end = log.surplus(applied, dropping.entries, dropping.bytes, most);
        if end > log.base() {
            self.raft.mut_store().compact(end);
        }
        let may_end = self.journal.is_none() || self.drawing.is_idle();
        if end < slice && may_end {
            self.dropping = None;
            if end > dropping.begun {
                self.checkpoint();
            }
        }
    }

    /// The bounds of the entries that an order wants dropped, if there is an order. It waits for
    /// the image under way, so that the disk can get the next one.
    fn ordered(&mut self) -> Option<Dropping> {
        if !self.is_to_shorten || !self.drawing.is_idle() {
            return None;
        }
        self.is_to_shorten = false;
        let applied = self.machine.applied();
        Some(Dropping {
            entries: 0,
            bytes: 0,
            most: self.needed().map_or(applied, |it| it.min(applied)),
            begun: self.log().base(),
        })
    }

    /// The bounds of the entries to drop because the log has too many.
    fn surplus(&self) -> Option<Dropping> {
        let (log, options, applied) = (self.log(), &self.options, self.machine.applied());
        let (entries, bytes) = (options.kept_entries, options.kept_bytes);
        let exceeds = |slack: u64| {
            let (entries, bytes) = (entries.saturating_mul(slack), bytes.saturating_mul(slack));
            log.exceeds(applied, entries, bytes)
        };
        if !exceeds(SLACK) {
            return None;
        }
        let all = |most: u64| Dropping {
            entries,
            bytes,
            most,
            begun: log.base(),
        };
        if exceeds(SLACK_FOR_FOLLOWER) {
            return Some(all(u64::MAX));
        }
        let needed = self.needed().unwrap_or(u64::MAX);
        let has_room = !log.exceeds(applied, u64::MAX, bytes.saturating_mul(SLACK));
        // While a follower catches up, entries are not dropped one by one.
        let is_few = has_room && needed < log.base() + entries / 2;
        (!is_few && needed > log.base()).then(|| all(needed))
    }

    /// The place after which some responsive follower needs the entries: the follower's last entry,
    /// or the place of the snapshot that it gets. If the entries after its snapshot were dropped,
    /// it would need another snapshot.
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
            _ => log.offered().or(self.drawing.index()),
        });
        places.min()
    }

    /// Makes the disk save the items, so that its log can begin where this one does. While an image
    /// is under way or being saved, the disk gets no second one; its log is then shortened the next
    /// time.
    fn checkpoint(&mut self) {
        let may_begin = self.journal.as_ref().is_some_and(Journal::may_checkpoint);
        if may_begin && self.drawing.is_idle() {
            self.draw_for_disk(self.log().place_of_base());
        }
    }
}
