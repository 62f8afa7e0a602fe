//! Raft's messages between two replicas: a request has all messages that one iteration sends to the
//! other replica, and the response has the answers.
//!
//! The codec is this crate's own, so no bytes from the network reach the parser of `protobuf`.
//! Numbers have a variable length, and fields that are mostly empty take no bytes, because an
//! append with a short write crosses two links and two threads before its client has an answer. For
//! the same reason a parcel leaves out names that its session already has (`replica/parcels.rs`).
//! Messages of a replica to itself, proposals and requests to read have no encoding: clients talk
//! to the leader. The index in a message determines the indices of its entries, so a message cannot
//! have gaps. Numbers on which Raft would panic, and entries that no replica could apply, are
//! malformed.

use std::borrow::Cow;

use raft::eraftpb::{Entry, Message, MessageType};

use super::change::{Change, bytes_of};
use super::copies::{Copies, Shared};
use super::cursor::{Cursor, put_words};
use super::format::{MAX_INDEX, MOST_MESSAGES, Malformed, PARCEL_VERSION};
use super::pen::{put_number, size_of_number};
use super::request::Request;

/// Kinds of messages, each at the place of its number.
const KINDS: [Option<MessageType>; 10] = [
    None,
    Some(MessageType::MsgAppend),
    Some(MessageType::MsgAppendResponse),
    Some(MessageType::MsgRequestVote),
    Some(MessageType::MsgRequestVoteResponse),
    Some(MessageType::MsgHeartbeat),
    Some(MessageType::MsgHeartbeatResponse),
    Some(MessageType::MsgRequestPreVote),
    Some(MessageType::MsgRequestPreVoteResponse),
    Some(MessageType::MsgTimeoutNow),
];

/// The numbers of the kinds that have one; 0 for the others.
const NUMBERS: [u8; 32] = numbers();

/// The number of a confirmation. It is the first byte of the message if nothing is optional in it.
pub(super) const CONFIRMATION: u8 = number_of(MessageType::MsgAppendResponse);

/// The bits of a message's first byte that encode its kind, and those above them.
const KIND: u8 = 0x0f;
const REJECTS: u8 = 0x10;
const HAS_CONTEXT: u8 = 0x20;
const HAS_HINT: u8 = 0x40;

/// The bits of a parcel's second byte.
const ARE_TWO: u8 = 1;
const HAS_NAMES: u8 = 2;

/// The bytes before the messages of a parcel without names, indexed by `are_two`.
const NAMELESS: [[u8; 2]; 2] = [[PARCEL_VERSION, 0], [PARCEL_VERSION, ARE_TWO]];

/// The most bytes of a number.
const NUMBER: usize = size_of_number(u64::MAX);
/// The most bytes of a parcel without messages: version, bits and names.
const HEAD: usize = 2 + 16 + 2 * NUMBER;
/// The most bytes of a message without context and entries.
const MESSAGE: usize = 2 + 6 * NUMBER;
/// The fewest bytes of an entry.
const LEAST_ENTRY: usize = 2;
/// Room is reserved at once for at most this number of entries, even if a peer announces more.
const EXPECTED: usize = 1024;
/// The most bytes of a message's context, in which a heartbeat carries the number of a read.
const MAX_CONTEXT: usize = 64;

const fn numbers() -> [u8; 32] {
    let mut numbers = [0; 32];
    let mut number = 1_u8;
    while (number as usize) < KINDS.len() {
        if let Some(kind) = KINDS[number as usize] {
            numbers[kind as usize] = number;
        }
        number += 1;
    }
    numbers
}

/// The number of a kind of messages; 0 if they are never sent.
#[inline]
const fn number_of(kind: MessageType) -> u8 {
    NUMBERS[kind as usize % NUMBERS.len()]
}

/// The cluster of a parcel and its two replicas.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Names {
    /// The name of the cluster.
    pub cluster: u64,
    /// The sender's number.
    pub from: u64,
    /// The receiver's number.
    pub to: u64,
    /// The number that the sender's process drew when it started. Not 0.
    pub life: u64,
}

/// Messages from one replica to another.
#[derive(Clone, PartialEq, Debug)]
pub struct Parcel {
    /// `None`: the names are those of an earlier parcel of the session.
    pub names: Option<Names>,
    /// The sender knows that two processes have the receiver's number.
    pub are_two: bool,
    /// The messages, all from this sender to this receiver. Without names, their numbers are 0.
    pub messages: Vec<Message>,
}

impl Names {
    /// Writes the sender's and receiver's numbers into the messages of a parcel.
    pub(crate) fn sign(&self, messages: &mut [Message]) {
        for message in messages {
            (message.from, message.to) = (self.from, self.to);
        }
    }
}

impl Parcel {
    /// The most bytes of a message that answers another one.
    pub const RESPONSE: usize = MESSAGE + MAX_CONTEXT;

    /// A parcel with neither names nor messages.
    pub(crate) const EMPTY: [u8; 2] = NAMELESS[0];

