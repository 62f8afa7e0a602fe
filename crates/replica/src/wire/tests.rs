//! Golden vectors, and bytes that are refused.

mod orders;
mod states;

use raft::eraftpb::{Entry, Message, MessageType};

use super::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

const NAME: Name = Name {
    client: 0x0807_0605_0403_0201,
    number: 7,
    first: 5,
};

fn word(number: u8) -> String {
    format!("{number:02x}") + "00000000000000"
}

/// Requests and their bytes.
fn requests() -> Vec<(Request<'static>, String)> {
    let name = "0102030405060708".to_owned() + "02" + "07";
    let write = |head: &str, rest: &str| head.to_owned() + &name + rest;
    let cas = Operation::CompareAndSet(9, b"value");
    vec![
        (Request::get(b"key"), "020103006b6579".to_owned()),
        (Request::OPEN, "02020000".to_owned()),
        (
            Request::write(NAME, b"key", Operation::Put(b"value")),
            write("02030300", "6b657976616c7565"),
        ),
        (
            Request::write(NAME, b"k", Operation::Delete),
            write("02040100", "6b"),
        ),
        (
            Request::write(NAME, b"key", cas),
            write("02050300", "096b657976616c7565"),
        ),
        (
            Request::write(NAME, b"k", Operation::PutFor(300, b"v")),
            write("02080100", "ac026b76"),
        ),
        (
            Request::range(b"k", 9, b"ka"),
            "02070100096b6b61".to_owned(),
        ),
        (Request::watch(b"k", 9), "020a0100096b".to_owned()),
        (Request::clock(9), "0209000009".to_owned()),
    ]
}

#[test]
fn a_name_with_more_writes_under_way_than_any_client_has_is_refused() {
    let write = |first| {
        let name = Name {
            number: 300,
            first,
            ..NAME
        };
        Request::write(name, b"k", Operation::Delete)
    };
    assert_eq!(Request::decode(&write(45).to_bytes()), Ok(write(45)));
    assert!(!write(44).is_in_range() && !write(301).is_in_range());
    let with = |open: u8, number: u8| {
        let head = &write(300).to_bytes()[..12];
        let bytes = [head, &[open, number], b"k"].concat();
        Request::decode(&bytes).map(|it| it.name.unwrap().first)
    };
    assert_eq!((with(8, 9), with(9, 9)), (Ok(1), Err(Malformed)));
    assert_eq!(
        with(10, 9),
        Err(Malformed),
        "fewer writes than are under way"
    );
}

#[test]
fn a_transaction_has_its_bytes() {
    let compares = [Compare {
        key: b"k",
        version: 3,
    }];
    let put = Write::Put {
        key: b"a",
        value: b"v",
        lifetime: 5,
    };
    let writes = [put, Write::Delete { key: b"b" }];
    let bytes = Steps::encode(&compares, &writes);
    let counts = "01000000".to_owned() + "02000000";
    let compare = word(3) + "01000000" + "6b";
    let put = word(1) + &word(5) + "01000000" + "61" + "01000000" + "76";
    let delete = word(2) + &word(0) + "01000000" + "62" + "00000000";
    assert_eq!(hex(&bytes), counts + &compare + &put + &delete);
    let steps = Steps::decode(&bytes).unwrap();
    assert!(steps.compares().eq(compares) && steps.writes().eq(writes) && steps.has_lifetimes());
    let request = Request::write(NAME, b"", Operation::Transact(steps));
    assert_eq!(Request::decode(&request.to_bytes()), Ok(request));
    for len in 0..bytes.len() {
        assert_eq!(Steps::decode(&bytes[..len]), Err(Malformed), "{len} bytes");
    }
    let twice = [Write::Delete { key: b"b" }, put_of(b"b")];
    assert_eq!(Steps::decode(&Steps::encode(&[], &twice)), Err(Malformed));
    let empty = [Write::Delete { key: b"" }];
    assert_eq!(Steps::decode(&Steps::encode(&[], &empty)), Err(Malformed));
    let many: Vec<Vec<u8>> = (0..=MAX_STEPS)
        .map(|it| it.to_le_bytes().to_vec())
        .collect();
    let many: Vec<Write<'_>> = many.iter().map(|key| put_of(key)).collect();
    assert!(Steps::decode(&Steps::encode(&[], &many[1..])).is_ok());
    assert_eq!(Steps::decode(&Steps::encode(&[], &many)), Err(Malformed));
}

