//! Messages of Raft between two replicas: all that one iteration has for the other, as one request,
//! and the answers to them, as its response.
//!
//! The codec is this crate's own, with fixed fields; nothing of the network reaches the parser of
//! `protobuf`. Messages that a replica gives to itself, proposals and requests to read have no
//! bytes: clients talk to the leader. Positions of entries follow from that of their message, so a
//! message cannot have gaps. Numbers with which Raft would panic, and entries that no replica could
//! apply, are malformed.

use raft::eraftpb::{Entry, Message, MessageType};

use super::change::{Change, Shared, bytes_of};
use super::cursor::{Cursor, put_count, put_counted, put_words};
use super::format::{MAX_INDEX, Malformed, VERSION};
use super::request::Request;

/// Kinds of messages, each with its number.
const KINDS: [(u8, MessageType); 9] = [
    (1, MessageType::MsgAppend),
    (2, MessageType::MsgAppendResponse),
    (3, MessageType::MsgRequestVote),
    (4, MessageType::MsgRequestVoteResponse),
    (5, MessageType::MsgHeartbeat),
    (6, MessageType::MsgHeartbeatResponse),
    (7, MessageType::MsgRequestPreVote),
    (8, MessageType::MsgRequestPreVoteResponse),
    (9, MessageType::MsgTimeoutNow),
];

/// Bytes of a parcel without messages.
const HEAD: usize = 40;
/// Bytes of a message without context and entries.
const MESSAGE: usize = 72;
/// Bytes of an entry without data.
const ENTRY: usize = 12;
/// Most bytes of a message's context, in which a heartbeat carries the number of a read.
const MAX_CONTEXT: usize = 64;

/// Messages from one replica to another.
#[derive(Clone, PartialEq, Debug)]
pub struct Parcel {
    /// The name of the cluster.
    pub cluster: u64,
    /// The sender's number.
    pub from: u64,
    /// The receiver's number.
    pub to: u64,
    /// The number that the sender's process has drawn at its start. It is not 0.
    pub life: u64,
    /// The sender knows that two processes have the receiver's number.
    pub are_two: bool,
    /// The messages, all from this sender to this receiver.
    pub messages: Vec<Message>,
}

impl Parcel {
    /// Most bytes of a message that answers another one.
    pub const RESPONSE: usize = MESSAGE + MAX_CONTEXT;

    /// Bytes of a response that has room for `count` messages which answer others.
    #[must_use]
    pub const fn room(count: usize) -> usize {
        HEAD + count * Self::RESPONSE
    }

    /// Whether a message has bytes. One with a snapshot travels in [pieces](super::Piece).
    #[must_use]
    pub fn carries(message: &Message) -> bool {
        KINDS.iter().any(|(_, kind)| *kind == message.msg_type)
            && message
                .snapshot
                .as_ref()
                .is_none_or(|it| it.data.is_empty())
    }

    /// Splits messages for parcels of at most this length. A message that is longer by itself gets
    /// a parcel of its own.
    pub(crate) fn split(messages: &[Message], most: usize) -> impl Iterator<Item = &[Message]> {
        let mut rest = messages;
        std::iter::from_fn(move || {
            let mut size = HEAD;
            let mut fits = |message: &Message| {
                size += size_of(message);
                size <= most
            };
            let count = rest.iter().position(|it| !fits(it)).unwrap_or(rest.len());
            let (part, others) = rest.split_at(count.max(1).min(rest.len()));
            rest = others;
            (!part.is_empty()).then_some(part)
        })
    }

    /// The bytes of the parcel.
    ///
    /// # Panics
    /// If a message has no bytes; see [`Self::carries`].
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let envelope = Envelope {
            cluster: self.cluster,
            from: self.from,
            to: self.to,
            life: self.life,
            are_two: self.are_two,
        };
        envelope.put(&self.messages, &mut bytes);
        bytes
    }

    /// Reads a parcel.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut messages = Vec::new();
        let envelope = Envelope::take(bytes, &mut messages)?;
        Ok(Self {
            cluster: envelope.cluster,
            from: envelope.from,
            to: envelope.to,
            life: envelope.life,
            are_two: envelope.are_two,
            messages,
        })
    }
}

/// A parcel without its messages; see the fields of [`Parcel`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Envelope {
    pub(crate) cluster: u64,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) life: u64,
    pub(crate) are_two: bool,
}

impl Envelope {
    /// Reads a parcel, and appends its messages; none, if it is malformed.
    pub(crate) fn take(bytes: &[u8], messages: &mut Vec<Message>) -> Result<Self, Malformed> {
        let before = messages.len();
        let taken = Self::take_all(bytes, messages);
        if taken.is_err() {
            messages.truncate(before);
        }
        taken
    }

    fn take_all(bytes: &[u8], messages: &mut Vec<Message>) -> Result<Self, Malformed> {
        let mut cursor = Cursor::of_message(bytes)?;
        let are_two = cursor.flag()?;
        cursor.zeros::<2>()?;
        let count = cursor.count(MESSAGE)?;
        let envelope = Self {
            cluster: cursor.u64()?,
            from: cursor.u64()?,
            to: cursor.u64()?,
            life: cursor.u64()?,
            are_two,
        };
        if envelope.life == 0 {
            return Err(Malformed);
        }
        messages.reserve(count);
        for _ in 0..count {
            let mut message = take_message(&mut cursor)?;
            (message.from, message.to) = (envelope.from, envelope.to);
            messages.push(message);
        }
        cursor.end()?;
        Ok(envelope)
    }

