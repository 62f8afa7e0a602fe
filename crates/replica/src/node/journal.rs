//! Writes that the disk has not finished, and messages that wait for them (Raft dissertation
//! §10.2.1).
//!
//! Invariant: no message leaves that speaks of an entry, a vote or a term that the disk may lose.
//! Messages wait for the last write that was under way when Raft made them, with two exceptions.
//! A leader sends entries and heartbeats while its own disk is busy, because followers answer for
//! themselves. A follower answers heartbeats, which speak of its term alone. Both need the term on
//! the disk. Called by `node`.

use std::collections::VecDeque;

use raft::eraftpb::{Message, MessageType};

use crate::work::Saved;

#[derive(Debug)]
pub(super) struct Journal {
    /// Numbers of writes that are not saved, and the terms that they promise.
    under_way: VecDeque<(u64, u64)>,
    /// The promised term on the disk.
    term: u64,
    /// Messages, each with the number of the write that it waits for.
    held: VecDeque<(u64, Message)>,
    /// Messages that need to wait no longer.
    free: Vec<Message>,
    /// Checkpoints that the disk was asked for, and those that it has done.
    asked: u64,
    done: u64,
    is_full: bool,
}

impl Journal {
    /// A journal of a disk that has this term.
    pub(super) const fn new(term: u64) -> Self {
        Self {
            under_way: VecDeque::new(),
            term,
            held: VecDeque::new(),
            free: Vec::new(),
            asked: 0,
            done: 0,
            is_full: false,
        }
    }

    /// Notes a write that promises a term.
    pub(super) fn on_write(&mut self, number: u64, term: u64) {
        self.under_way.push_back((number, term));
    }

    /// Notes that the disk was asked for a checkpoint.
    pub(super) fn on_checkpoint(&mut self) {
        self.asked += 1;
    }

    /// Takes the disk's progress.
    pub(super) fn on_saved(&mut self, saved: Saved) {
        self.is_full = saved.is_full;
        self.done = saved.checkpoints;
        while let Some((_, term)) = self.under_way.pop_front_if(|it| it.0 <= saved.number) {
            self.term = term;
        }
        while let Some((_, message)) = self.held.pop_front_if(|it| it.0 <= saved.number) {
            self.free.push(message);
        }
    }

    /// Takes messages that Raft has made in a term, and lets those go that need not wait.
    pub(super) fn send(&mut self, messages: Vec<Message>, leads: bool, term: u64) {
        let Some((number, _)) = self.under_way.back() else {
            return self.free.extend(messages);
        };
        let has_term = self.term == term;
        for message in messages {
            let is_free = leads || message.msg_type == MessageType::MsgHeartbeatResponse;
            match is_free && has_term {
                true => self.free.push(message),
                false => self.held.push_back((*number, message)),
            }
        }
    }

    /// Moves out the messages that need not wait.
    pub(super) fn take_free(&mut self, out: &mut Vec<Message>) {
        out.append(&mut self.free);
    }

    /// Whether all writes are saved.
    pub(super) fn is_idle(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Whether the disk has no checkpoint under way.
    pub(super) const fn may_checkpoint(&self) -> bool {
        self.asked == self.done
    }

    /// Whether the disk is full.
    pub(super) const fn is_full(&self) -> bool {
        self.is_full
    }
}

#[cfg(test)]
mod tests;
