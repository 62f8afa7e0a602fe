//! The two steps of Raft with which a put begins at each node, in their usual form: a leader that
//! appends writes, and a follower that takes an append of its leader. Raft would take a message for
//! each, which it then drops. Here it gets the entries alone, or borrows the message, so that the
//! memory of both can be used again. What Raft does with them is the same. Called by `node` and its
//! owner.

use raft::StateRole;
use raft::eraftpb::{Entry, Message, MessageType};

use super::Node;

impl<A> Node<A> {
    /// Appends writes to the log of this node, which leads, and makes the messages that bring them
    /// to the others. False: Raft takes no entries now.
    pub(super) fn append(&mut self, writes: &mut [Entry]) -> bool {
        let raft = &mut self.raft.raft;
        let is_member = raft.prs().get(raft.id).is_some();
        if !is_member || raft.lead_transferee.is_some() || !raft.append_entry(writes) {
            return false;
        }
        raft.bcast_append();
        true
    }

    /// Takes an append of the leader that this node follows. False: the message is something else,
    /// and must be given to [`Self::on_message`].
    pub(crate) fn takes_append(&mut self, message: &Message) -> bool {
        let raft = &mut self.raft.raft;
        let is_usual = message.msg_type == MessageType::MsgAppend
            && message.term == raft.term
            && raft.state == StateRole::Follower
            && raft.leader_id == message.from;
        if is_usual {
            raft.election_elapsed = 0;
            raft.handle_append_entries(message);
        }
        is_usual
    }
}
