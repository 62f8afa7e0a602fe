//! Control messages: round trips, limits in both directions, and no panic on anything.

use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, vec};

use proptest::prelude::*;

use super::*;
use crate::{ReqNum, SessionNum, Token, check};

const MESSAGE_TYPES: u8 = 13;

/// Everything that any message can be made of. Messages borrow from it.
#[derive(Clone, Debug)]
struct Material {
    kind: u8,
    numbers: [u64; 3],
    id: [u8; 16],
    window_log2: u8,
    data_size: u32,
    small: u16,
    unix_name: String,
    detail: String,
    offers: Vec<(u8, u8, Vec<u8>)>,
}

fn material() -> impl Strategy<Value = Material> {
    let offer = (
        any::<u8>(),
        0..=MAX_OFFER_FDS,
        prop::collection::vec(any::<u8>(), 0..=256),
    );
    let texts = (
        "\\PC{0,24}",
        "\\PC{0,24}",
        prop::collection::vec(offer, 0..=MAX_OFFERS),
    );
    let limited = (
        0..=MAX_WINDOW_LOG2,
        MIN_DATA_SIZE..=MAX_DATA_SIZE,
        1..=u16::MAX,
    );
    (
        1..=MESSAGE_TYPES,
        any::<[u64; 3]>(),
        any::<[u8; 16]>(),
        limited,
        texts,
    )
        .prop_map(
            |(kind, numbers, id, (window_log2, data_size, small), (unix_name, detail, offers))| {
                Material {
                    kind,
                    numbers,
                    id,
                    window_log2,
                    data_size,
                    small,
                    unix_name,
                    detail,
                    offers,
                }
            },
        )
}

impl Material {
    fn half(&self, number: usize) -> u32 {
        u32::try_from(self.numbers[number] >> 32).expect("half of the bits")
    }

    fn hello(&self) -> Hello<'_> {
        let [version, _] = self.small.to_le_bytes();
        Hello {
            min_version: version.max(1),
            max_version: version.saturating_add(self.window_log2).max(1),
            features: Features(self.half(0)),
            boot_id: BootId(self.id),
            incarnation: Incarnation(self.numbers[1]),
            port: self.small,
            unix_name: &self.unix_name,
        }
    }

    fn side(&self) -> SessionSide<'_> {
        let offers: Vec<_> = self
            .offers
            .iter()
            .map(|(kind, fds, bytes)| Offer {
                kind: TransportKind(*kind),
                fds: *fds,
                bytes,
            })
            .collect();
        let largest = self.data_size.saturating_mul(MAX_PACKETS).min(MAX_MESSAGE);
        SessionSide {
            endpoint: EndpointUid(self.id),
            session: SessionNum(self.half(0)),
            token: Token(self.half(1)),
            window_log2: self.window_log2,
            credits: self.small,
            data_size: self.data_size,
            max_message: self.half(2) % (largest + 1),
            first_req: ReqNum(self.half(2) & !((1 << self.window_log2) - 1)),
            offers: Offers::new(&offers).expect("drawn within the limits"),
        }
    }

    fn message(&self) -> Message<'_> {
        let attempt = AttemptId(self.numbers[2]);
        let session = SessionRef {
            session: SessionNum(self.half(0)),
            token: Token(self.half(1)),
        };
        let counter = self.numbers[0];
        let pick = usize::from(self.small);
        match self.kind {
            1 => Message::Hello(self.hello()),
            2 => Message::HelloAck(self.hello()),
            3 => {
                let target = EndpointIndex(self.small);
                Message::Connect(Connect {
                    attempt,
                    target,
                    client: self.side(),
                })
            }
            4 => Message::Accept(Accept {
                attempt,
                server: self.side(),
            }),
            5 => {
                let code = RefuseCode::ALL[pick % RefuseCode::ALL.len()];
                Message::Refuse(Refuse {
                    attempt,
                    code,
                    detail: &self.detail,
                })
            }
            6 => Message::Disconnect(session),
            7 => Message::DisconnectAck(session),
            8 => {
                let reason = ResetReason::ALL[pick % ResetReason::ALL.len()];
                Message::Reset { session, reason }
            }
            9 => Message::Heartbeat { counter },
            10 => Message::HeartbeatAck { counter },
            11 => {
                let reason = GoodbyeReason::ALL[pick % GoodbyeReason::ALL.len()];
                Message::Goodbye { reason }
            }
            12 => Message::Lookup(Lookup {
                attempt,
                target: EndpointIndex(self.small),
            }),
            _ => {
                let target = EndpointIndex(self.small - 1);
                let endpoint = EndpointUid(self.id);
                Message::Found(Found {
                    attempt,
                    target,
                    endpoint,
                })
            }
        }
    }
}

fn encoded(message: &Message<'_>) -> Vec<u8> {
    let mut out = [0; MAX_FRAME];
    let len = message
        .encode(&mut out)
        .expect("a buffer of MAX_FRAME holds every message");
    out[..len].to_vec()
}

