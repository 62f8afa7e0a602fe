//! Vectors of control messages: every type, and every reason to refuse one.

use dunlin_wire::control::{
    Accept, Account, AttemptId, BootId, Connect, EndpointIndex, EndpointUid, Fate, Fates, Features,
    Found, GoodbyeReason, Hello, Incarnation, Inquiry, Insight, InsightRead, Lookup, MAX_FRAME,
    MAX_OFFER_BYTES, Message, Offer, Offers, Refuse, RefuseCode, Requests, ResetReason, Serving,
    SessionRef, SessionSide, TransportKind, frame_len,
};
use dunlin_wire::{ReqNum, SessionNum, Token};

use crate::text::Block;
use fields::{with_error, with_fields};

mod fields;

const ID: [u8; 16] = [
    0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE, 0xFF,
];
const ATTEMPT: AttemptId = AttemptId(0x0102_0304_0506_0708);
const SESSION: SessionRef = SessionRef {
    session: SessionNum(0x0102_0304),
    token: Token(0xA1B2_C3D4),
};

/// Where the body of a frame begins.
const BODY: usize = 6;

const SHM: Offer<'static> = Offer {
    kind: TransportKind::SHM,
    fds: 2,
    bytes: &[1, 2, 3],
};
const UDP: Offer<'static> = Offer {
    kind: TransportKind::UDP,
    fds: 0,
    bytes: &[127, 0, 0, 1, 0x6A, 0x7C],
};

/// A name of 108 bytes.
const LONGEST_NAME: &str = "\
    /run/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/0123456789/\
    dunlin-31850.sk";

/// Named frames, valid or not.
type Named = Vec<(&'static str, Vec<u8>)>;

pub(crate) fn blocks() -> Vec<Block> {
    let all = [
        connections(),
        insight(),
        attempts(),
        sessions(),
        inquiries(),
        bad_frames(),
        bad_connections(),
        bad_attempts(),
        bad_sides(),
        bad_inquiries(),
    ];
    all.concat()
        .iter()
        .map(|(name, frame)| described(name, frame))
        .collect()
}

pub(crate) fn reread(block: &Block) -> Block {
    described(block.get("name"), &block.bytes("hex"))
}

fn encoded(message: &Message<'_>) -> Vec<u8> {
    let mut out = [0; MAX_FRAME];
    let len = message
        .encode(&mut out)
        .expect("the vectors are within the limits");
    out[..len].to_vec()
}

fn hello(unix_name: &str) -> Hello<'_> {
    Hello {
        min_version: 1,
        max_version: 3,
        features: Features(0x8000_0001),
        boot_id: BootId(ID),
        incarnation: Incarnation(0xFEDC_BA98_7654_3210),
        port: 31850,
        unix_name,
    }
}

fn connect(target: EndpointIndex, client: SessionSide<'_>) -> Vec<u8> {
    let attempt = ATTEMPT;
    encoded(&Message::Connect(Connect {
        attempt,
        target,
        client,
    }))
}

fn smallest_side() -> SessionSide<'static> {
    SessionSide {
        window_log2: 0,
        credits: 1,
        data_size: 16,
        max_message: 0,
        first_req: ReqNum(5),
        ..side(&[])
    }
}

fn side<'a>(offers: &[Offer<'a>]) -> SessionSide<'a> {
    SessionSide {
        endpoint: EndpointUid(ID),
        session: SESSION.session,
        token: SESSION.token,
        window_log2: 3,
        credits: 32,
        data_size: 1440,
        max_message: 16 << 20,
        first_req: ReqNum(0xFFFF_FF98),
        offers: Offers::new(offers).expect("the vectors are within the limits"),
    }
}

fn connections() -> Named {
    let listening = hello("/run/dunlin.sock");
    let silent = Hello {
        port: 0,
        ..hello("")
    };
    let reason = GoodbyeReason::Shutdown;
    vec![
        ("hello", encoded(&Message::Hello(listening))),
        ("hello-without-socket", encoded(&Message::Hello(silent))),
        (
            "hello-longest-name",
            encoded(&Message::Hello(hello(LONGEST_NAME))),
        ),
        (
            "hello-ack-abstract-socket",
            encoded(&Message::HelloAck(hello("\0dunlin-31850"))),
        ),
        ("heartbeat", encoded(&Message::Heartbeat { counter: 1 })),
        (
            "heartbeat-ack",
            encoded(&Message::HeartbeatAck { counter: u64::MAX }),
        ),
        ("goodbye", encoded(&Message::Goodbye { reason })),
        (
            "nonce",
            encoded(&Message::Nonce {
                nonce: 0x0102_0304_0506_0708,
            }),
        ),
    ]
}

fn insight() -> Named {
    vec![
        (
            "insight-read",
            encoded(&Message::InsightRead(InsightRead {
                offset: 0x0102_0304,
                len: 4000,
            })),
        ),
        (
            "insight",
            encoded(&Message::Insight(Insight {
                offset: 0x0102_0304,
                bytes: &ID,
            })),
        ),
    ]
}