fn put_of(key: &[u8]) -> Write<'_> {
    Write::Put {
        key,
        value: b"",
        lifetime: 0,
    }
}

#[test]
fn requests_have_their_bytes() {
    for (request, expected) in requests() {
        let bytes = request.to_bytes();
        assert_eq!(hex(&bytes), expected, "{request:?}");
        assert_eq!(Request::decode(&bytes), Ok(request));
    }
}

#[test]
fn answers_have_their_bytes() {
    let golden = [
        (Answer::Found(3, b"v".to_vec()), "0101", 3, "76"),
        (Answer::Missing, "0102", 0, ""),
        (Answer::Written(4), "0103", 4, ""),
        (Answer::Differs(5), "0104", 5, ""),
        (Answer::Deleted(6), "0105", 6, ""),
        (Answer::Opened(7), "0106", 7, ""),
        (Answer::Moved(b"a:1".to_vec()), "0107", 0, "613a31"),
        (Answer::Expired, "0108", 0, ""),
        (Answer::Busy, "0109", 0, ""),
        (Answer::Full, "0120", 0, ""),
        (Answer::Misnamed, "010a", 0, ""),
        (Answer::Conflict(2), "010b", 2, ""),
        (
            Answer::Items {
                more: true,
                items: vec![Found {
                    version: 9,
                    key: b"k".to_vec(),
                    value: b"v".to_vec(),
                }],
            },
            "010c",
            1,
            "0900000000000000010000006b0100000076",
        ),
        (
            Answer::Events {
                next: 10,
                events: vec![Event {
                    index: 9,
                    key: b"k".to_vec(),
                    kind: EventKind::Put(b"v".to_vec()),
                }],
            },
            "010d",
            10,
            "09000000000000000100000000000000010000006b0100000076",
        ),
        (Answer::Forgotten(7), "010e", 7, ""),
    ];
    for (answer, kind, number, tail) in golden {
        let mut bytes = vec![0xff; answer.size()];
        answer.encode(&mut bytes);
        let expected = kind.to_owned() + "000000000000" + &word(number) + tail;
        assert_eq!(hex(&bytes), expected, "{answer:?}");
        assert_eq!(Answer::decode(&bytes), Ok(answer));
    }
    for item in [Some((3, &b"v"[..])), None] {
        let mut bytes = vec![0xff; Answer::size_of(item)];
        Answer::encode_item(item, &mut bytes);
        let answer = item.map_or(Answer::Missing, |(version, value)| {
            Answer::Found(version, value.to_vec())
        });
        assert_eq!(Answer::decode(&bytes), Ok(answer));
    }
}

fn members() -> Members {
    let member = |id: u64| Member {
        id,
        address: format!("h{id}"),
    };
    Members::new([2, 1, 3].map(member)).unwrap()
}

/// The bytes of a write.
fn put() -> Vec<u8> {
    Request::write(NAME, b"k", Operation::Delete).to_bytes()
}

fn append() -> Parcel {
    let entry = |term, index, data: &[u8]| Entry {
        term,
        index,
        data: data.to_vec().into(),
        ..Entry::default()
    };
    let message = Message {
        msg_type: MessageType::MsgAppend,
        from: 1,
        to: 2,
        term: 6,
        log_term: 5,
        index: 9,
        commit: 8,
        context: vec![0xcc].into(),
        entries: vec![entry(5, 10, &put()), entry(6, 11, b"")].into(),
        ..Message::default()
    };
    let rejection = Message {
        msg_type: MessageType::MsgAppendResponse,
        from: 1,
        to: 2,
        term: 6,
        reject: true,
        reject_hint: 3,
        commit_term: 4,
        ..Message::default()
    };
    Parcel {
        names: Some(Names {
            cluster: 7,
            from: 1,
            to: 2,
            life: 3,
        }),
        are_two: false,
        messages: vec![message, rejection],
    }
}