proptest! {
    #[test]
    fn a_message_survives(material in material()) {
        let message = material.message();
        let frame = encoded(&message);
        prop_assert_eq!(message.type_number(), material.kind);
        prop_assert_eq!(frame_len(&frame), Ok(Some(frame.len())));
        prop_assert_eq!(Message::decode(&frame), Ok(message));
        check::control_stream(&frame);
    }

    #[test]
    fn a_stream_is_cut_into_its_messages_however_it_arrives(
        materials in prop::collection::vec(material(), 1..5),
        cut in any::<prop::sample::Index>(),
    ) {
        let frames: Vec<Vec<u8>> = materials.iter().map(|m| encoded(&m.message())).collect();
        let stream = frames.concat();
        check::control_stream(&stream);
        check::control_stream(&stream[..cut.index(stream.len())]);
        for frame in &frames {
            for len in 0..frame.len() {
                prop_assert_eq!(frame_len(&frame[..len]), Ok(None));
            }
        }
    }

    #[test]
    fn mutated_messages_are_read_or_refused(
        material in material(),
        mutations in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut frame = encoded(&material.message());
        for (place, bits) in mutations {
            let place = place.index(frame.len());
            frame[place] ^= bits;
        }
        check::control_stream(&frame);
    }

    #[test]
    fn any_body_is_read_or_refused(
        kind in 0_u8..=MESSAGE_TYPES + 1,
        body in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let length = u32::try_from(body.len() + 2).expect("short");
        let mut frame = length.to_le_bytes().to_vec();
        frame.extend([CONTROL_VERSION, kind]);
        frame.extend(body);
        check::control_stream(&frame);
    }

    #[test]
    fn a_message_that_is_cut_off_names_the_field_where_it_ends(
        material in material(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut frame = encoded(&material.message());
        let len = LENGTH_LEN + 2 + cut.index(frame.len() - LENGTH_LEN - 2);
        frame.truncate(len);
        let body = u32::try_from(len - LENGTH_LEN).expect("short");
        frame[..LENGTH_LEN].copy_from_slice(&body.to_le_bytes());
        prop_assert!(matches!(Message::decode(&frame), Err(ControlError::Short(_))));
    }
}

/// Messages that do not depend on chance, for tests of single limits.
fn sample(kind: u8) -> Material {
    Material {
        kind,
        numbers: [1 << 32, 2 << 32, 64 << 32],
        id: [3; 16],
        window_log2: 3,
        data_size: 1440,
        small: 8,
        unix_name: "/run/dunlin".to_string(),
        detail: "later".to_string(),
        offers: vec![(1, 2, vec![9; 10]), (2, 0, vec![])],
    }
}

#[test]
fn the_largest_message_fits_into_a_frame() {
    let offers = vec![(255, MAX_OFFER_FDS, vec![0xEE; MAX_OFFER_BYTES]); MAX_OFFERS];
    let connect = Material {
        offers,
        ..sample(3)
    };
    assert!(encoded(&connect.message()).len() < MAX_FRAME);
    let name = "n".repeat(usize::from(MAX_UNIX_NAME));
    let hello = Material {
        unix_name: name,
        ..sample(1)
    };
    assert!(encoded(&hello.message()).len() < MAX_FRAME);
}

#[test]
fn lengths_out_of_bounds_are_refused_with_their_fourth_byte() {
    for body in [0, 1, 4097, 65_536, u32::MAX] {
        let length: [u8; 4] = body.to_le_bytes();
        assert_eq!(frame_len(&length[..3]), Ok(None));
        assert_eq!(frame_len(&length), Err(ControlError::Length));
    }
    assert_eq!(frame_len(&4096_u32.to_le_bytes()), Ok(None));
    assert_eq!(frame_len(&[]), Ok(None));
}

#[test]
fn a_frame_is_decoded_only_as_a_whole() {
    let mut frame = encoded(&Message::Heartbeat { counter: 5 });
    frame.push(0);
    assert_eq!(
        Message::decode(&frame),
        Err(ControlError::Length),
        "more than the frame"
    );
    frame.truncate(frame.len() - 2);
    assert_eq!(
        Message::decode(&frame),
        Err(ControlError::Length),
        "less than the frame"
    );
}

#[test]
fn bytes_behind_the_last_field_are_refused() {
    for kind in 1..=MESSAGE_TYPES {
        let mut frame = encoded(&sample(kind).message());
        frame.push(0);
        frame[0] += 1;
        assert_eq!(
            Message::decode(&frame),
            Err(ControlError::Trailing),
            "type {kind}"
        );
    }
}

#[test]
fn other_versions_and_types_are_refused() {
    let good = encoded(&Message::Heartbeat { counter: 5 });
    let with = |place: usize, value: u8| {
        let mut frame = good.clone();
        frame[place] = value;
        Message::decode(&frame).err()
    };
    assert_eq!(with(4, 0), Some(ControlError::Version));
    assert_eq!(with(4, 2), Some(ControlError::Version));
    assert_eq!(with(5, 0), Some(ControlError::Type));
    assert_eq!(with(5, MESSAGE_TYPES + 1), Some(ControlError::Type));
}

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
    // The place of the fields behind length, version, type, attempt, endpoint, session and token.
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
    let most = Offers::new(&[offer(4, &[0; 256]); 4]).expect("at every limit");
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
        (5, 7, Field::Code),
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
fn what_was_found_is_one_endpoint() {
    let mut frame = encoded(&sample(13).message());
    let target_at = 4 + 2 + 8;
    frame[target_at..target_at + 2].copy_from_slice(&EndpointIndex::ANY.0.to_le_bytes());
    let bad = Err(ControlError::Value(Field::Target));
    assert_eq!(Message::decode(&frame), bad);
    let Message::Found(found) = sample(13).message() else {
        panic!("type 13 is Found");
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
