//! Writes entries and promises into the log, both the one in memory and the one on the disk.

use raft::Ready;
use raft::eraftpb::{Entry, Message};

use super::Node;
use super::journal::{Journal, promise_of};
use super::output::Output;
use crate::work::{Items, LogWrite, Saved, Work};

impl<A> Node<A> {
    /// Adds a disk that has all of the node's log. The owner passes the [work](Output::work) to the
    /// disk, and the disk's progress to [`Self::on_saved`].
    #[must_use]
    pub fn with_disk(mut self) -> Self {
        self.journal = Some(Journal::new(promise_of(self.log().promises())));
        self
    }

    /// Takes the progress of the disk.
    pub fn on_saved(&mut self, saved: Saved) {
        if let Some(journal) = &mut self.journal {
            journal.on_saved(saved);
            self.raft.on_persist_ready(saved.number);
            self.note_applied();
        }
    }

    /// Tells Raft up to which entry the items are applied, unless the disk does not have that entry
    /// yet.
    pub(super) fn note_applied(&mut self) {
        let applied = self.applied();
        if applied <= self.raft.raft.raft_log.persisted {
            self.raft.advance_apply_to(applied);
        }
    }

    /// Whether the disk is still writing the items of a leader's snapshot. Raft does not have the
    /// entries before the snapshot. Before an election it would look for them, and end the process.
    pub(super) fn is_restoring(&self) -> bool {
        self.raft.raft.raft_log.applied < self.log().base()
    }

    /// Whether the disk is full. Until it has room, writes are refused.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.journal.as_ref().is_some_and(Journal::is_full)
    }

    /// Writes entries and promises into the log in memory. Then the messages that depend on them
    /// leave.
    pub(super) fn keep(&mut self, mut ready: Ready, out: &mut Output<A>) {
        add(&mut out.messages, ready.take_messages());
        let entries = self.take_entries(&mut ready, out);
        self.raft.mut_store().append(entries);
        add(&mut out.messages, ready.take_persisted_messages());
        let number = ready.number();
        // Not `advance_append`, which looks for more work at once. There is none, unless this node
        // is the only voter; then the next run finds it.
        self.raft.advance_append_async(ready);
        self.raft.on_persist_ready(number);
    }

    /// Takes back the memory of messages that have been sent, so that Raft can reuse it.
    pub(crate) fn on_sent(&mut self, mut messages: Vec<Message>) {
        messages.clear();
        let raft = &mut self.raft.raft;
        if raft.msgs.is_empty() && raft.msgs.capacity() < messages.capacity() {
            raft.msgs = messages;
        }
    }

    /// Hands entries and promises to the disk. Messages that depend on them wait.
    pub(super) fn save(&mut self, mut ready: Ready, items: Option<Items>, out: &mut Output<A>) {
        let (number, term) = (ready.number(), self.term());
        let must_write = ready.must_sync();
        let entries = self.take_entries(&mut ready, out);
        self.raft.mut_store().append(entries.clone());
        let journal = self.journal.as_mut().expect("the caller has seen it");
        if must_write {
            let promises = self.raft.store().promises().clone();
            journal.on_write(number, promise_of(&promises));
            out.work.push(Work::Write(LogWrite {
                number,
                promises,
                entries,
                items,
            }));
        }
        journal.send(ready.take_messages(), true, term);
        #[cfg(feature = "mutants")]
        if self.options.shows(crate::options::Mutant::HeldHeartbeats) {
            journal.hold(ready.take_persisted_messages());
        }
        journal.send(ready.take_persisted_messages(), false, term);
        let is_idle = journal.is_idle();
        self.raft.advance_append_async(ready);
        if is_idle {
            self.raft.on_persist_ready(number);
        }
    }

    /// Moves Raft's entries out, for the log in memory, which also gets the promises.
    fn take_entries(&mut self, ready: &mut Ready, out: &mut Output<A>) -> Vec<Entry> {
        let entries = ready.take_entries();
        #[cfg(feature = "mutants")]
        self.answer_early(&entries, out);
        #[cfg(not(feature = "mutants"))]
        let _ = out;
        if let Some(promises) = ready.hs() {
            self.raft.mut_store().promise(promises.clone());
        }
        entries
    }

    /// Answers puts that are only in this node's log, for a planted bug.
    #[cfg(feature = "mutants")]
    fn answer_early(&mut self, entries: &[Entry], out: &mut Output<A>) {
        use crate::wire::{Answer, Operation, Request};
        if !self.leads() || !self.options.shows(crate::options::Mutant::EarlyAnswer) {
            return;
        }
        for entry in entries {
            if let Ok(request) = Request::decode(&entry.data)
                && matches!(request.operation, Operation::Put(_))
            {
                let answer = Answer::Written(entry.index);
                self.waiting.on_applied(entry.index, answer, out);
            }
        }
    }
}

#[inline]
fn add(messages: &mut Vec<Message>, mut more: Vec<Message>) {
    match messages.is_empty() {
        _ if more.is_empty() => {}
        true => *messages = more,
        false => messages.append(&mut more),
    }
}
