//! The limits of single fields, in written and read messages.

use std::format;
use std::string::ToString;

use super::*;

#[test]
fn a_side_is_checked_in_both_directions() {
    let material = sample(4);
    let good = material.side();
    let accept = |server| {
        Message::Accept(Accept {
            attempt: AttemptId(1),
            server,
        })
    };
    let first_req = ReqNum(4);
    let bad = [
        (
            Field::Window,
            SessionSide {
                window_log2: 7,
                ..good
            },
        ),
        (Field::Credits, SessionSide { credits: 0, ..good }),
        (
            Field::DataSize,
            SessionSide {
                data_size: 15,
                ..good
            },
        ),
        (
            Field::DataSize,
            SessionSide {
                data_size: MAX_DATA_SIZE + 1,
                ..good
            },
        ),
        (
            Field::MaxMessage,
            SessionSide {
                max_message: MAX_MESSAGE + 1,
                ..good
            },
        ),
        (
            Field::MaxMessage,
            SessionSide {
                data_size: 16,
                max_message: (1 << 28) - 15,
                ..good
            },
        ),
        (Field::FirstReq, SessionSide { first_req, ..good }),
    ];
    // The offset of the fields after length, version, type, attempt, endpoint, session and token.
    let at = 4 + 2 + 8 + 16 + 4 + 4;
    for (field, side) in bad {
        let mut out = [0; MAX_FRAME];
        assert_eq!(
            accept(side).encode(&mut out),
            Err(ControlError::Value(field))
        );
        let mut frame = encoded(&accept(good));
        frame[at] = side.window_log2;
        frame[at + 1..at + 3].copy_from_slice(&side.credits.to_le_bytes());
        frame[at + 3..at + 7].copy_from_slice(&side.data_size.to_le_bytes());
        frame[at + 7..at + 11].copy_from_slice(&side.max_message.to_le_bytes());
        frame[at + 11..at + 15].copy_from_slice(&side.first_req.0.to_le_bytes());
        assert_eq!(Message::decode(&frame), Err(ControlError::Value(field)));
    }
}

#[test]
fn offers_are_limited_in_number_bytes_and_descriptors() {
    let offer = |fds, bytes| Offer {
        kind: TransportKind::SHM,
        fds,
        bytes,
    };
    let bad = |field| Err(ControlError::Value(field));
    assert_eq!(Offers::new(&[offer(0, &[]); 5]), bad(Field::OfferCount));
    assert_eq!(Offers::new(&[offer(5, &[])]), bad(Field::OfferFds));
    assert_eq!(Offers::new(&[offer(0, &[0; 257])]), bad(Field::OfferBytes));
    let most = Offers::new(&[offer(4, &[0; 256]); 4]).expect("the offers are at their limits");
    assert_eq!(most.fd_count(), 16);
    assert_eq!(format!("{:?}", Offers::default()), "[]");
}

#[test]
fn a_hello_has_a_range_of_versions() {
    let material = sample(1);
    let hello = |min_version, max_version| Hello {
        min_version,
        max_version,
        ..material.hello()
    };
    let mut out = [0; MAX_FRAME];
    for (min, max) in [(0, 1), (2, 1), (0, 0)] {
        let bad = Message::Hello(hello(min, max)).encode(&mut out);
        assert_eq!(bad, Err(ControlError::Value(Field::VersionRange)));
    }
    assert_eq!(hello(1, 3).common_version(&hello(2, 9)), Some(3));
    assert_eq!(hello(2, 9).common_version(&hello(1, 3)), Some(3));
    assert_eq!(hello(1, 1).common_version(&hello(2, 9)), None);
}

#[test]
fn texts_are_limited_and_cannot_steer_a_terminal() {
    let mut out = [0; MAX_FRAME];
    let mut refusal = |detail: &str| {
        let code = RefuseCode::Busy;
        Message::Refuse(Refuse {
            attempt: AttemptId(1),
            code,
            detail,
        })
        .encode(&mut out)
    };
    assert!(refusal(&"x".repeat(128)).is_ok());
    for bad in ["x".repeat(129), "x".repeat(256), "\u{1b}[2J".to_string()] {
        assert_eq!(refusal(&bad), Err(ControlError::Value(Field::Detail)));
    }

    let good = encoded(&sample(5).message());
    let text_at = good.len() - "later".len();
    for bad in [0xFF, 0x1B, b'\n'] {
        let mut frame = good.clone();
        frame[text_at] = bad;
        assert_eq!(
            Message::decode(&frame),
            Err(ControlError::Value(Field::Detail))
        );
    }
}

#[test]
fn numbers_without_a_meaning_are_refused() {
    for (kind, highest, field) in [
        (5, 9, Field::Code),
        (8, 4, Field::Reason),
        (11, 7, Field::Reason),
    ] {
        let good = encoded(&sample(kind).message());
        let place = if kind == 5 { 4 + 2 + 8 } else { good.len() - 1 };
        for number in 0..=u8::MAX {
            let mut frame = good.clone();
            frame[place] = number;
            let known = (1..=highest).contains(&number);
            let expected = if known {
                None
            } else {
                Some(ControlError::Value(field))
            };
            assert_eq!(
                Message::decode(&frame).err(),
                expected,
                "type {kind}, number {number}"
            );
        }
    }
}

#[test]
fn a_found_endpoint_has_an_index_of_its_own() {
    let mut frame = encoded(&sample(13).message());
    let target_at = 4 + 2 + 8;
    frame[target_at..target_at + 2].copy_from_slice(&EndpointIndex::ANY.0.to_le_bytes());
    let bad = Err(ControlError::Value(Field::Target));
    assert_eq!(Message::decode(&frame), bad);
    let Message::Found(found) = sample(13).message() else {
        panic!("message 13 is not Found");
    };
    let any = Message::Found(Found {
        target: EndpointIndex::ANY,
        ..found
    });
    assert_eq!(any.encode(&mut [0; MAX_FRAME]).err(), bad.err());
}

#[test]
fn errors_name_the_field() {
    let text = ControlError::Value(Field::Credits).to_string();
    assert!(text.contains("`credits`"), "{text}");
    let text = ControlError::Short(Field::OfferBytes).to_string();
    assert!(text.contains("`offer bytes`"), "{text}");
}
