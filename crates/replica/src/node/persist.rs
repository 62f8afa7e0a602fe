//! Writes entries and promises into the log, both the one in memory and the one on the disk.

use raft::eraftpb::Message;

use super::Node;
use super::journal::{Journal, Kept, promise_of};
use super::news::{News, confirm, store};
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
            let kept = journal.on_saved(saved);
            confirm(&mut self.raft.raft, kept);
            self.note_applied();
        }
    }

    /// Tells Raft up to which entry the items are applied, unless the disk does not have that entry
    /// yet.
    pub(super) fn note_applied(&mut self) {
        let (applied, log) = (self.applied(), &self.raft.raft.raft_log);
        if applied != log.applied && applied <= log.persisted {
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
    pub(super) fn keep(&mut self, news: News, out: &mut Output<A>) {
        add(&mut out.messages, news.messages);
        #[cfg(feature = "mutants")]
        self.be_early(out);
        let kept = store(&mut self.raft.raft, news.promises);
        confirm(&mut self.raft.raft, kept);
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
    pub(super) fn save(&mut self, news: News, items: Option<Items>, out: &mut Output<A>) {
        #[cfg(feature = "mutants")]
        self.be_early(out);
        let entries = self.raft.raft.raft_log.unstable.entries.clone();
        let kept = store(&mut self.raft.raft, news.promises);
        let term = self.term();
        let journal = self.journal.as_mut().expect("the caller has seen it");
        if news.has_promised || kept != Kept::default() {
            let promises = self.raft.store().promises().clone();
            let number = journal.on_write(promise_of(&promises), kept);
            out.work.push(Work::Write(LogWrite {
                number,
                promises,
                entries,
                items,
            }));
        }
        #[cfg(feature = "mutants")]
        if !news.are_leaders && self.options.shows(crate::options::Mutant::HeldHeartbeats) {
            return journal.hold(news.messages);
        }
        journal.send(news.messages, news.are_leaders, term);
    }

    /// Commits entries that are only in this node's log, for a planted bug.
    #[cfg(feature = "mutants")]
    fn be_early(&mut self, out: &mut Output<A>) {
        if self.leads() && self.options.shows(crate::options::Mutant::EarlyCommit) {
            let log = &mut self.raft.raft.raft_log;
            log.commit_to(log.last_index());
        }
        self.answer_early(out);
    }

    /// Answers puts that are only in this node's log, for a planted bug.
    #[cfg(feature = "mutants")]
    fn answer_early(&mut self, out: &mut Output<A>) {
        use crate::wire::{Answer, Operation, Request};
        if !self.leads() || !self.options.shows(crate::options::Mutant::EarlyAnswer) {
            return;
        }
        for entry in &self.raft.raft.raft_log.unstable.entries {
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
