//! Writes that the disk has not finished, and the messages that wait for them (Raft dissertation
//! §10.2.1).
//!
//! Invariant: a message that depends on an entry, a vote or a term does not leave while the disk
//! may lose it. Messages wait for the last write that was under way when Raft made them, with three
//! exceptions. A leader sends entries and heartbeats while its own disk is busy, because each
//! follower answers only for itself. A follower answers heartbeats, because the answer depends only
//! on its term. A node asks for pre-votes and answers them, because they promise nothing. In all
//! three cases the term must be on the disk. Called by `node`.

use std::collections::VecDeque;

use raft::eraftpb::{HardState, Message, MessageType};

use super::patience::Patience;
use crate::work::Saved;

/// Term and vote.
pub(super) type Promise = (u64, u64);

/// The part of a write that Raft must know to be saved.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Kept {
    /// The index of a leader's snapshot.
    pub(super) snapshot: Option<u64>,
    /// Index and term of the last entry.
    pub(super) last: Option<(u64, u64)>,
}

/// A write that is not saved yet.
#[derive(Debug)]
struct Write {
    number: u64,
    promise: Promise,
    kept: Kept,
    /// The node's tick count when the write began to wait, or when the disk had room again.
    begin: usize,
}

#[derive(Debug)]
pub(super) struct Journal {
    /// The number of the last write.
    number: u64,
    under_way: VecDeque<Write>,
    /// The last promise that is on the disk.
    promise: Promise,
    /// The number of the node's ticks so far.
    ticks: usize,
    patience: Patience,
    /// Messages, each with the number of the write for which it waits.
    held: VecDeque<(u64, Message)>,
    /// Messages that can leave.
    free: Vec<Message>,
    /// Checkpoints that the disk was asked for, and those that it has done.
    asked: u64,
    done: u64,
    is_full: bool,
}

impl Journal {
    /// The journal of a disk that has this promise.
    pub(super) const fn new(promise: Promise) -> Self {
        Self {
            number: 0,
            under_way: VecDeque::new(),
            promise,
            ticks: 0,
            patience: Patience::new(promise.0),
            held: VecDeque::new(),
            free: Vec::new(),
            asked: 0,
            done: 0,
            is_full: false,
        }
    }

    /// Takes a tick. True: the election clock is stopped, unless the node leads.
    pub(super) fn on_tick(&mut self) -> bool {
        self.ticks += 1;
        self.patience.on_tick(self.is_promised())
    }

    /// Takes the term and its leader; 0 if there is none.
    pub(super) fn on_term(&mut self, term: u64, leader: u64) {
        self.patience.on_term(term, leader);
    }

    /// Notes the candidate to which this node has granted a pre-vote.
    pub(super) const fn on_granted(&mut self, candidate: u64) {
        self.patience.on_granted(candidate);
    }

    /// Whether a node that does not lead waits for a candidate other than this one.
    pub(super) fn waits_for_other(&self, candidate: u64) -> bool {
        self.patience.waits_for_other(candidate, self.is_promised())
    }

    /// Whether the last term and the last vote are on the disk.
    fn is_promised(&self) -> bool {
        let last = self.under_way.back();
        last.is_none_or(|write| write.promise == self.promise)
    }

    /// Notes a write that makes a promise, perhaps the same as the previous write. Returns its
    /// number.
    pub(super) fn on_write(&mut self, promise: Promise, kept: Kept) -> u64 {
        self.number += 1;
        self.under_way.push_back(Write {
            number: self.number,
            promise,
            kept,
            begin: self.ticks,
        });
        self.number
    }

    /// Notes that the disk was asked for a checkpoint.
    pub(super) fn on_checkpoint(&mut self) {
        self.asked += 1;
    }

    /// Takes the disk's progress. Returns the last entry of all writes that are now saved; after a
    /// snapshot, only those of later entries count.
    pub(super) fn on_saved(&mut self, saved: Saved) -> Kept {
        let had_room = !self.is_full;
        self.is_full = saved.is_full;
        self.done = saved.checkpoints;
        let mut kept = Kept::default();
        while let Some(write) = self.under_way.pop_front_if(|it| it.number <= saved.number) {
            self.promise = write.promise;
            match write.kept.snapshot {
                Some(_) => kept = write.kept,
                None => kept.last = write.kept.last.or(kept.last),
            }
            if had_room {
                self.patience.on_saved(self.ticks - write.begin);
            }
        }
        if !had_room {
            // The remaining writes have waited for room as well. Their time begins now.
            for write in &mut self.under_way {
                write.begin = self.ticks;
            }
        }
        while let Some((_, message)) = self.held.pop_front_if(|it| it.0 <= saved.number) {
            self.free.push(message);
        }
        kept
    }

    /// Takes messages that Raft has made in a term, and releases those that need not wait.
    pub(super) fn send(&mut self, messages: Vec<Message>, leads: bool, term: u64) {
        let Some(last) = self.under_way.back() else {
            return self.free.extend(messages);
        };
        let has_term = self.promise.0 == term;
        for message in messages {
            match has_term && (leads || promises_nothing(&message)) {
                true => self.free.push(message),
                false => self.held.push_back((last.number, message)),
            }
        }
    }

    /// Makes all messages wait for the disk, for a planted bug.
    #[cfg(feature = "mutants")]
    pub(super) fn hold(&mut self, messages: Vec<Message>) {
        let number = self.under_way.back().map_or(0, |write| write.number);
        self.held
            .extend(messages.into_iter().map(|it| (number, it)));
    }

    /// Moves out the messages that can leave.
    pub(super) fn take_free(&mut self, out: &mut Vec<Message>) {
        out.append(&mut self.free);
    }

    /// Whether all writes are saved.
    pub(super) fn is_idle(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Whether the disk can take a checkpoint, because none is under way.
    pub(super) const fn may_checkpoint(&self) -> bool {
        self.asked == self.done
    }

    /// Whether the disk is full.
    pub(super) const fn is_full(&self) -> bool {
        self.is_full
    }
}

/// The promise in a state that Raft wants saved.
pub(super) const fn promise_of(state: &HardState) -> Promise {
    (state.term, state.vote)
}

/// Whether a message makes no promise on which members rely, except the term of its sender.
const fn promises_nothing(message: &Message) -> bool {
    matches!(
        message.msg_type,
        MessageType::MsgHeartbeatResponse
            | MessageType::MsgRequestPreVote
            | MessageType::MsgRequestPreVoteResponse
    )
}

#[cfg(test)]
mod tests;