fn attempts() -> Named {
    let attempt = ATTEMPT;
    let (any, target) = (EndpointIndex::ANY, EndpointIndex(2));
    let endpoint = EndpointUid(ID);
    let longest_offer = Offer {
        bytes: &[0xEE; MAX_OFFER_BYTES],
        ..UDP
    };
    let refuse = |code, detail| {
        let refuse = Refuse {
            attempt,
            code,
            detail,
        };
        encoded(&Message::Refuse(refuse))
    };
    vec![
        (
            "lookup",
            encoded(&Message::Lookup(Lookup { attempt, target })),
        ),
        (
            "lookup-any",
            encoded(&Message::Lookup(Lookup {
                attempt,
                target: any,
            })),
        ),
        (
            "found",
            encoded(&Message::Found(Found {
                attempt,
                target,
                endpoint,
            })),
        ),
        ("connect", connect(target, side(&[SHM, UDP]))),
        (
            "connect-longest-offer",
            connect(target, side(&[longest_offer])),
        ),
        ("connect-any-no-offer", connect(any, side(&[]))),
        ("connect-smallest-session", connect(target, smallest_side())),
        (
            "accept",
            encoded(&Message::Accept(Accept {
                attempt,
                server: side(&[UDP]),
            })),
        ),
        ("refuse-busy", refuse(RefuseCode::Busy, "später wieder")),
        (
            "refuse-foreign-address",
            refuse(RefuseCode::ForeignAddress, ""),
        ),
        (
            "refuse-unproven-address",
            refuse(RefuseCode::UnprovenAddress, ""),
        ),
        (
            "refuse-longest-detail",
            refuse(RefuseCode::BadParameters, &"ä".repeat(64)),
        ),
        (
            "refuse-without-detail",
            refuse(RefuseCode::NoSuchEndpoint, ""),
        ),
    ]
}

fn sessions() -> Named {
    let (session, reason) = (SESSION, ResetReason::DeclaredFailed);
    vec![
        ("disconnect", encoded(&Message::Disconnect(session))),
        ("disconnect-ack", encoded(&Message::DisconnectAck(session))),
        ("reset", encoded(&Message::Reset { session, reason })),
    ]
}

fn inquiries() -> Named {
    let session = SESSION;
    let number = |number: usize| ReqNum(u32::try_from(number).expect("the number is small"));
    let inquiry = |count: usize| {
        let (numbers, mut bytes) = ((0..count).map(number).collect::<Vec<_>>(), [0; 256]);
        let requests = Requests::list(&numbers, &mut bytes).expect("there are at most 64");
        encoded(&Message::Inquiry(Inquiry { session, requests }))
    };
    let account = |away, fates: &[(ReqNum, Fate)]| {
        let mut bytes = [0; 320];
        let fates = Fates::list(fates, &mut bytes).expect("there are at most 64");
        encoded(&Message::Account(Account {
            session,
            away,
            fates,
        }))
    };
    let fates: Vec<_> = (0x0102_0304..).map(ReqNum).zip(Fate::ALL).collect();
    let serving = |draining, endpoints, health: Option<u16>| {
        encoded(&Message::Serving(Serving {
            draining,
            endpoints,
            health: health.map(EndpointIndex),
        }))
    };
    vec![
        ("inquiry", inquiry(1)),
        ("inquiry-about-64", inquiry(64)),
        ("account-of-every-fate", account(0, &fates)),
        ("account-of-nothing", account(0, &[])),
        ("account-of-one-away", account(1_600_000_000, &[])),
        (
            "proof",
            encoded(&Message::Proof {
                secret: 0x0807_0605_0403_0201,
            }),
        ),
        ("serving", serving(false, 4, None)),
        ("serving-no-more", serving(true, 0, None)),
        ("serving-with-health", serving(false, 4, Some(4))),
        ("serving-no-more-with-health", serving(true, 0, Some(4))),
    ]
}

fn bad_inquiries() -> Named {
    let (count, away) = (BODY + 8, BODY + 8);
    vec![
        ("bad-serving-4", with("serving", BODY, &[4])),
        ("bad-serving-health-of-a-service", {
            with("serving-with-health", BODY + 3, &[3])
        }),
        ("bad-serving-health-anywhere", {
            with("serving-with-health", BODY + 3, &[0xFF, 0xFF])
        }),
        ("bad-serving-health-short", {
            let mut frame = valid("serving-with-health");
            frame.pop();
            frame[0] -= 1;
            frame
        }),
        ("bad-inquiry-of-0", with("inquiry", count, &[0])),
        ("bad-inquiry-of-65", with("inquiry-about-64", count, &[65])),
        ("bad-inquiry-short", with("inquiry", count, &[2])),
        (
            "bad-account-fate-5",
            with("account-of-every-fate", away + 8 + 1 + 4, &[5]),
        ),
        (
            "bad-account-away-and-fates",
            with("account-of-every-fate", away, &[1]),
        ),
        (
            "bad-account-of-65",
            with("account-of-every-fate", away + 8, &[65]),
        ),
        ("bad-proof-short", {
            let mut frame = valid("proof");
            frame.pop();
            frame[0] -= 1;
            frame
        }),
    ]
}

