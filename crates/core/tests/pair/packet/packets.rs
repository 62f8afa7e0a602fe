//! Packets that no correct peer sends.

use dunlin_core::{Nanos, SessionOptions, Tag};
use dunlin_testkit::pair::*;
use dunlin_wire::{Flags, Header, PacketType, PktNum, ReqNum, SessionNum, Token};

/// The header of a real request, for tests to change.
fn request(pair: &mut Pair) -> (Header, Vec<u8>) {
    pair.call(ECHO, b"data", 1);
    pair.step_client();
    let frame = pair.client.out.borrow()[0].clone();
    (Header::decode(&frame).unwrap(), frame[24..].to_vec())
}

fn send(pair: &mut Pair, header: Header, data: &[u8]) {
    let mut frame = header.encode().to_vec();
    frame.extend_from_slice(data);
    pair.server.inbox.borrow_mut().push_back(frame);
    pair.step_server();
}

/// Variations of a good header that no correct peer sends.
fn forgeries(good: Header) -> [Header; 11] {
    // The header has no flags, which is valid for every type.
    let good = Header {
        flags: Flags::NONE,
        ..good
    };
    [
        Header {
            token: Token(good.token.0 ^ 1),
            ..good
        },
        Header {
            session: SessionNum(9),
            ..good
        },
        Header {
            session: SessionNum(u32::MAX),
            ..good
        },
        Header {
            req: ReqNum(good.req.0 + 8),
            ..good
        },
        Header {
            req: ReqNum(good.req.0 + 800),
            ..good
        },
        Header {
            req: ReqNum(good.req.0.wrapping_sub(16)),
            ..good
        },
        Header { size: 1000, ..good },
        Header {
            pkt: PktNum(1),
            ..good
        },
        Header {
            kind: PacketType::Resp,
            ..good
        },
        Header {
            kind: PacketType::Cr,
            size: 1,
            aux: 0,
            ..good
        },
        Header {
            kind: PacketType::Err,
            size: 1,
            aux: 0,
            ..good
        },
    ]
}

#[test]
fn forged_packets_are_counted_and_change_nothing() {
    let mut pair = Pair::new();
    let (good, data) = request(&mut pair);
    let forged = forgeries(good);
    for header in forged {
        send(&mut pair, header, &data);
    }
    let drops = pair.server.rpc.counters().drops;
    assert_eq!(
        (drops.token, drops.session, drops.future, drops.stale),
        (1, 2, 2, 1)
    );
    assert_eq!(
        (drops.size, drops.packet_number, drops.unexpected),
        (1, 1, 3)
    );
    assert!(
        take(&pair.server.out).is_empty(),
        "none of these packets is answered"
    );
    assert_eq!(pair.ran(), 0);
    pair.run();
    assert_eq!(pair.done(), [(Tag(1), Ok(b"data".to_vec()))]);
    pair.assert_clean();
}

#[test]
fn a_higher_request_number_does_not_block_a_slot() {
    let mut pair = Pair::new();
    let (good, data) = request(&mut pair);
    send(
        &mut pair,
        Header {
            req: ReqNum(good.req.0 + 8 * 1000),
            ..good
        },
        &data,
    );
    pair.run();
    for tag in 2..100 {
        pair.call(ECHO, b"x", tag);
        pair.run();
    }
    assert_eq!(pair.done().len(), 99);
}

#[test]
fn a_request_above_the_servers_limit_gets_an_error() {
    let mut pair = Pair::new();
    let (good, _) = request(&mut pair);
    let big = vec![0; DATA_SIZE as usize];
    send(
        &mut pair,
        Header {
            size: 1 << 30,
            ..good
        },
        &big,
    );
    let answers = take(&pair.server.out);
    assert_eq!(kinds(&answers), [PacketType::Err]);
    assert_eq!(answers[0].size, dunlin_wire::ErrorCode::TOO_LARGE.0);
}

#[test]
fn short_and_strange_frames_are_counted() {
    let mut pair = Pair::new();
    let (good, _) = request(&mut pair);
    let bytes = good.encode();
    let mut frames: Vec<Vec<u8>> = (1..24).map(|len| bytes[..len].to_vec()).collect();
    let mut version = bytes;
    version[0] = 0x20;
    let mut kind = bytes;
    kind[0] = 0x1F;
    let mut flags = bytes;
    flags[1] = 0x80;
    frames.extend([version.to_vec(), kind.to_vec(), flags.to_vec()]);
    pair.server.inbox.borrow_mut().extend(frames);
    pair.step_server();
    let drops = pair.server.rpc.counters().drops;
    assert_eq!(
        (drops.short, drops.version, drops.kind, drops.flags),
        (23, 1, 1, 1)
    );
}

