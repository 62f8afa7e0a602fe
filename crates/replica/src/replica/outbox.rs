//! Kinds of messages that leave a member in different ways. Called by `seat`.

use raft::eraftpb::{Message, MessageType};

use crate::wire::Parcel;

/// Moves the messages for a member into an empty batch: those that answer others first, and those
/// with a snapshot last. One that no member sends is dropped.
pub(super) fn take_for(to: u64, messages: &mut Vec<Message>, batch: &mut Vec<Message>) {
    let taken = messages.extract_if(.., |it| it.to == to);
    batch.extend(taken.filter(|it| is_snapshot(it) || Parcel::carries(it)));
    batch.sort_by_key(|it| (is_snapshot(it), !is_answer(it)));
}

/// Whether a message has a snapshot.
pub(super) fn is_snapshot(message: &Message) -> bool {
    message.msg_type == MessageType::MsgSnapshot
}

/// Whether a message answers another one, and so has a bounded length.
pub(super) fn is_answer(message: &Message) -> bool {
    matches!(
        message.msg_type,
        MessageType::MsgAppendResponse
            | MessageType::MsgRequestVoteResponse
            | MessageType::MsgRequestPreVoteResponse
            | MessageType::MsgHeartbeatResponse
    )
}
