//! News of Raft: entries, promises and messages, and the place up to which it has committed.
//!
//! `RawNode` would hand these out as a `Ready`, with a copy of every new entry, and another one,
//! without its bytes, of every committed entry. These copies and their release were a tenth of a
//! put's instructions. Here the log takes the entries over from Raft, and committed entries are
//! read where they lie (`applying.rs`). The steps and their order are those of `RawNode`, without
//! its account of uncommitted and committed bytes, for which `node` sets no limits. Called by
//! `node` and `persist`.

use raft::eraftpb::Message;
use raft::{Raft, StateRole};

use super::journal::{Kept, promise_of};
use crate::log::{Log, Promises};

/// News that do not stay in Raft until the log takes them, as the entries do.
pub(super) struct News {
    pub(super) messages: Vec<Message>,
    /// The messages are those of a leader, which need not wait for its own entries.
    pub(super) are_leaders: bool,
    /// Changed promises.
    pub(super) promises: Option<Promises>,
    /// Term or vote has changed.
    pub(super) has_promised: bool,
}

impl News {
    /// Takes the news.
    pub(super) fn take(raft: &mut Raft<Log>) -> Self {
        let before = raft.store().promises();
        let has_promised = (raft.term, raft.vote) != promise_of(before);
        let has_changed = has_promised || raft.raft_log.committed != before.commit;
        Self {
            // Raft keeps the memory for its next messages if there are none now.
            messages: match raft.msgs.is_empty() {
                true => Vec::new(),
                false => std::mem::take(&mut raft.msgs),
            },
            are_leaders: raft.state == StateRole::Leader,
            promises: has_changed.then(|| (raft.term, raft.vote, raft.raft_log.committed)),
            has_promised,
        }
    }
}

/// Whether there are news, after the committed entries up to `since` were handed out.
#[inline]
pub(super) fn has_news(raft: &Raft<Log>, since: u64) -> bool {
    let (log, promises) = (&raft.raft_log, raft.store().promises());
    !raft.msgs.is_empty()
        || !log.unstable.entries.is_empty()
        || log.committed != promises.commit
        || (raft.term, raft.vote) != promise_of(promises)
        || !raft.read_states.is_empty()
        || log.unstable.snapshot.is_some()
        || log.has_next_entries_since(since)
}

/// The last committed entry, if it comes after `since`. The node must have saved it itself, too.
pub(super) fn committed_since(raft: &Raft<Log>, since: u64) -> Option<u64> {
    let log = &raft.raft_log;
    let is_later = log.has_next_entries_since(since);
    is_later.then(|| log.committed.min(log.persisted))
}

/// Moves the entries into the log in memory, which also gets the promises.
pub(super) fn store(raft: &mut Raft<Log>, promises: Option<Promises>) -> Kept {
    let log = &mut raft.raft_log;
    if let Some(promises) = promises {
        log.store.promise(promises);
    }
    let snapshot = log.unstable.snapshot.take();
    let snapshot = snapshot.map(|it| it.get_metadata().index);
    let unstable = &mut log.unstable;
    let last = unstable.entries.last().map(|it| (it.index, it.term));
    if let Some((index, _)) = last {
        log.store.append(&mut unstable.entries);
        // As `Unstable::stable_entries` does.
        unstable.offset = index + 1;
        unstable.entries_size = 0;
    }
    Kept { snapshot, last }
}

/// Tells Raft what is saved.
pub(super) fn confirm(raft: &mut Raft<Log>, kept: Kept) {
    if let Some(index) = kept.snapshot {
        raft.on_persist_snap(index);
    }
    if let Some((index, term)) = kept.last {
        raft.on_persist_entries(index, term);
    }
}
