//! Messages that leave a member: which of them travel together, and as which bytes.
//!
//! Messages stay where Raft's caller has them, because they are long; one that has left has no
//! receiver any more. Appends to several followers are mostly alike, and are written once: within
//! a run, the log of a leader's term has one entry at each index. Called by `parcels`.

use raft::eraftpb::{Message, MessageType};

use crate::wire::{MOST_MESSAGES, Parcel, put_message};

/// The receiver of a message that has left.
const NONE: u64 = 0;

/// Writes parcels of messages.
#[derive(Debug, Default)]
pub(super) struct Packer {
    /// Most bytes of a parcel with several messages.
    most: usize,
    bytes: Vec<u8>,
    /// The bytes are those of one message, which has this place.
    written: Option<usize>,
}

impl Packer {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            ..Self::default()
        }
    }

    /// The places of messages change.
    pub(super) fn forget(&mut self) {
        self.written = None;
    }

    /// Moves out the messages for a member that answer others, at most this number of them.
    pub(super) fn pack_answers(&mut self, to: u64, messages: &mut [Message], most: usize) -> &[u8] {
        self.bytes.clear();
        self.written = None;
        let own = messages.iter_mut().filter(|it| it.to == to);
        for message in own.filter(|it| is_answer(it)).take(most) {
            put_message(&mut self.bytes, message);
            message.to = NONE;
        }
        &self.bytes
    }

    /// Writes the messages for a member as one parcel, or as several if they are long. One that is
    /// longer by itself gets a parcel of its own, and one that no member sends is dropped.
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
            if count > 1 && (self.bytes.len() > self.most || count > MOST_MESSAGES) {
                send(&self.bytes[..before]);
                self.bytes.drain(..before);
                count = 1;
            }
        }
        if count > 0 {
            send(&self.bytes);
        }
    }

    /// Begins a parcel with a message, unless its bytes are here.
    fn begin(&mut self, place: usize, messages: &[Message]) -> usize {
        let message = &messages[place];
        let is_here = |it: usize| is_same_append(&messages[it], message);
        if !self.written.is_some_and(is_here) {
            self.bytes.clear();
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

/// Whether two messages of one run and term are appends of the same entries.
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

/// Whether a message answers another one, and so has a bounded length.
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
