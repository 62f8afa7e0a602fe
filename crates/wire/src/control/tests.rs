//! Control messages: round trips, limits in both directions, and no panic on any input.

use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::{ReqNum, SessionNum, Token, check};

mod limits;

const MESSAGE_TYPES: u8 = 20;

/// The owned contents of a message, from which messages borrow.
#[derive(Clone, Debug)]
struct Material {
    kind: u8,
    numbers: [u64; 3],
    id: [u8; 16],
    window_log2: u8,
    data_size: u32,
    small: u16,
    requests: Vec<u8>,
    fates: Vec<u8>,
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
                    requests: requests(small),
                    fates: fates(small),
                    unix_name,
                    detail,
                    offers,
                }
            },
        )
}

fn requests(seed: u16) -> Vec<u8> {
    let count = 1 + usize::from(seed) % MAX_INQUIRED;
    (0..count * 4).map(|at| at.to_le_bytes()[0]).collect()
}

fn fates(seed: u16) -> Vec<u8> {
    let [low, _] = seed.to_le_bytes();
    let of = |at: u8| [at, low, at, low, at.wrapping_add(low) % 5];
    (0..low % 65).flat_map(of).collect()
}

impl Material {
    fn half(&self, number: usize) -> u32 {
        u32::try_from(self.numbers[number] >> 32).expect("the upper half has 32 bits")
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
            offers: Offers::new(&offers).expect("the offers are within the limits"),
        }
    }

    fn inquiry(&self, session: SessionRef) -> Inquiry<'_> {
        let requests = Requests(&self.requests);
        Inquiry { session, requests }
    }

    fn account(&self, session: SessionRef) -> Account<'_> {
        let (away, fates) = match self.small % 3 {
            0 => (self.numbers[0].max(1), Fates::NONE),
            _ => (0, Fates(&self.fates)),
        };
        Account {
            session,
            away,
            fates,
        }
    }

    fn serving(&self) -> Serving {
        let has_health = self.small < u16::MAX && self.small.is_multiple_of(3);
        Serving {
            draining: self.small.is_multiple_of(2),
            endpoints: self.small,
            health: has_health.then_some(EndpointIndex(self.small)),
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
            3 => Message::Connect(Connect {
                attempt,
                target: EndpointIndex(self.small),
                client: self.side(),
            }),
            4 => Message::Accept(Accept {
                attempt,
                server: self.side(),
            }),
            5 => Message::Refuse(Refuse {
                attempt,
                code: RefuseCode::ALL[pick % RefuseCode::ALL.len()],
                detail: &self.detail,
            }),
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
            14 => Message::InsightRead(InsightRead {
                offset: counter,
                len: self.small % 4001,
            }),
            15 => Message::Insight(Insight {
                offset: counter,
                bytes: self.detail.as_bytes(),
            }),
            16 => Message::Inquiry(self.inquiry(session)),
            17 => Message::Account(self.account(session)),
            18 => Message::Nonce { nonce: counter },
            19 => Message::Proof { secret: counter },
            20 => Message::Serving(self.serving()),
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
    fn a_message_survives_encoding_and_decoding(material in material()) {
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
        let mut frame = vec![CONTROL_VERSION, kind];
        frame.extend(body);
        check::control_body(&frame);
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

/// Messages without random parts, for tests of single limits.
fn sample(kind: u8) -> Material {
    Material {
        kind,
        numbers: [1 << 32, 2 << 32, 64 << 32],
        id: [3; 16],
        window_log2: 3,
        data_size: 1440,
        small: 8,
        requests: requests(7),
        fates: fates(7),
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
        "bytes follow the frame"
    );
    frame.truncate(frame.len() - 2);
    assert_eq!(
        Message::decode(&frame),
        Err(ControlError::Length),
        "the frame is cut off"
    );
}

#[test]
fn bytes_after_the_last_field_are_refused() {
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
