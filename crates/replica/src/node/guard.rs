//! Messages that contradict the log of their receiver. Raft panics on some of them, and counts
//! others as promises of entries that no node has. Members do not send them, but another process
//! can.
//!
//! Numbers that no log can have were refused before, when the message was read (`wire/parcel.rs`).

use raft::eraftpb::{Message, MessageType};
use raft::{Raft, StateRole};

use crate::log::Log;

/// Whether a message of a member contradicts this node's log. One of an earlier term does not: the
/// log may have changed since, and Raft ignores it.
pub(super) fn contradicts(raft: &Raft<Log>, message: &Message) -> bool {
    let last = raft.raft_log.last_index();
    match message.msg_type {
        // A leader names no entry as committed that its follower has not confirmed.
        MessageType::MsgHeartbeat => message.term >= raft.term && message.commit > last,
        // A follower confirms or rejects entries that the leader has. One that has led in this term
        // and has lost what its disk did not have may still get such answers, and ignores them.
        MessageType::MsgAppendResponse => {
            let leads = raft.state == StateRole::Leader;
            leads && message.term == raft.term && message.index > last
        }
        _ => false,
    }
}

/// Whether a message may come from a member that has joined without this node's knowledge: a
/// leader, or a node that wants to be one.
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

/// Whether a message is a vote for a node that has not written its log. A candidate writes it
/// before it asks for votes, so it has taken entries of a leader since, or the vote answers no
/// question.
pub(super) fn is_early(raft: &Raft<Log>, message: &Message) -> bool {
    message.msg_type == MessageType::MsgRequestVoteResponse
        && raft.raft_log.persisted < raft.raft_log.last_index()
}

/// Whether a message asks for a vote.
pub(super) fn is_of_candidate(message: &Message) -> bool {
    matches!(
        message.msg_type,
        MessageType::MsgRequestVote | MessageType::MsgRequestPreVote
    )
}