    /// Appends the bytes of a parcel with these messages.
    ///
    /// # Panics
    /// If a message has no bytes; see [`Parcel::carries`].
    pub(crate) fn put(&self, messages: &[Message], out: &mut Vec<u8>) {
        out.reserve(HEAD + messages.iter().map(size_of).sum::<usize>());
        out.extend_from_slice(&[VERSION, u8::from(self.are_two), 0, 0]);
        put_count(out, messages.len());
        put_words(out, &[self.cluster, self.from, self.to, self.life]);
        for message in messages {
            put_message(out, message);
        }
    }
}

/// The bytes of a message.
fn size_of(message: &Message) -> usize {
    let entries = message.entries.iter();
    let data: usize = entries.map(|entry| ENTRY + bytes_of(entry).len()).sum();
    MESSAGE + message.context.len() + data
}

/// The numbers of a message, in the order in which they are written.
fn numbers_of(message: &Message) -> [u64; 6] {
    [
        message.term,
        message.log_term,
        message.index,
        message.commit,
        message.commit_term,
        message.reject_hint,
    ]
}

fn put_message(out: &mut Vec<u8>, message: &Message) {
    let kind = KINDS.iter().find(|(_, kind)| *kind == message.msg_type);
    let (number, _) = kind.expect("only messages with a number are sent");
    let context = u8::try_from(message.context.len()).expect("the node's own, of eight bytes");
    let entries = u32::try_from(message.entries.len()).expect("a message has few entries");
    let mut head = [0; MESSAGE];
    head[..4].copy_from_slice(&[*number, u8::from(message.reject), context, 0]);
    head[4..8].copy_from_slice(&entries.to_le_bytes());
    let places = head[8..].as_chunks_mut::<8>().0;
    for (place, number) in places.iter_mut().zip(numbers_of(message)) {
        *place = number.to_le_bytes();
    }
    out.extend_from_slice(&head);
    out.extend_from_slice(&message.context);
    for entry in &message.entries {
        out.extend_from_slice(&entry.term.to_le_bytes());
        put_counted(out, bytes_of(entry));
    }
}

fn take_message(cursor: &mut Cursor<'_>) -> Result<Message, Malformed> {
    let number = cursor.u8()?;
    let kind = KINDS.iter().find(|(own, _)| *own == number);
    let (_, kind) = kind.ok_or(Malformed)?;
    let reject = cursor.flag()?;
    let context = usize::from(cursor.u8()?);
    cursor.zeros::<1>()?;
    let entries = cursor.count(ENTRY)?;
    let mut message = Message {
        msg_type: *kind,
        reject,
        term: cursor.u64()?,
        log_term: cursor.u64()?,
        index: cursor.u64()?,
        commit: cursor.u64()?,
        commit_term: cursor.u64()?,
        reject_hint: cursor.u64()?,
        ..Message::default()
    };
    // The request for a snapshot, which no replica makes, and eight bytes for later versions.
    cursor.zeros::<16>()?;
    if context > MAX_CONTEXT || !is_in_range(&message) || (entries > 0 && !is_append(&message)) {
        return Err(Malformed);
    }
    if context > 0 {
        message.context = cursor.bytes(context)?.to_vec().into();
    }
    if entries > 0 {
        message.entries = take_entries(cursor, entries, &message)?.into();
    }
    Ok(message)
}

fn is_append(message: &Message) -> bool {
    message.msg_type == MessageType::MsgAppend
}

/// Whether Raft can take the numbers. It takes a message of term 0 for one of its own node, and an
/// append after an entry of term 0 for one that fits anywhere.
fn is_in_range(message: &Message) -> bool {
    numbers_of(message).iter().all(|it| *it <= MAX_INDEX)
        && message.term > 0
        && (message.log_term > 0 || !is_append(message))
}

/// Whether replicas can apply an entry with these bytes.
fn is_applicable(data: &[u8]) -> bool {
    let is_write = Request::decode(data).is_ok_and(|it| !it.operation.is_read());
    data.is_empty() || is_write || Change::decode(data).is_ok()
}

/// Reads the entries of a message. Their terms never decrease, and none is later than the message.
/// They share one copy of their bytes, because they leave the log about when the others do.
fn take_entries(
    cursor: &mut Cursor<'_>,
    count: usize,
    message: &Message,
) -> Result<Vec<Entry>, Malformed> {
    let all = cursor.0;
    let mut ahead = *cursor;
    for _ in 0..count {
        ahead.u64()?;
        ahead.counted()?;
    }
    let shared = Shared::new(&all[..all.len() - ahead.0.len()]);
    let mut entries = Vec::with_capacity(count);
    let (mut term, mut index) = (message.log_term, message.index);
    for _ in 0..count {
        index = index.checked_add(1).ok_or(Malformed)?;
        let (next, data) = (cursor.u64()?, cursor.counted()?);
        if next < term || next > message.term || !is_applicable(data) {
            return Err(Malformed);
        }
        term = next;
        let end = all.len() - cursor.0.len();
        entries.push(shared.entry(term, index, end - data.len()..end));
    }
    Ok(entries)
}
