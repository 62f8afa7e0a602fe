//! Kinds of messages that leave a member in different ways. Called by `seat`.

use raft::eraftpb::{Message, MessageType};

/// Moves out the messages that fit, up to a number of them.
pub(super) fn take_if(
    messages: &mut Vec<Message>,
    most: usize,
    fits: impl Fn(&Message) -> bool,
) -> Vec<Message> {
    let mut left = most;
    let taken = messages.extract_if(.., |message| {
        let takes = left > 0 && fits(message);
        left -= usize::from(takes);
        takes
    });
    taken.collect()
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