#[test]
fn the_next_request_of_a_slot_whose_handler_runs_is_dropped() {
    let mut pair = Pair::new();
    pair.call(HOLD, b"x", 1);
    pair.run();
    pair.call(ECHO, b"y", 2);
    pair.step_client();
    let frame = pair.client.out.borrow_mut().pop_front().unwrap();
    let header = Header::decode(&frame).unwrap();
    assert_eq!(header.req, ReqNum(1));
    send(
        &mut pair,
        Header {
            req: ReqNum(8),
            ..header
        },
        b"y",
    );
    assert_eq!(pair.server.rpc.counters().drops.busy, 1);
    assert_eq!(pair.ran(), 1);
}

#[test]
fn answers_that_match_no_call_are_dropped() {
    let mut pair = Pair::new();
    pair.call(ECHO, b"x", 1);
    pair.step_client();
    let frame = pair.client.out.borrow_mut().pop_front().unwrap();
    pair.server.inbox.borrow_mut().push_back(frame);
    pair.step_server();
    let response = pair.server.out.borrow_mut().pop_front().unwrap();
    for _ in 0..5 {
        pair.client.inbox.borrow_mut().push_back(response.clone());
    }
    pair.step_client();
    assert_eq!(pair.done().len(), 1);
    assert_eq!(pair.client.rpc.counters().drops.unexpected, 4);
    pair.assert_clean();
}

#[test]
fn a_cancel_from_the_future_or_the_past_is_dropped() {
    let mut pair = Pair::new();
    let (good, data) = request(&mut pair);
    let cancel = Header {
        kind: PacketType::Cancel,
        size: 0,
        aux: 0,
        flags: Flags::NONE,
        ..good
    };
    send(
        &mut pair,
        Header {
            req: ReqNum(good.req.0 + 80),
            ..cancel
        },
        &[],
    );
    send(
        &mut pair,
        Header {
            req: ReqNum(good.req.0.wrapping_sub(80)),
            ..cancel
        },
        &[],
    );
    assert!(take(&pair.server.out).is_empty());
    send(&mut pair, good, &data);
    assert_eq!(pair.ran(), 1);
    pair.pass(Nanos::from_millis(1));
}

#[test]
fn a_credit_return_for_more_packets_than_were_sent_is_dropped() {
    let mut pair = Pair::new();
    let (good, data) = request(&mut pair);
    send(&mut pair, good, &data);
    let answer = Header::decode(&pair.server.out.borrow()[0]).unwrap();
    let later = Header {
        kind: PacketType::Cr,
        size: Header::arrivals(PktNum(5), 0),
        pkt: PktNum(4),
        ..answer
    };
    let frame = later.encode().to_vec();
    pair.client.inbox.borrow_mut().push_back(frame);
    pair.step_client();
    assert_eq!(pair.client.rpc.counters().drops.packet_number, 1);
}

#[test]
fn a_burst_of_many_sessions_has_the_effect_of_its_packets_one_by_one() {
    let mut pair = Pair::new();
    let mut sessions = vec![pair.session];
    for _ in 1..80 {
        let session = pair.client.open(&SessionOptions::default());
        pair.complete(session);
        sessions.push(session);
    }
    for (tag, session) in (1..).zip(&sessions) {
        let rpc = &mut pair.client.rpc;
        let (request, response) = (rpc.buf(8).unwrap(), rpc.buf(8).unwrap());
        rpc.call(*session, ECHO, request, response, Tag(tag))
            .unwrap();
    }
    // The endpoint prefetches for packets before it has checked them.
    pair.step_client();
    let strange: [&[u8]; 3] = [&[0xFF; 4], &[0xFF; 12], &[0xFF; 24]];
    let strange = strange.map(<[u8]>::to_vec);
    pair.server.inbox.borrow_mut().extend(strange);
    deliver(&pair.client.out, &pair.server.inbox);
    pair.run();
    assert_eq!(pair.done().len(), 80);
    assert_eq!(pair.server.rpc.counters().drops.short, 2);
    assert_eq!(pair.server.rpc.counters().drops.version, 1);
    pair.assert_clean();
}
