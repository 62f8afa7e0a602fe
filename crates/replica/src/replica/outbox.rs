//! Messages that a member sends: which of them travel together, and how they are encoded.
//!
//! Messages are long, so they stay where Raft's caller keeps them; once one has left, its receiver
//! is set to none. Appends to several followers mostly have the same entries, and are encoded once:
//! within a run, the log of a leader's term has one entry at each index. Called by `parcels`.

use raft::eraftpb::{Message, MessageType};

use crate::wire::{MOST_MESSAGES, Parcel, put_message};

/// The receiver of a message that has already left.
const NONE: u64 = 0;

/// Encodes messages as parcels.
#[derive(Debug, Default)]
pub(super) struct Packer {
    /// The most bytes of a parcel with several messages.
    most: usize,
    /// A parcel without names.
    bytes: Vec<u8>,
    /// If the bytes encode a single message, its index.
    written: Option<usize>,
}

impl Packer {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            ..Self::default()
        }
    }

    /// Forgets the encoded message, because the indices of messages change.
    pub(super) fn forget(&mut self) {
        self.written = None;
    }

    /// Begins a parcel without names.
    fn clear(&mut self) {
        self.written = None;
        self.bytes.clear();
        self.bytes.extend_from_slice(&Parcel::EMPTY);
    }

    /// Moves out at most `most` answers to a member's messages.
    pub(super) fn pack_answers(&mut self, to: u64, messages: &mut [Message], most: usize) -> &[u8] {
        self.clear();
        let mut left = most;
        for message in messages {
            if message.to == to && left > 0 && is_answer(message) {
                put_message(&mut self.bytes, message);
                message.to = NONE;
                left -= 1;
            }
        }
        &self.bytes
    }

    /// Encodes the messages for a member as one parcel, or as several if they are long. A message
    /// that exceeds the limit gets a parcel of its own. Messages that members never send are
    /// dropped.
    pub(super) fn pack(&mut self, to: u64, messages: &[Message], mut send: impl FnMut(&[u8])) {
        let mut count = 0;
        for (place, message) in messages.iter().enumerate() {
            if message.to != to || !Parcel::carries(message) {
                continue;
            }
            let before = match count {
                0 => self.begin(place, messages),
                _ => self.add(message),
            };
            count += 1;
            let is_long = self.bytes.len() - Parcel::EMPTY.len() > self.most;
            if count > 1 && (is_long || count > MOST_MESSAGES) {
                send(&self.bytes[..before]);
                self.bytes.drain(Parcel::EMPTY.len()..before);
                count = 1;
            }
        }
        if count > 0 {
            send(&self.bytes);
        }
    }

    /// Begins a parcel with a message, unless it is already encoded.
    fn begin(&mut self, place: usize, messages: &[Message]) -> usize {
        let message = &messages[place];
        let is_here = |it: usize| is_same_append(&messages[it], message);
        if !self.written.is_some_and(is_here) {
            self.clear();
            put_message(&mut self.bytes, message);
            self.written = Some(place);
        }
        0
    }

    fn add(&mut self, message: &Message) -> usize {
        let before = self.bytes.len();
        self.written = None;
        put_message(&mut self.bytes, message);
        before
    }
}

/// Whether two messages of one run and term append the same entries.
fn is_same_append(one: &Message, other: &Message) -> bool {
    let place = |it: &Message| (it.term, it.log_term, it.index, it.commit);
    let is_append = |it: &Message| it.msg_type == MessageType::MsgAppend;
    is_append(one)
        && is_append(other)
        && place(one) == place(other)
        && one.entries.len() == other.entries.len()
        && one.context.is_empty()
        && other.context.is_empty()
}

/// Whether a message has a snapshot.
pub(super) fn is_snapshot(message: &Message) -> bool {
    message.msg_type == MessageType::MsgSnapshot
}

/// Whether a message is an answer, and so has a bounded length.
fn is_answer(message: &Message) -> bool {
    matches!(
        message.msg_type,
        MessageType::MsgAppendResponse
            | MessageType::MsgRequestVoteResponse
            | MessageType::MsgRequestPreVoteResponse
            | MessageType::MsgHeartbeatResponse
    )
}

#[cfg(test)]
mod tests;
