//! Messages of other nodes, of which some are dropped (`guard.rs`).
//!
//! The answers of a majority commit an entry, and then the leader answers its client. Those of the
//! other followers come later and commit nothing. Such a late answer waits for the next tick, or
//! for some later answers of the same follower. Then Raft gets one that confirms all entries that
//! they did. An answer does not wait if Raft must send the follower more because of it. Called by
//! `node` and by the node's owner.

use raft::ProgressState;
use raft::eraftpb::{Message, MessageType};

use super::{Node, guard};
use crate::wire::Confirmation;

impl<A> Node<A> {
    /// Takes a message of another node. Drops it if it comes from a stranger, contradicts this
    /// node's log, or cannot be used by Raft now.
    pub fn on_message(&mut self, mut message: Message) {
        #[cfg(feature = "mutants")]
        if self.options.shows(crate::options::Mutant::TwoVotes)
            && message.msg_type == MessageType::MsgRequestVote
        {
            self.raft.raft.vote = 0;
            self.raft.raft.leader_id = 0;
        }
        if Confirmation::of(&message).is_some_and(|it| self.puts_off(&it)) {
            return;
        }
        if self.mute_ticks > 0 && guard::is_of_candidate(&message) {
            return;
        }
        if self.must_not_ask() && message.msg_type == MessageType::MsgTimeoutNow {
            return;
        }
        if self.overtakes(&message) {
            return;
        }
        match message.msg_type {
            MessageType::MsgAppendResponse if !message.reject => self.late.join(&mut message),
            // Raft sends the follower an append if it seems to lack an entry.
            MessageType::MsgAppendResponse | MessageType::MsgHeartbeatResponse => self.take_late(),
            _ => {}
        }
        let raft = &self.raft.raft;
        let is_member = raft.prs().get(message.from).is_some();
        // A node that lacks entries may not know members that have joined since.
        if !(is_member || guard::may_be_new(&message)) || guard::is_early(raft, &message) {
            return;
        }
        if guard::contradicts(raft, &message) {
            self.contradictions += 1;
        } else {
            let kind = message.msg_type;
            // Raft only returns errors for messages that come too late.
            let _ = self.raft.raft.step(message);
            self.note_granted(kind);
        }
    }

    /// Whether an answer is late and may wait. If so, the node has noted it.
    pub(crate) fn puts_off(&mut self, answer: &Confirmation) -> bool {
        let raft = &self.raft.raft;
        if answer.index > raft.raft_log.committed || answer.term != raft.term {
            return false;
        }
        if !self.leads() || raft.lead_transferee.is_some() {
            return false;
        }
        let Some(follower) = raft.prs().get(answer.from) else {
            return false;
        };
        let has_all = follower.next_idx > raft.raft_log.last_index();
        let is_up_to_date = follower.state == ProgressState::Replicate && has_all;
        if !is_up_to_date || follower.is_paused() {
            return false;
        }
        // The follower may leave `appends` messages unanswered, as far as Raft knows.
        self.late.add(answer, self.options.appends / 2)
    }

    /// Gives Raft the late answers.
    pub(super) fn take_late(&mut self) {
        let own = self.raft.raft.id;
        while let Some(answer) = self.late.pop() {
            // Raft takes no answer of an earlier term, nor one of a former member.
            let _ = self.raft.raft.step(answer.message(own));
        }
    }
}