    /// Bytes of a response that has room for `count` answers.
    #[must_use]
    pub const fn room(count: usize) -> usize {
        HEAD + count * Self::RESPONSE
    }

    /// Whether a message can be encoded. A snapshot cannot; it travels in [pieces](super::Piece).
    #[must_use]
    pub fn carries(message: &Message) -> bool {
        number_of(message.msg_type) != 0
            && message
                .snapshot
                .as_ref()
                .is_none_or(|it| it.data.is_empty())
    }

    /// The bytes of the parcel.
    ///
    /// # Panics
    /// If a message cannot be encoded; see [`Self::carries`].
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let envelope = Envelope {
            names: self.names,
            are_two: self.are_two,
        };
        let mut bytes = Self::EMPTY.to_vec();
        for message in &self.messages {
            put_message(&mut bytes, message);
        }
        envelope.around(&bytes).into_owned()
    }

    /// Reads a parcel.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut messages = Vec::new();
        let envelope = Envelope::take(bytes, &mut messages, &mut Copies::new())?;
        Ok(Self {
            names: envelope.names,
            are_two: envelope.are_two,
            messages,
        })
    }
}

/// A parcel without its messages; see the fields of [`Parcel`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Envelope {
    pub(crate) names: Option<Names>,
    pub(crate) are_two: bool,
}

impl Envelope {
    /// Reads a parcel, and appends its messages. Appends none if the parcel is malformed.
    pub(crate) fn take(
        bytes: &[u8],
        messages: &mut Vec<Message>,
        copies: &mut Copies,
    ) -> Result<Self, Malformed> {
        let before = messages.len();
        let taken = Self::take_all(bytes, messages, copies);
        if taken.is_err() {
            messages.truncate(before);
        }
        taken
    }

    fn take_all(
        bytes: &[u8],
        messages: &mut Vec<Message>,
        copies: &mut Copies,
    ) -> Result<Self, Malformed> {
        let (&[PARCEL_VERSION, bits], rest) = bytes.split_first_chunk().ok_or(Malformed)? else {
            return Err(Malformed);
        };
        if bits & !(ARE_TWO | HAS_NAMES) != 0 {
            return Err(Malformed);
        }
        let mut cursor = Cursor(rest);
        let envelope = Self {
            names: match bits & HAS_NAMES {
                0 => None,
                _ => Some(take_names(&mut cursor)?),
            },
            are_two: bits & ARE_TWO != 0,
        };
        let before = messages.len();
        let mut source = Source {
            bytes,
            copies,
            copy: None,
        };
        while !cursor.0.is_empty() {
            if messages.len() - before == MOST_MESSAGES {
                return Err(Malformed);
            }
            // The message is decoded in place, because it is large.
            messages.push(Message::default());
            let message = messages.last_mut().expect("it was pushed");
            take_message(&mut cursor, &mut source, message)?;
        }
        if let Some(names) = &envelope.names {
            names.sign(&mut messages[before..]);
        }
        Ok(envelope)
    }

    /// The bytes of a parcel with this envelope, and with the messages of one that begins like
    /// [`Parcel::EMPTY`]. Mostly, they are the same.
    #[inline]
    pub(crate) fn around(self, bytes: &[u8]) -> Cow<'_, [u8]> {
        match self.names.is_none() && !self.are_two {
            true => Cow::Borrowed(bytes),
            false => Cow::Owned(self.copy_around(&bytes[Parcel::EMPTY.len()..])),
        }
    }

    #[cold]
    fn copy_around(self, messages: &[u8]) -> Vec<u8> {
        let mut bytes = NAMELESS[usize::from(self.are_two)].to_vec();
        if let Some(names) = &self.names {
            bytes[1] |= HAS_NAMES;
            put_words(&mut bytes, &[names.cluster, names.life]);
            put_number(&mut bytes, names.from);
            put_number(&mut bytes, names.to);
        }
        bytes.extend_from_slice(messages);
        bytes
    }
}

fn take_names(cursor: &mut Cursor<'_>) -> Result<Names, Malformed> {
    let names = Names {
        cluster: cursor.u64()?,
        life: cursor.u64()?,
        from: cursor.number()?,
        to: cursor.number()?,
    };
    match names.life {
        0 => Err(Malformed),
        _ => Ok(names),
    }
}

/// The numbers that every message has, in the order in which they are written.
const fn place_of(message: &Message) -> [u64; 4] {
    [
        message.term,
        message.log_term,
        message.index,
        message.commit,
    ]
}

/// The numbers of a rejection or a vote that say where logs may agree.
const fn hint_of(message: &Message) -> [u64; 2] {
    [message.commit_term, message.reject_hint]
}

const fn has_hint(message: &Message) -> bool {
    message.commit_term != 0 || message.reject_hint != 0
}

