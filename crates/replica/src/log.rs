//! The log of a replica and its promises: entries, term, vote, members.
//!
//! Invariant: entries have consecutive indices after `base`, and `bytes` is their size. The log is
//! in memory; a write is done when its method returns. With a disk, this is the part of the disk's
//! log that Raft reads, and the last entries may not have reached the disk yet (`node/journal.rs`).
//! Entries up to `base` were dropped; a follower that lacks them gets a snapshot, which the node
//! makes when Raft first asks for one. Called by `node`, and through [`Storage`] by Raft.

use std::cell::Cell;
use std::collections::VecDeque;

use raft::eraftpb::{ConfState, Entry, HardState, Snapshot, SnapshotMetadata};
use raft::{GetEntriesContext, RaftState, Storage, StorageError};

use crate::wire::change::bytes_of;
use crate::wire::{Member, Roster};
use crate::work::Remains;

/// Bytes that an entry counts towards limits in addition to its data.
const ENTRY: u64 = 32;

/// Index and term of the entry before the first.
pub(crate) type IndexAndTerm = (u64, u64);

/// Term, vote and committed index.
pub(crate) type Promises = (u64, u64, u64);

/// The log of a new cluster begins after this place, at which the first members are agreed.
const FIRST_BASE: IndexAndTerm = (1, 1);

/// The log, and the promises that its replica has made.
#[derive(Clone, Debug)]
pub struct Log {
    promises: HardState,
    /// The members as of the last applied entry, and how often they were replaced.
    roster: Roster,
    roster_changes: u64,
    base: IndexAndTerm,
    entries: VecDeque<Entry>,
    bytes: u64,
    /// Raft gets at most this number of bytes of entries for a message, unless the first entry is
    /// longer.
    message_bytes: u64,
    /// Entries from before the last snapshot of a leader, which are still to be freed.
    stale: VecDeque<Entry>,
    /// The snapshot for followers; `None` until Raft has asked for one.
    snapshot: Option<Snapshot>,
    /// Snapshots that are no longer offered to followers.
    dropped: Vec<Snapshot>,
    /// Raft has asked for a snapshot that this log does not have.
    is_asked: Cell<bool>,
}

impl Log {
    /// The log of a new cluster, or of a process that joins a cluster and starts from a snapshot.
    #[must_use]
    pub fn new(roster: Roster) -> Self {
        let base = first_base(&roster);
        let (index, term) = base;
        Self {
            promises: HardState {
                term,
                commit: index,
                ..HardState::default()
            },
            roster,
            roster_changes: 0,
            base,
            entries: VecDeque::new(),
            bytes: 0,
            message_bytes: u64::MAX,
            stale: VecDeque::new(),
            snapshot: None,
            dropped: Vec::new(),
            is_asked: Cell::new(false),
        }
    }

    /// Makes the log from the remains that a disk has kept.
    pub(crate) fn resume(roster: Roster, remains: Remains) -> Self {
        Self {
            promises: remains.promises,
            roster,
            roster_changes: 0,
            base: remains.base,
            bytes: remains.entries.iter().map(size_of).sum(),
            entries: remains.entries.into(),
            message_bytes: u64::MAX,
            stale: VecDeque::new(),
            snapshot: None,
            dropped: Vec::new(),
            is_asked: Cell::new(false),
        }
    }

    /// Sets the most bytes of entries that Raft gets for a message.
    pub(crate) const fn limit_messages(&mut self, bytes: u64) {
        self.message_bytes = bytes;
    }

    /// The index before the first entry.
    #[must_use]
    pub const fn base(&self) -> u64 {
        self.base.0
    }

    /// The index before the first entry, and its term.
    pub(crate) const fn place_of_base(&self) -> IndexAndTerm {
        self.base
    }

