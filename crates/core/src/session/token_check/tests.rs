//! The check of packets alone, with a table of sessions: a packet of an open session passes, and
//! each fault has its counter.

use dunlin_wire::{PktNum, ReqNum, SessionNum, Token};

use super::*;
use crate::handle::{EndpointNum, Session};
use crate::observe::counters::Drops;
use crate::session::lifecycle::SessionOffer;
use crate::session::terms::Terms;
use crate::transport::PeerId;

const DATA_SIZE: u32 = 16;

const CAME: Nanos = Nanos(5_000);

/// A table whose only session is open if `is_open`, and otherwise waits for the peer's answer.
fn table(is_open: bool) -> (Sessions, Session) {
    let mut sessions = Sessions::new(4, 1, EndpointNum::chosen(1));
    let terms = Terms {
        peer: PeerId(0),
        window: 8,
        data_size: DATA_SIZE,
        max_message: 4096,
        credits: 8,
        first_req: ReqNum(0),
    };
    let index = sessions.begin(&terms, false, None).expect("room");
    let session = sessions.handle(index);
    if is_open {
        let answer = SessionOffer {
            session: SessionNum(7),
            token: Token(8),
            window: 8,
            credits: 8,
            data_size: DATA_SIZE,
            max_message: 4096,
            first_req: ReqNum(0),
            keeps_code_rules: true,
        };
        let completed = sessions.complete(session, PeerId(0), &answer, Nanos(1));
        assert_eq!(completed, Ok(false));
    }
    (sessions, session)
}

/// A request of `size` bytes for this session.
fn request(sessions: &Sessions, session: Session, size: u32) -> Header {
    Header {
        kind: PacketType::Req,
        flags: Flags::NONE,
        aux: 3,
        session: session.number(),
        token: sessions.at(session.index()).token(),
        size,
        pkt: PktNum(0),
        req: ReqNum(8),
    }
}

/// The frame of a header and this number of bytes of data.
fn frame(header: &Header, data: usize) -> Vec<u8> {
    let mut bytes = header.encode().to_vec();
    bytes.extend((1..=data).map(|at| u8::try_from(at).expect("short")));
    bytes
}

/// The counters of drops after this packet, which must not pass.
fn dropped(sessions: &mut Sessions, bytes: &[u8]) -> Drops {
    let mut stats = Stats::default();
    let packet = sessions.next_packet(bytes, CAME, &mut stats);
    assert!(packet.is_none(), "{packet:?}");
    assert_eq!(stats.counters().rx_packets, 1);
    stats.counters().drops
}

fn only(reason: DropReason) -> Drops {
    let mut drops = Drops::default();
    drops.count(reason);
    drops
}

#[test]
fn a_packet_of_an_open_session_passes_and_shows_that_its_peer_is_alive() {
    let (mut sessions, session) = table(true);
    sessions.at_mut(session.index()).on_asked(Nanos(2));
    let header = request(&sessions, session, 3);
    let mut bytes = frame(&header, 3);
    // This byte belongs to the next packet of the frame.
    bytes.push(0xFF);
    let mut stats = Stats::default();
    let packet = sessions.next_packet(&bytes, CAME, &mut stats);
    let packet = packet.expect("a packet of the session");
    assert_eq!((packet.session, packet.header), (session.index(), header));
    assert_eq!((packet.data, packet.len), (&[1, 2, 3][..], HEADER_LEN + 3));
    assert_eq!(stats.counters().drops, Drops::default());
    assert!(!sessions.at(session.index()).asks());
}

#[test]
fn the_first_packet_of_a_long_message_has_the_data_of_one_packet() {
    let (mut sessions, session) = table(true);
    let header = request(&sessions, session, 40);
    let mut length = |pkt, data| {
        let bytes = frame(
            &Header {
                pkt: PktNum(pkt),
                ..header
            },
            data,
        );
        let mut stats = Stats::default();
        let packet = sessions.next_packet(&bytes, CAME, &mut stats);
        packet.map(|packet| packet.data.len())
    };
    assert_eq!(length(0, 16), Some(16));
    assert_eq!(length(1, 16), Some(16));
    assert_eq!(length(2, 16), Some(8), "8 of 40 bytes are left");
}