/// Appends a message to a parcel.
///
/// # Panics
/// If the message cannot be encoded; see [`Parcel::carries`].
pub(crate) fn put_message(out: &mut Vec<u8>, message: &Message) {
    let number = number_of(message.msg_type);
    assert!(number != 0, "only messages with a number are sent");
    let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
    let (context, has_hint) = (&message.context, has_hint(message));
    let bits = bit(message.reject, REJECTS)
        | bit(!context.is_empty(), HAS_CONTEXT)
        | bit(has_hint, HAS_HINT);
    out.reserve(Parcel::RESPONSE);
    out.push(number | bits);
    for number in place_of(message) {
        put_number(out, number);
    }
    if has_hint {
        for number in hint_of(message) {
            put_number(out, number);
        }
    }
    if !context.is_empty() {
        let len = u8::try_from(context.len()).expect("the node's own, of eight bytes");
        out.push(len);
        out.extend_from_slice(context);
    }
    if is_append(message) {
        put_number(out, message.entries.len() as u64);
        for entry in &message.entries {
            let data = bytes_of(entry);
            put_number(out, entry.term);
            put_number(out, data.len() as u64);
            out.extend_from_slice(data);
        }
    }
}

/// The bytes of a parcel, and a copy of them for entries.
struct Source<'a> {
    bytes: &'a [u8],
    copies: &'a mut Copies,
    /// The offset at which the first entry begins, and a copy of the bytes from there on. All
    /// entries of a parcel share the copy, because the log drops them at about the same time.
    copy: Option<(usize, Shared)>,
}

impl Source<'_> {
    /// The offset that a cursor has reached.
    const fn at(&self, cursor: &Cursor<'_>) -> usize {
        self.bytes.len() - cursor.0.len()
    }

    /// Makes an entry with these bytes, which end at the cursor.
    fn entry(&mut self, term: u64, index: u64, data: &[u8], cursor: &Cursor<'_>) -> Entry {
        let end = self.at(cursor);
        let begin = end - data.len();
        if self.copy.is_none() && cursor.0.is_empty() {
            return self.copies.copy(data).into_entry(term, index);
        }
        let (base, copy) = self
            .copy
            .get_or_insert_with(|| (begin, self.copies.copy(&self.bytes[begin..])));
        copy.entry(term, index, begin - *base..end - *base)
    }
}

fn take_message(
    cursor: &mut Cursor<'_>,
    source: &mut Source<'_>,
    message: &mut Message,
) -> Result<(), Malformed> {
    let first = cursor.u8()?;
    let kind = KINDS.get(usize::from(first & KIND)).copied().flatten();
    message.msg_type = kind.ok_or(Malformed)?;
    message.reject = first & REJECTS != 0;
    message.term = cursor.number()?;
    message.log_term = cursor.number()?;
    message.index = cursor.number()?;
    message.commit = cursor.number()?;
    if first & HAS_HINT != 0 {
        message.commit_term = cursor.number()?;
        message.reject_hint = cursor.number()?;
    }
    let bits = KIND | REJECTS | HAS_CONTEXT | HAS_HINT;
    let has_hint = has_hint(message);
    if first & !bits != 0 || has_hint != (first & HAS_HINT != 0) || !is_in_range(message) {
        return Err(Malformed);
    }
    if first & HAS_CONTEXT != 0 {
        let len = usize::from(cursor.u8()?);
        if !(1..=MAX_CONTEXT).contains(&len) {
            return Err(Malformed);
        }
        message.context = cursor.bytes(len)?.to_vec().into();
    }
    if is_append(message) {
        message.entries = take_entries(cursor, source, message)?.into();
    }
    Ok(())
}

fn is_append(message: &Message) -> bool {
    message.msg_type == MessageType::MsgAppend
}

/// Whether Raft can take the numbers. Raft would take a message of term 0 as a message of its own
/// node, and an append after an entry of term 0 as one that fits anywhere.
fn is_in_range(message: &Message) -> bool {
    let fits = |numbers: &[u64]| numbers.iter().all(|it| *it <= MAX_INDEX);
    fits(&place_of(message))
        && fits(&hint_of(message))
        && message.term > 0
        && (message.log_term > 0 || !is_append(message))
}

/// Whether replicas can apply an entry with these bytes.
fn is_applicable(data: &[u8]) -> bool {
    let is_write = Request::decode(data).is_ok_and(|it| !it.operation.is_read());
    data.is_empty() || is_write || Change::decode(data).is_ok()
}

/// Reads the entries of a message. Their terms never decrease, and no entry has a later term than
/// the message.
fn take_entries(
    cursor: &mut Cursor<'_>,
    source: &mut Source<'_>,
    message: &Message,
) -> Result<Vec<Entry>, Malformed> {
    let count = cursor.number_of_parts(LEAST_ENTRY)?;
    let mut entries = source.copies.list();
    entries.reserve(count.min(EXPECTED));
    let (mut term, mut index) = (message.log_term, message.index);
    for _ in 0..count {
        index = index.checked_add(1).ok_or(Malformed)?;
        let next = cursor.number()?;
        let len = cursor.number_of_parts(1)?;
        let data = cursor.bytes(len)?;
        if next < term || next > message.term || !is_applicable(data) {
            return Err(Malformed);
        }
        term = next;
        entries.push(source.entry(term, index, data, cursor));
    }
    Ok(entries)
}