    /// The index of the last entry.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.base.0 + self.entries.len() as u64
    }

    /// Whether its replica has not taken part in any term yet: it has no entry and has promised
    /// nothing.
    pub(crate) fn is_new(&self) -> bool {
        self.last() <= FIRST_BASE.0 && self.promises.term <= FIRST_BASE.1
    }

    /// Term and bytes of the entry at an index, if the log has it.
    #[must_use]
    pub fn at(&self, index: u64) -> Option<(u64, &[u8])> {
        let entry = self.entry(index)?;
        Some((entry.term, bytes_of(entry)))
    }

    /// The entry at an index, if the log has it.
    pub(crate) fn entry(&self, index: u64) -> Option<&Entry> {
        self.entries.get(self.place(index)?)
    }

    /// The entries from an index to another one, of those that the log has.
    pub(crate) fn range(&self, first: u64, last: u64) -> impl Iterator<Item = &Entry> {
        let place = self.place(first).unwrap_or(usize::MAX);
        let count = usize::try_from(last + 1 - first).unwrap_or(usize::MAX);
        self.entries.iter().skip(place).take(count)
    }

    /// The last index that the replica knew to be committed.
    #[must_use]
    pub fn committed(&self) -> u64 {
        self.promises.commit
    }

    /// Term, vote and committed index.
    pub(crate) const fn promises(&self) -> &HardState {
        &self.promises
    }

    fn place(&self, index: u64) -> Option<usize> {
        let place = index.checked_sub(self.base.0 + 1)?;
        usize::try_from(place).ok()
    }

    /// Moves entries to the end of the log. They replace existing entries from the first new index
    /// on.
    pub(crate) fn append(&mut self, entries: &mut Vec<Entry>) {
        let Some(first) = entries.first() else {
            return;
        };
        let place = self.place(first.index);
        let place = place.expect("no entry before the base is written again");
        assert!(place <= self.entries.len(), "a log has no gap");
        while place < self.entries.len()
            && let Some(replaced) = self.entries.pop_back()
        {
            self.bytes -= size_of(&replaced);
        }
        // With one put at a time, entries come one by one. To move one needs no iterator.
        if entries.len() == 1
            && let Some(entry) = entries.pop()
        {
            self.bytes += size_of(&entry);
            return self.entries.push_back(entry);
        }
        self.bytes += entries.iter().map(size_of).sum::<u64>();
        self.entries.extend(entries.drain(..));
    }

    /// Writes term, vote and committed index.
    pub(crate) fn promise(&mut self, (term, vote, commit): Promises) {
        let promises = &mut self.promises;
        (promises.term, promises.vote, promises.commit) = (term, vote, commit);
    }

    /// Drops the entries up to an index, which are applied. Also drops a snapshot that is older
    /// than the log, because no follower could continue from it.
    pub(crate) fn compact(&mut self, index: u64) {
        let (Some(place), Ok(term)) = (self.place(index), self.term(index)) else {
            return;
        };
        let dropped: u64 = self.entries.drain(..=place).map(|it| size_of(&it)).sum();
        self.bytes -= dropped;
        self.base = (index, term);
        let is_old = |it: &Snapshot| it.get_metadata().index < index;
        if self.snapshot.as_ref().is_some_and(is_old) {
            self.drop_snapshot();
        }
    }

    /// Whether the log has more than this many applied entries, or more than this many bytes.
    pub(crate) fn exceeds(&self, applied: u64, entries: u64, bytes: u64) -> bool {
        applied.saturating_sub(self.base.0) > entries || self.bytes > bytes
    }

    /// The index up to which entries should be dropped, so that at most this many applied entries
    /// and this many bytes are left; at most `most`.
    pub(crate) fn surplus(&self, applied: u64, entries: u64, bytes: u64, most: u64) -> u64 {
        let (mut end, mut left) = (self.base.0, self.bytes);
        let most = most.min(applied);
        for entry in &self.entries {
            let is_surplus = applied - end > entries || left > bytes;
            if entry.index > most || !is_surplus {
                break;
            }
            left -= size_of(entry);
            end = entry.index;
        }
        end
    }

    /// The index of the snapshot for followers, if there is one.
    pub(crate) fn offered(&self) -> Option<u64> {
        let snapshot = self.snapshot.as_ref()?;
        Some(snapshot.get_metadata().index)
    }

    /// Whether Raft has asked for a snapshot since the last call, and got none.
    pub(crate) fn take_question(&self) -> bool {
        self.is_asked.take()
    }

    /// Keeps the image of the items at an index and a term, for Raft.
    pub(crate) fn offer(&mut self, place: IndexAndTerm, image: Vec<u8>) {
        let (index, term) = place;
        self.drop_snapshot();
        self.snapshot = Some(Self::snapshot_of(&self.roster, index, term, image));
    }

    fn drop_snapshot(&mut self) {
        self.dropped.extend(self.snapshot.take());
    }

    /// Moves out a snapshot that is no longer offered to followers.
    pub(crate) fn take_dropped(&mut self) -> Option<Snapshot> {
        self.dropped.pop()
    }

    /// The members.
    pub(crate) const fn roster(&self) -> &Roster {
        &self.roster
    }

    /// How often the members were replaced since this log was made.
    pub(crate) const fn roster_changes(&self) -> u64 {
        self.roster_changes
    }

    /// Takes the members after a change. Drops the snapshot: it has the previous members, so a new
    /// member could not use it.
    pub(crate) fn on_change(&mut self, joined: Option<Member>, conf: &ConfState) {
        if let Some(member) = joined {
            self.roster.add(member);
        }
        self.roster.on_change(conf);
        self.roster_changes += 1;
        self.drop_snapshot();
    }

    /// A snapshot of a cluster with these members.
    pub(crate) fn snapshot_of(roster: &Roster, index: u64, term: u64, image: Vec<u8>) -> Snapshot {
        let metadata = SnapshotMetadata {
            conf_state: Some(roster.conf()).into(),
            index,
            term,
            ..SnapshotMetadata::default()
        };
        Snapshot {
            data: image.into(),
            metadata: Some(metadata).into(),
            ..Snapshot::default()
        }
    }

    /// Starts over after a leader's snapshot.
    pub(crate) fn restore(&mut self, snapshot: &Snapshot, roster: Roster) {
        self.roster = roster;
        self.roster_changes += 1;
        let metadata = snapshot.get_metadata();
        self.base = (metadata.index, metadata.term);
        self.stale.append(&mut self.entries);
        self.bytes = 0;
        self.promises.commit = self.promises.commit.max(metadata.index);
        self.drop_snapshot();
    }

    /// Whether entries from before a leader's snapshot are still to be freed.
    pub(crate) fn is_stale(&self) -> bool {
        !self.stale.is_empty()
    }

    /// Frees this number of stale entries.
    pub(crate) fn shed(&mut self, entries: usize) {
        self.stale
            .truncate(self.stale.len().saturating_sub(entries));
    }

    /// Plants the bug that the last entries do not survive a restart.
    #[cfg(feature = "mutants")]
    pub(crate) fn lose_tail(&mut self, entries: usize, applied: u64) {
        let left = self.entries.len().saturating_sub(entries);
        let least = self.place(applied).map_or(0, |place| place + 1);
        self.entries.truncate(left.max(least));
        self.bytes = self.entries.iter().map(size_of).sum();
        self.promises.commit = self.promises.commit.min(self.last());
    }
}

