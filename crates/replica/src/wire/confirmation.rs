//! A follower's confirmation of an append. Most parcels of followers have one, and neither names
//! nor another message. A leader gets them from each follower for each append, and mostly needs
//! nothing else of them than three numbers (`node/late.rs`). So it reads such a parcel without a
//! message of Raft, which is large. Called by `parcels` and by the node.

use raft::eraftpb::{Message, MessageType};

use super::cursor::Cursor;
use super::format::{MAX_INDEX, PARCEL_VERSION};

/// The bytes of a parcel without names before the numbers of its first message, a confirmation.
const HEAD: [u8; 3] = [PARCEL_VERSION, 0, super::parcel::CONFIRMATION];

/// A follower has entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Confirmation {
    /// The follower.
    pub(crate) from: u64,
    pub(crate) term: u64,
    /// The last entry that the follower has.
    pub(crate) index: u64,
    /// The last entry that the follower knows to be committed.
    pub(crate) commit: u64,
}

impl Confirmation {
    /// Reads a parcel of a follower that has a confirmation, and no names and no other message.
    /// `None` if it has anything else, or is malformed.
    #[inline]
    pub(crate) fn take(bytes: &[u8], from: u64) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk()?;
        if *head != HEAD {
            return None;
        }
        let mut cursor = Cursor(rest);
        let mut number = || cursor.number().ok().filter(|it| *it <= MAX_INDEX);
        let (term, log_term, index, commit) = (number()?, number()?, number()?, number()?);
        (cursor.0.is_empty() && term > 0 && log_term == 0).then_some(Self {
            from,
            term,
            index,
            commit,
        })
    }

    /// The confirmation in a message, if it has one.
    pub(crate) fn of(message: &Message) -> Option<Self> {
        let confirms = message.msg_type == MessageType::MsgAppendResponse && !message.reject;
        confirms.then_some(Self {
            from: message.from,
            term: message.term,
            index: message.index,
            commit: message.commit,
        })
    }

    /// The message to a leader.
    pub(crate) fn message(self, to: u64) -> Message {
        Message {
            msg_type: MessageType::MsgAppendResponse,
            from: self.from,
            to,
            term: self.term,
            index: self.index,
            commit: self.commit,
            ..Message::default()
        }
    }
}

#[cfg(test)]
mod tests;