#[test]
fn parcels_have_their_bytes() {
    let head = "0302".to_owned() + &[7, 3].map(word).concat() + "0102";
    // Kind and bits, then numbers, the context, and the entries.
    let message = "2106050908".to_owned() + "01cc" + "02";
    let entries = "050f".to_owned() + &hex(&put()) + "0600";
    let rejection = "52060000000403";
    let bytes = append().to_bytes();
    let messages = message + &entries + rejection;
    assert_eq!(hex(&bytes), head + &messages);
    assert_eq!(Parcel::decode(&bytes), Ok(append()));
    let mut later = append();
    (later.names, later.are_two) = (None, true);
    for message in &mut later.messages {
        (message.from, message.to) = (0, 0);
    }
    let bytes = later.to_bytes();
    assert_eq!(hex(&bytes), "0301".to_owned() + &messages);
    assert_eq!(Parcel::decode(&bytes), Ok(later));
    assert_eq!(Parcel::decode(&[3, 4]), Err(Malformed));
}

#[test]
fn messages_with_which_raft_would_panic_are_refused() {
    let refuses = |change: &dyn Fn(&mut Message)| {
        let mut parcel = append();
        change(&mut parcel.messages[0]);
        assert_eq!(Parcel::decode(&parcel.to_bytes()), Err(Malformed));
    };
    refuses(&|it| (it.term, it.log_term, it.entries) = (0, 0, Vec::new().into()));
    refuses(&|it| it.log_term = 0);
    refuses(&|it| it.term = u64::MAX);
    refuses(&|it| it.index = u64::MAX - 9);
    refuses(&|it| it.commit = u64::MAX);
    let get = Request::get(b"key").to_bytes();
    for data in [b"garbage".to_vec(), get, [put(), vec![0]].concat()] {
        refuses(&|it| it.entries[0].data = data.clone().into());
    }
}

#[test]
fn a_put_takes_few_bytes_on_the_way_to_a_follower() {
    let write = Request::write(NAME, &[7; 16], Operation::Put(&[7; 64])).to_bytes();
    let mut parcel = append();
    let message = &mut parcel.messages[0];
    (message.index, message.commit) = (100_000, 100_000);
    message.context = Vec::new().into();
    message.entries = vec![Entry {
        term: 6,
        index: 100_001,
        data: write.clone().into(),
        ..Entry::default()
    }]
    .into();
    parcel.messages.truncate(1);
    parcel.names = None;
    (parcel.messages[0].from, parcel.messages[0].to) = (0, 0);
    assert_eq!(write.len(), 16 + 64 + 14);
    assert_eq!(parcel.to_bytes().len(), write.len() + 14);
    assert_eq!(Parcel::decode(&parcel.to_bytes()), Ok(parcel));
}

#[test]
fn entries_of_several_messages_have_their_own_bytes() {
    let mut parcel = append();
    let mut later = parcel.messages[0].clone();
    // Longer than the writes that share an allocation with their reference count.
    let value = vec![0x76; 1000];
    let write = Request::write(NAME, b"long", Operation::Put(&value)).to_bytes();
    later.index = 11;
    later.entries[0].index = 12;
    later.entries[0].data = write.into();
    later.entries[1].index = 13;
    parcel.messages.push(later);
    assert_eq!(Parcel::decode(&parcel.to_bytes()), Ok(parcel));
}

#[test]
fn the_limit_of_messages_bounds_the_memory_that_a_parcel_reserves() {
    let short = append().messages[1].clone();
    let of = |count: usize| Parcel {
        messages: vec![short.clone(); count],
        ..append()
    };
    assert_eq!(Parcel::decode(&of(256).to_bytes()), Ok(of(256)));
    assert_eq!(Parcel::decode(&of(257).to_bytes()), Err(Malformed));
}

#[test]
fn pieces_have_their_bytes() {
    let piece = Piece {
        cluster: 7,
        from: 1,
        to: 2,
        term: 6,
        place: (9, 5),
        total: 20,
        offset: 17,
        bytes: b"end",
    };
    let mut bytes = vec![0xff; Piece::HEAD + 3];
    piece.encode(&mut bytes);
    let words = [7, 1, 2, 6, 9, 5, 20, 17].map(word).concat();
    assert_eq!(
        hex(&bytes),
        "0100000000000000".to_owned() + &words + "656e64"
    );
    assert_eq!(Piece::decode(&bytes), Ok(piece));
    let sound = piece;
    for piece in [
        Piece {
            place: (9, 0),
            ..sound
        },
        Piece {
            place: (9, 7),
            ..sound
        },
        Piece {
            place: (u64::MAX, 5),
            ..sound
        },
        Piece {
            term: u64::MAX,
            ..sound
        },
    ] {
        let mut bytes = bytes.clone();
        piece.encode(&mut bytes);
        assert_eq!(Piece::decode(&bytes), Err(Malformed), "{piece:?}");
    }
    bytes.push(0);
    assert_eq!(
        Piece::decode(&bytes),
        Err(Malformed),
        "it ends after the snapshot"
    );
    assert_eq!(Piece::decode(&bytes[..Piece::HEAD - 1]), Err(Malformed));
}

