//! Peers that know the token of their session and misuse it: they harm only their own sessions.

use dunlin_core::{Config, Nanos, RpcError, SessionOffer, SessionOptions, Tag};
use dunlin_testkit::pair::*;
use dunlin_wire::{Bitmap, ErrorCode, Flags, Header, PacketType, PktNum, ReqNum};

const GIGABYTE: u32 = 1 << 30;
const OVERLOADED: RpcError = RpcError::rejected(ErrorCode::OVERLOADED, true);

/// The first packet of a large request on a session that the server has accepted.
fn first_packet(to: &SessionOffer, req: u32, size: u32) -> Vec<u8> {
    let header = Header {
        kind: PacketType::Req,
        flags: Flags::NONE,
        aux: ECHO.0,
        session: to.session,
        token: to.token,
        size,
        pkt: PktNum(0),
        req: ReqNum(req),
    };
    let mut frame = header.encode().to_vec();
    frame.resize(frame.len() + DATA_SIZE as usize, 7);
    frame
}

/// More sessions from the client, as the server knows them.
fn sessions(pair: &mut Pair, count: usize) -> Vec<SessionOffer> {
    let accept = |_| {
        let session = pair.client.open(&SessionOptions::default());
        pair.accept(session).1
    };
    (0..count).map(accept).collect()
}

/// Lets time pass in large steps of 10 ms.
fn wait(pair: &mut Pair, steps: usize) {
    for _ in 0..steps {
        pair.clock.pass(Nanos(10_000_000));
        pair.run();
    }
}

/// A large call of the honest session.
fn call_large(pair: &mut Pair, len: usize, tag: u64) -> Vec<u8> {
    let data: Vec<u8> = (0..len).map(|at| (at * 7).to_le_bytes()[0]).collect();
    let rpc = &mut pair.client.rpc;
    let mut request = rpc.buf(len).unwrap();
    request.data_mut().copy_from_slice(&data);
    let response = rpc.buf(len).unwrap();
    rpc.call(pair.session, ECHO, request, response, Tag(tag))
        .unwrap();
    data
}

#[test]
fn a_gigabyte_promised_on_every_slot_of_every_session_is_overload() {
    let config = Config {
        max_message: GIGABYTE,
        ..Config::default()
    };
    let mut pair = Pair::with(config, SessionOptions::default());
    let hostile = sessions(&mut pair, 8);
    // An honest request is under way meanwhile.
    let honest = call_large(&mut pair, 100_000, 1);
    pair.step_client();
    deliver(&pair.client.out, &pair.server.inbox);
    pair.step_server();
    let (before, receiving) = (pair.server.rpc.pool_use(), pair.server.rpc.receiving());
    assert_eq!(receiving, 100_000);
    pair.server.out.borrow_mut().clear();
    for session in &hostile {
        for slot in 0..8 {
            let frame = first_packet(session, slot, GIGABYTE);
            pair.server.inbox.borrow_mut().push_back(frame);
        }
    }
    pair.step_server();
    assert_eq!(pair.server.rpc.receiving(), receiving);
    assert_eq!(
        pair.server.rpc.pool_use(),
        before,
        "the large requests got no memory"
    );
    let answers = take(&pair.server.out);
    assert_eq!(answers.len(), 64);
    for answer in answers {
        assert_eq!(answer.kind, PacketType::Err);
        assert_eq!(ErrorCode(answer.size), ErrorCode::OVERLOADED);
    }
    for _ in 0..100 {
        pair.pass(Nanos::from_millis(1));
    }
    assert_eq!(pair.done(), [(Tag(1), Ok(honest))]);
    assert_eq!(pair.ran(), 1);
}

#[test]
fn sessions_with_full_budgets_leave_the_rest_to_others() {
    let config = Config {
        session_receive_budget: 1 << 20,
        receive_budget: 4 << 20,
        ..Config::default()
    };
    let mut pair = Pair::with(config, SessionOptions::default());
    let hostile = sessions(&mut pair, 3);
    for session in &hostile {
        for slot in 0..8 {
            let frame = first_packet(session, slot, 300_000);
            pair.server.inbox.borrow_mut().push_back(frame);
        }
    }
    pair.step_server();
    assert_eq!(pair.server.rpc.receiving(), 3 * 3 * 300_000);
    pair.server.out.borrow_mut().clear();
    let honest = call_large(&mut pair, 100_000, 1);
    pair.call(ECHO, b"small", 2);
    for _ in 0..50 {
        pair.pass(Nanos::from_micros(100));
    }
    assert_eq!(pair.done().len(), 2);
    assert!(pair.done().contains(&(Tag(1), Ok(honest))));
    assert_eq!(pair.client.rpc.counters().retransmissions, 0);
    // The peers never send the rest, so the server frees the memory of their requests.
    wait(&mut pair, 200);
    assert_eq!(pair.server.rpc.receiving(), 0);
    let refused = take(&pair.server.out);
    assert!(refused.is_empty(), "the client has received the answers");
    assert_eq!(pair.server.rpc.pool_use().1, 0);
}