impl Storage for Log {
    fn initial_state(&self) -> raft::Result<RaftState> {
        Ok(RaftState::new(self.promises.clone(), self.roster.conf()))
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        _max_size: impl Into<Option<u64>>,
        context: GetEntriesContext,
    ) -> raft::Result<Vec<Entry>> {
        let (Some(low), Some(high)) = (self.place(low), self.place(high)) else {
            return Err(StorageError::Compacted.into());
        };
        if high > self.entries.len() {
            return Err(StorageError::Unavailable.into());
        }
        let entries = self.entries.range(low..high);
        // Raft allows an asynchronous answer only if it wants entries to send. Of any other entry,
        // it looks only at index, term and kind: the node applies entries, and reads this log.
        if !context.can_async() {
            return Ok(entries.map(without_data).collect());
        }
        let mut size = 0;
        let fits = |entry: &&Entry| {
            let is_first = size == 0;
            size += size_of(entry);
            is_first || size <= self.message_bytes
        };
        Ok(entries.take_while(fits).cloned().collect())
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        if index == self.base.0 {
            return Ok(self.base.1);
        }
        match self.at(index) {
            Some((term, _)) => Ok(term),
            None if index < self.base.0 => Err(StorageError::Compacted.into()),
            None => Err(StorageError::Unavailable.into()),
        }
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(self.base.0 + 1)
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.last())
    }

    fn snapshot(&self, request_index: u64, _to: u64) -> raft::Result<Snapshot> {
        match &self.snapshot {
            Some(snapshot) if snapshot.get_metadata().index >= request_index => {
                Ok(snapshot.clone())
            }
            _ => {
                self.is_asked.set(true);
                Err(StorageError::SnapshotTemporarilyUnavailable.into())
            }
        }
    }
}

/// The place before the first entry. A process that joins does not know which members vote, so it
/// needs a snapshot. Its log therefore begins before the cluster's first place: no leader has the
/// entries in between, so the leader sends a snapshot.
pub(crate) fn first_base(roster: &Roster) -> IndexAndTerm {
    match roster.has_voters() {
        true => FIRST_BASE,
        false => (0, 0),
    }
}

/// The fields of an entry that Raft looks at. Even a cheap clone of its data would change a
/// reference count.
fn without_data(entry: &Entry) -> Entry {
    Entry {
        entry_type: entry.entry_type,
        term: entry.term,
        index: entry.index,
        ..Entry::default()
    }
}

/// The size with which an entry counts towards limits.
fn size_of(entry: &Entry) -> u64 {
    ENTRY + entry.data.len() as u64
}

#[cfg(test)]
mod tests;
