//! Detects messages that contradict the log of their receiver. Raft panics on some of them, and
//! takes others as confirmations of entries that no node has. Members never send such messages, but
//! another process can.
//!
//! The decoder has already refused numbers that no log can have (`wire/parcel.rs`).

use raft::eraftpb::{Message, MessageType};
use raft::{Raft, StateRole};

use crate::log::Log;

/// Whether a message of a member contradicts this node's log. A message of an earlier term does
/// not: the log may have changed since, and Raft ignores the message.
pub(super) fn contradicts(raft: &Raft<Log>, message: &Message) -> bool {
    let last = raft.raft_log.last_index();
    match message.msg_type {
        // A leader reports an entry as committed to a follower only after the follower has
        // confirmed it.
        MessageType::MsgHeartbeat => message.term >= raft.term && message.commit > last,
        // A follower confirms or rejects only entries that the leader has. A node that led in this
        // term, and lost entries that its disk had not saved, may still get answers about them; it
        // no longer leads.
        MessageType::MsgAppendResponse => {
            let leads = raft.state == StateRole::Leader;
            leads && message.term == raft.term && message.index > last
        }
        _ => false,
    }
}

/// Whether a message may come from a member that has joined without this node's knowledge: such a
/// member is a leader or a candidate.
pub(super) fn may_be_new(message: &Message) -> bool {
    matches!(
        message.msg_type,
        MessageType::MsgAppend
            | MessageType::MsgHeartbeat
            | MessageType::MsgSnapshot
            | MessageType::MsgRequestVote
            | MessageType::MsgRequestPreVote
    )
}

/// Whether a message is a vote for a node that has not saved its log. A candidate saves its log
/// before it asks for votes. So this node has since taken entries from a leader, or it never asked
/// for the vote.
pub(super) fn is_early(raft: &Raft<Log>, message: &Message) -> bool {
    message.msg_type == MessageType::MsgRequestVoteResponse
        && raft.raft_log.persisted < raft.raft_log.last_index()
}

/// Whether a message asks for a vote or a pre-vote.
pub(super) fn is_of_candidate(message: &Message) -> bool {
    matches!(
        message.msg_type,
        MessageType::MsgRequestVote | MessageType::MsgRequestPreVote
    )
}
