//! Messages that contradict the log of their receiver. Raft panics on some of them, and counts others
//! as promises of entries that no node has. Members do not send them, but another process can.
//!
//! Numbers that no log can have were refused before, when the message was read (`wire/parcel.rs`).

use raft::Raft;
use raft::eraftpb::{Message, MessageType};

use crate::log::Log;

/// Whether a message can come from a member, as far as this node's log shows.
pub(super) fn fits(raft: &Raft<Log>, message: &Message) -> bool {
    let last = raft.raft_log.last_index();
    match message.msg_type {
        // A leader names no entry as committed that its follower has not confirmed.
        MessageType::MsgHeartbeat => message.commit <= last,
        // A follower confirms or rejects entries that the leader has.
        MessageType::MsgAppendResponse => message.index <= last,
        // A candidate has written its log before it asks for votes.
        MessageType::MsgRequestVoteResponse => raft.raft_log.persisted == last,
        _ => true,
    }
}
