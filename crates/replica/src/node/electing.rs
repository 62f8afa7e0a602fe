//! The part of a node with a disk in elections: when its clock runs, and which candidates get its
//! pre-vote (`patience.rs`). Called by `node`.

use raft::eraftpb::{Message, MessageType};

use super::Node;

impl<A> Node<A> {
    /// Lets a tick pass for Raft, unless the election clock stands.
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

    /// Whether Raft would end the process if this node became a candidate now. The only voter
    /// leads at once, and must have written its log then. It may follow for a moment if another
    /// process has said that a term has begun.
    pub(super) fn must_not_ask(&self) -> bool {
        let is_alone = self.raft.raft.prs().is_singleton();
        let is_busy = self.journal.as_ref().is_some_and(|it| !it.is_idle());
        self.is_restoring() || (is_alone && is_busy && !self.leads())
    }

    /// Whether a message asks for a pre-vote although this node waits for another candidate.
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

    /// Notes the candidate to which this node has granted a pre-vote, if that is its answer to a
    /// message.
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