#[test]
fn each_fault_has_its_counter_and_shows_no_life_of_the_peer() {
    let (mut sessions, session) = table(true);
    sessions.at_mut(session.index()).on_asked(Nanos(2));
    let good = request(&sessions, session, 20);
    let other = SessionNum(session.number().0 + 1);
    let wrong_token = Token(good.token.0 ^ 1);
    let faults = [
        (
            Header {
                session: other,
                ..good
            },
            DropReason::Session,
        ),
        (
            Header {
                token: wrong_token,
                ..good
            },
            DropReason::Token,
        ),
        (
            Header {
                pkt: PktNum(2),
                ..good
            },
            DropReason::PacketNumber,
        ),
        (Header { size: 21, ..good }, DropReason::Size),
    ];
    for (header, reason) in faults {
        // This is a byte less than the data of a full packet.
        let bytes = frame(&header, 15);
        assert_eq!(dropped(&mut sessions, &bytes), only(reason), "{header:?}");
    }
    let short = &frame(&good, 0)[..HEADER_LEN - 1];
    assert_eq!(dropped(&mut sessions, short), only(DropReason::Short));
    let mut other_version = frame(&good, 16);
    other_version[0] ^= 0xF0;
    let drops = dropped(&mut sessions, &other_version);
    assert_eq!(drops, only(DropReason::Version));
    assert!(sessions.at(session.index()).asks());
}

#[test]
fn a_session_takes_packets_only_between_its_opening_and_its_end() {
    let (mut sessions, session) = table(false);
    let bytes = frame(&request(&sessions, session, 3), 3);
    assert_eq!(dropped(&mut sessions, &bytes), only(DropReason::Session));
    let (mut sessions, session) = table(true);
    let bytes = frame(&request(&sessions, session, 3), 3);
    sessions.end(session.index());
    assert_eq!(dropped(&mut sessions, &bytes), only(DropReason::Session));
}

#[test]
fn a_challenge_for_a_session_that_is_not_open_yet_is_no_drop() {
    let (mut sessions, session) = table(false);
    let challenge = Header {
        kind: PacketType::Challenge,
        aux: 0,
        size: 0,
        req: ReqNum(0),
        ..request(&sessions, session, 0)
    };
    let bytes = frame(&challenge, dunlin_wire::CHALLENGE_LEN);
    assert_eq!(dropped(&mut sessions, &bytes), Drops::default());
    let token = Token(challenge.token.0 ^ 1);
    let bytes = frame(&Header { token, ..challenge }, dunlin_wire::CHALLENGE_LEN);
    assert_eq!(dropped(&mut sessions, &bytes), only(DropReason::Session));
}

#[test]
fn data_that_lies_elsewhere_must_have_the_length_that_the_header_names() {
    let (mut sessions, session) = table(true);
    let bytes = frame(&request(&sessions, session, 12), 0);
    let mut stats = Stats::default();
    let packet = sessions.packet_of_data(&bytes, 12, CAME, &mut stats);
    assert_eq!(
        packet.map(|it| (it.data.len(), it.len)),
        Some((0, HEADER_LEN))
    );
    for len in [11, 13] {
        assert!(
            sessions
                .packet_of_data(&bytes, len, CAME, &mut stats)
                .is_none()
        );
    }
    let longer = frame(&request(&sessions, session, 12), 1);
    assert!(
        sessions
            .packet_of_data(&longer, 12, CAME, &mut stats)
            .is_none()
    );
    assert_eq!(stats.counters().drops.size, 3);
}

#[test]
fn every_packet_of_a_frame_names_its_session() {
    let (mut sessions, session) = table(true);
    let whole = frame(&request(&sessions, session, 5), 5);
    let unknown = Header {
        session: SessionNum(3),
        ..request(&sessions, session, 0)
    };
    let bytes = [whole.clone(), whole, frame(&unknown, 0), vec![9]].concat();
    let (mut rest, mut named) = (bytes.as_slice(), Vec::new());
    while let Some((session, after)) = sessions.named_by(rest) {
        named.push(session.0);
        rest = after;
    }
    let own = session.index().0;
    assert_eq!(named, [own, own, 3], "the length of the third is unknown");
    // Nothing was counted, and the packets can still be read.
    let mut stats = Stats::default();
    assert!(sessions.next_packet(&bytes, CAME, &mut stats).is_some());
}
