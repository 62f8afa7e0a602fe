//! Elections of a node with a disk: when its clock runs, and which candidates get its pre-vote
//! (`patience.rs`). Called by `node`.

use raft::eraftpb::{Message, MessageType};

use super::Node;

impl<A> Node<A> {
    /// Lets a tick pass in Raft, unless the election clock is stopped.
    pub(super) fn tick(&mut self) {
        let (term, leader) = (self.term(), self.leader());
        let mut stands = self.journal.as_mut().is_some_and(|journal| {
            journal.on_term(term, leader);
            journal.on_tick()
        });
        #[cfg(feature = "mutants")]
        {
            stands &= !self.options.shows(crate::options::Mutant::Impatient);
        }
        stands &= !self.leads();
        if !stands && !self.must_not_ask() {
            self.raft.tick();
        }
    }

    /// Whether Raft would end the process if this node became a candidate now. A cluster's only
    /// voter becomes leader at once, and must have saved its log by then. It may be a follower for
    /// a moment if another process has claimed that a later term has begun.
    pub(super) fn must_not_ask(&self) -> bool {
        let is_alone = self.raft.raft.prs().is_singleton();
        let is_busy = self.journal.as_ref().is_some_and(|it| !it.is_idle());
        self.is_restoring() || (is_alone && is_busy && !self.leads())
    }

    /// Whether a message asks for a pre-vote while this node waits for another candidate.
    pub(super) fn overtakes(&mut self, message: &Message) -> bool {
        let (term, leader) = (self.term(), self.leader());
        let is_chosen = message.from == self.raft.raft.vote;
        let Some(journal) = &mut self.journal else {
            return false;
        };
        if message.msg_type != MessageType::MsgRequestPreVote || message.term <= term || is_chosen {
            return false;
        }
        journal.on_term(term, leader);
        journal.waits_for_other(message.from)
    }

    /// Notes the candidate to which this node has granted a pre-vote, if a message of kind `kind`
    /// led to that.
    pub(super) fn note_granted(&mut self, kind: MessageType) {
        if kind != MessageType::MsgRequestPreVote {
            return;
        }
        if let (Some(journal), Some(last)) = (&mut self.journal, self.raft.raft.msgs.last())
            && last.msg_type == MessageType::MsgRequestPreVoteResponse
            && !last.reject
        {
            journal.on_granted(last.to);
        }
    }
}