/// The bytes of the only message of a parcel.
fn message_of(parcel: &Parcel) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_message(&mut bytes, &parcel.messages[0]);
    bytes
}

#[test]
fn neither_a_prefix_nor_a_longer_message_decodes() {
    let refuses = |bytes: &[u8], decode: &dyn Fn(&[u8]) -> bool| {
        assert!(decode(bytes));
        for len in 0..bytes.len() {
            assert!(!decode(&bytes[..len]), "{len} of {}", bytes.len());
        }
        assert!(!decode(&[bytes, &[0]].concat()));
    };
    let one = Parcel {
        messages: vec![append().messages.remove(0)],
        ..append()
    };
    // Bytes that end at the boundary of a message are a parcel.
    let names = one.to_bytes().len() - message_of(&one).len();
    refuses(&one.to_bytes(), &|it| {
        Parcel::decode(it).is_ok_and(|it| !it.messages.is_empty())
    });
    refuses(&one.to_bytes()[..names], &|it| Parcel::decode(it).is_ok());
    refuses(&members().to_bytes(), &|it| Members::decode(it).is_ok());
    refuses(&Status::idle(3).to_bytes(), &|it| {
        Status::decode(it).is_ok()
    });
    let open = Request::OPEN.to_bytes();
    refuses(&open, &|it| Request::decode(it).is_ok());
}

#[test]
fn a_changed_byte_decodes_to_its_own_bytes_or_not_at_all() {
    let parcel = append().to_bytes();
    for at in 0..parcel.len() {
        for bit in 0..8 {
            let mut bytes = parcel.clone();
            bytes[at] ^= 1 << bit;
            if let Ok(parcel) = Parcel::decode(&bytes) {
                assert_eq!(parcel.to_bytes(), bytes);
            }
        }
    }
    for (request, _) in requests() {
        let sound = request.to_bytes();
        for at in 0..sound.len() {
            for bit in 0..8 {
                let mut bytes = sound.clone();
                bytes[at] ^= 1 << bit;
                if let Ok(request) = Request::decode(&bytes) {
                    assert_eq!(request.to_bytes(), bytes);
                }
            }
        }
    }
}

#[test]
fn requests_with_wrong_lengths_or_numbers_are_refused() {
    let long = vec![b'k'; MAX_KEY + 1];
    let value = vec![0; MAX_VALUE + 1];
    let behind = Name { number: 4, ..NAME };
    let bad = [
        Request::get(b""),
        Request::get(&long),
        Request::write(NAME, b"k", Operation::Put(&value)),
        Request::write(behind, b"k", Operation::Delete),
        Request::write(Name { client: 0, ..NAME }, b"k", Operation::Delete),
        Request::write(Name { first: 0, ..NAME }, b"k", Operation::Delete),
    ];
    for request in bad {
        assert_eq!(Request::decode(&request.to_bytes()), Err(Malformed));
    }
}

#[test]
fn even_and_empty_clusters_and_duplicate_members_are_refused() {
    let member = |id: u64, address: &str| Member {
        id,
        address: address.to_owned(),
    };
    let refused = |members: &[Member]| Members::new(members.to_vec()).unwrap_err();
    assert_eq!(refused(&[]), MembersError::Count(0));
    assert_eq!(
        refused(&[member(1, "a"), member(2, "b")]),
        MembersError::Count(2)
    );
    let (first, second) = (member(1, "a"), member(2, "b"));
    let double = [first.clone(), second.clone(), member(2, "c")];
    assert_eq!(refused(&double), MembersError::Id(2));
    let without = [member(0, "z"), first.clone(), second.clone()];
    assert_eq!(refused(&without), MembersError::Id(0));
    assert_eq!(
        refused(&[first, second, member(3, "a")]),
        MembersError::Address
    );
}
