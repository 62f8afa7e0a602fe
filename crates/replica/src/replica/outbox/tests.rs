//! Long messages and short ones, and appends to several followers.

use raft::eraftpb::Entry;

use super::*;
use crate::wire::{Name, Operation, Request};

/// An append with one entry, whose value has this length.
fn append(to: u64, index: u64, len: usize) -> Message {
    let name = Name {
        client: 1,
        number: 1,
        first: 1,
    };
    let write = Request::write(name, b"k", Operation::Put(&vec![0x76; len])).to_bytes();
    let entry = Entry {
        term: 2,
        index: index + 1,
        data: write.into(),
        ..Entry::default()
    };
    Message {
        msg_type: MessageType::MsgAppend,
        to,
        term: 2,
        log_term: 2,
        index,
        entries: vec![entry].into(),
        ..Message::default()
    }
}

fn answer(to: u64) -> Message {
    Message {
        msg_type: MessageType::MsgAppendResponse,
        to,
        term: 2,
        ..Message::default()
    }
}

/// The messages in each parcel to member 1.
fn packed(most: usize, messages: &[Message]) -> Vec<Vec<Message>> {
    let mut parcels = Vec::new();
    Packer::new(most).pack(1, messages, |bytes| {
        let parcel = Parcel::decode(bytes).unwrap();
        parcels.push(parcel.messages);
    });
    parcels
}

#[test]
fn long_messages_travel_apart_and_short_ones_together() {
    let (long, short) = (append(1, 5, 500), answer(1));
    let sole = |message: &Message| {
        let mut bytes = Vec::new();
        put_message(&mut bytes, message);
        bytes.len()
    };
    let most = sole(&long) + sole(&short);
    let messages = [&short, &long, &answer(2), &long, &short, &short].map(Message::clone);
    let lengths = |most| -> Vec<usize> { packed(most, &messages).iter().map(Vec::len).collect() };
    assert_eq!(lengths(most), [2, 2, 1]);
    assert_eq!(lengths(usize::MAX), [5]);
    assert_eq!(lengths(0), [1; 5]);
    assert_eq!(packed(most, &[answer(2)]), Vec::<Vec<Message>>::new());
    let own = messages.iter().filter(|it| it.to == 1);
    let unsigned = |it: &Message| Message {
        to: 0,
        ..it.clone()
    };
    assert_eq!(
        packed(most, &messages).concat(),
        own.map(unsigned).collect::<Vec<_>>()
    );
    let many = packed(usize::MAX, &vec![short; 257]);
    assert_eq!(many.iter().map(Vec::len).collect::<Vec<_>>(), [256, 1]);
}

#[test]
fn an_append_to_another_follower_has_its_own_bytes_if_it_differs() {
    let alike = [append(1, 5, 9), append(2, 5, 9)];
    let later = [append(1, 5, 9), append(2, 6, 9)];
    let answered = [append(1, 5, 9), answer(2)];
    for messages in [alike, later, answered] {
        let mut packer = Packer::new(usize::MAX);
        for (to, message) in (1..).zip(&messages) {
            let mut expected = vec![3, 0];
            put_message(&mut expected, message);
            let mut sent = Vec::new();
            packer.pack(to, &messages, |bytes| sent.push(bytes.to_vec()));
            assert_eq!(sent, [expected]);
        }
    }
}

#[test]
fn answers_leave_once_and_no_more_than_there_is_room_for() {
    let mut messages = vec![answer(1), append(1, 5, 9), answer(2), answer(1), answer(1)];
    let mut packer = Packer::new(usize::MAX);
    let mut two = Vec::new();
    put_message(&mut two, &answer(1));
    two.extend_from_within(..);
    two.splice(..0, [3, 0]);
    assert_eq!(packer.pack_answers(1, &mut messages, 2), two);
    let mut left = Vec::new();
    packer.pack(1, &messages, |bytes| {
        left = Parcel::decode(bytes).unwrap().messages;
    });
    let kinds: Vec<MessageType> = left.iter().map(|it| it.msg_type).collect();
    assert_eq!(
        kinds,
        [MessageType::MsgAppend, MessageType::MsgAppendResponse]
    );
}