#[test]
fn a_request_whose_last_packet_comes_too_late_never_runs() {
    let mut pair = Pair::new();
    call_large(&mut pair, 5 * DATA_SIZE as usize, 1);
    pair.step_client();
    let mut frames: Vec<_> = pair.client.out.borrow_mut().drain(..).collect();
    let last = frames.pop().unwrap();
    pair.server.inbox.borrow_mut().extend(frames);
    for _ in 0..30 {
        pair.clock.pass(Nanos(50_000_000));
        pair.step_server();
    }
    assert_eq!(pair.server.rpc.receiving(), 0);
    pair.server.inbox.borrow_mut().push_back(last);
    pair.step_server();
    let answers = take(&pair.server.out);
    assert!(answers.iter().any(|answer| answer.kind == PacketType::Err));
    assert_eq!(pair.ran(), 0);
    pair.client.inbox.borrow_mut().extend(
        answers
            .iter()
            .map(|answer| answer.encode()[..24].to_vec())
            .filter(|frame| Header::decode(frame).is_ok_and(|h| h.kind == PacketType::Err)),
    );
    pair.step_client();
    assert_eq!(pair.done(), [(Tag(1), Err(OVERLOADED))]);
    pair.assert_clean();
}

/// A CR for the request in slot 0 that reports these packets after `cumulative` as arrived.
fn credit_return(pair: &mut Pair, cumulative: u32, offsets: &[u32]) -> Vec<u8> {
    let sent = Header::decode(&pair.client.out.borrow()[0]).unwrap();
    let to = pair.client.rpc.lifecycle().offer_of(pair.session).unwrap();
    let mut bits = Bitmap::EMPTY;
    for offset in offsets {
        assert!(bits.insert(*offset));
    }
    let header = Header {
        kind: PacketType::Cr,
        flags: Flags::NONE,
        aux: 0,
        session: to.session,
        token: to.token,
        size: Header::arrivals(PktNum(cumulative), bits.words()),
        pkt: PktNum(0),
        req: sent.req,
    };
    let mut frame = header.encode().to_vec();
    frame.extend_from_slice(&bits.encode()[..bits.words() as usize * 8]);
    frame
}

#[test]
fn a_bitmap_of_packets_that_have_not_left_is_dropped() {
    let mut pair = Pair::new();
    let data = call_large(&mut pair, 200 * DATA_SIZE as usize, 1);
    pair.step_client();
    let sent = u32::try_from(pair.client.out.borrow().len()).unwrap();
    assert!((8..200).contains(&sent));
    let credits = |pair: &Pair| pair.client.rpc.session_info(pair.session).unwrap().credits;
    let before = credits(&pair);
    let forged = [
        credit_return(&mut pair, 0, &[sent]),
        credit_return(&mut pair, 0, &[0, 255]),
        credit_return(&mut pair, sent, &[0]),
        credit_return(&mut pair, sent + 1, &[]),
        credit_return(&mut pair, (1 << 24) - 1, &[255]),
    ];
    let count = forged.len() as u64;
    pair.client.inbox.borrow_mut().extend(forged);
    pair.step_client();
    assert_eq!(pair.client.rpc.counters().drops.packet_number, count);
    assert_eq!(
        credits(&pair),
        before,
        "the forged packets return no credit"
    );
    for _ in 0..100 {
        pair.pass(Nanos::from_micros(100));
    }
    assert_eq!(pair.done(), [(Tag(1), Ok(data))]);
    pair.assert_clean();
}

#[test]
fn a_forged_credit_return_for_lost_packets_fails_only_its_own_request() {
    let mut pair = Pair::new();
    call_large(&mut pair, 20 * DATA_SIZE as usize, 1);
    pair.step_client();
    let count = u32::try_from(pair.client.out.borrow().len()).unwrap();
    let forged = credit_return(&mut pair, count, &[]);
    // All packets but the first are lost, and a CR claims that the server has them.
    pair.client.out.borrow_mut().truncate(1);
    pair.client.inbox.borrow_mut().push_back(forged);
    for tag in 2..30 {
        pair.call(ECHO, b"small", tag);
        wait(&mut pair, 10);
    }
    let done = pair.done();
    assert_eq!(done.len(), 29);
    for (tag, result) in done {
        match tag {
            Tag(1) => assert_eq!(*result, Err(OVERLOADED)),
            _ => assert_eq!(*result, Ok(b"small".to_vec())),
        }
    }
    pair.assert_clean();
}

#[test]
fn packets_of_a_response_that_were_not_asked_for_are_dropped() {
    let mut pair = Pair::new();
    let data = call_large(&mut pair, 300 * DATA_SIZE as usize, 1);
    // Runs until the first packet of the response has come, before the client asks for any.
    let first = loop {
        pair.clock.pass(Nanos(5_000));
        pair.step_client();
        deliver(&pair.client.out, &pair.server.inbox);
        pair.step_server();
        let frames: Vec<_> = pair.server.out.borrow_mut().drain(..).collect();
        let response = frames
            .iter()
            .find(|frame| Header::decode(frame).unwrap().kind == PacketType::Resp)
            .cloned();
        pair.client.inbox.borrow_mut().extend(frames);
        if let Some(frame) = response {
            break frame;
        }
    };
    let header = Header::decode(&first).unwrap();
    let unasked = |pkt: u32| {
        let header = Header {
            pkt: PktNum(pkt),
            flags: Flags::NONE,
            ..header
        };
        let mut frame = header.encode().to_vec();
        frame.resize(frame.len() + DATA_SIZE as usize, 0xEE);
        frame
    };
    pair.client
        .inbox
        .borrow_mut()
        .extend((100..300).map(unasked));
    // The peer sends the same packet twice, which changes nothing.
    pair.client.inbox.borrow_mut().push_back(first);
    pair.step_client();
    assert_eq!(pair.client.rpc.counters().drops.unexpected, 200);
    for _ in 0..100 {
        pair.pass(Nanos::from_micros(100));
    }
    assert_eq!(pair.done(), [(Tag(1), Ok(data))]);
    pair.assert_clean();
}