fn bad_frames() -> Named {
    let with_length = |length: u8| {
        let mut frame = valid("heartbeat");
        frame.resize(4 + usize::from(length), 0);
        frame[0] = length;
        frame
    };
    vec![
        ("bad-length-0", vec![0; 4]),
        ("bad-length-1", vec![1, 0, 0, 0, 1]),
        ("bad-length-4097", vec![0x01, 0x10, 0, 0, 1, 9]),
        ("bad-length-huge", vec![0xFF; 4]),
        ("bad-version-0", with("heartbeat", 4, &[0])),
        ("bad-version-2", with("heartbeat", 4, &[2])),
        ("bad-type-0", with("heartbeat", 5, &[0])),
        ("bad-type-20", with("heartbeat", 5, &[20])),
        ("bad-heartbeat-short", with_length(9)),
        ("bad-heartbeat-trailing", with_length(11)),
    ]
}

fn bad_connections() -> Named {
    let name_len = BODY + 2 + 4 + 16 + 8 + 2;
    vec![
        ("bad-hello-version-0", with("hello", BODY, &[0])),
        ("bad-hello-empty-range", with("hello", BODY, &[4])),
        (
            "bad-hello-name-109",
            lengthened("hello-longest-name", name_len),
        ),
        (
            "bad-hello-name-not-utf8",
            with("hello", name_len + 1, &[0xC0]),
        ),
        ("bad-reset-reason-0", with("reset", BODY + 8, &[0])),
        ("bad-goodbye-reason-99", with("goodbye", BODY, &[99])),
    ]
}

fn bad_attempts() -> Named {
    let answer = BODY + 8;
    vec![
        ("bad-found-any", with("found", answer, &[0xFF, 0xFF])),
        ("bad-refuse-code-0", with("refuse-busy", answer, &[0])),
        ("bad-refuse-code-9", with("refuse-busy", answer, &[9])),
        (
            "bad-refuse-detail-129",
            lengthened("refuse-longest-detail", answer + 1),
        ),
        (
            "bad-refuse-detail-escape",
            with("refuse-busy", answer + 2, &[0x1B]),
        ),
    ]
}

fn bad_sides() -> Named {
    // Three offsets: after attempt and target, then after endpoint, session and token, then after
    // the numbers.
    let window = BODY + 8 + 2 + 16 + 4 + 4;
    let offers = window + 1 + 2 + 4 + 4 + 4;
    vec![
        ("bad-connect-window", with("connect", window, &[7])),
        ("bad-connect-credits", with("connect", window + 1, &[0, 0])),
        (
            "bad-connect-data-size",
            with("connect", window + 3, &[15, 0, 0, 0]),
        ),
        (
            "bad-connect-max-message",
            with("connect", window + 7, &[1, 0, 0, 0x40]),
        ),
        ("bad-connect-first-req", with("connect", window + 11, &[4])),
        ("bad-connect-five-offers", with("connect", offers, &[5])),
        (
            "bad-connect-five-descriptors",
            with("connect", offers + 2, &[5]),
        ),
        (
            "bad-connect-offer-of-257",
            lengthened("connect-longest-offer", offers + 3),
        ),
        (
            "bad-connect-offer-cut-off",
            with("connect", offers + 3, &[200, 0]),
        ),
    ]
}

/// The valid frame of this name.
fn valid(name: &str) -> Vec<u8> {
    let all = [
        connections(),
        insight(),
        attempts(),
        sessions(),
        inquiries(),
    ]
    .concat();
    let found = all.into_iter().find(|(other, _)| *other == name);
    found
        .unwrap_or_else(|| panic!("no valid vector has the name {name}"))
        .1
}

/// The valid frame of this name, which ends with a text or with bytes, made one byte longer.
/// `length_at` is the place of the lowest byte of the text's length.
fn lengthened(name: &str, length_at: usize) -> Vec<u8> {
    let mut frame = valid(name);
    frame.push(b'x');
    frame[length_at] += 1;
    let body = u32::try_from(frame.len() - 4).expect("short");
    frame[..4].copy_from_slice(&body.to_le_bytes());
    frame
}

/// The valid frame of this name with other bytes at one place.
fn with(name: &str, at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut frame = valid(name);
    frame[at..at + bytes.len()].copy_from_slice(bytes);
    frame
}

fn described(name: &str, frame: &[u8]) -> Block {
    let block = Block::named(name);
    let message = match Message::decode(frame) {
        Ok(message) => message,
        Err(error) => return with_error(block, error).with_bytes("hex", frame),
    };
    assert_eq!(frame_len(frame), Ok(Some(frame.len())), "{name}");
    assert_eq!(encoded(&message), frame, "{name}");
    with_fields(block, &message).with_bytes("hex", frame)
}
