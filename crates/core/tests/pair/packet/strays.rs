//! Packets that come at the wrong time, twice, or for requests that are over. Each is answered as
//! its rule demands, or dropped with a counted reason.

use dunlin_core::{
    Bypasses, CloseReason, Config, Nanos, RpcError, SessionOffer, SessionOptions, Tag,
};
use dunlin_testkit::pair::*;
use dunlin_wire::{AckVector, ErrorCode, Flags, Header, PacketType, PktNum, ReqNum, Residence};

/// A header towards the server (or the client) on the pair's session, in slot 0.
fn header(to: &SessionOffer, kind: PacketType, req: u32) -> Header {
    Header {
        kind,
        flags: Flags::NONE,
        aux: 0,
        session: to.session,
        token: to.token,
        size: 0,
        pkt: PktNum(0),
        req: ReqNum(req),
    }
}

fn server_side(pair: &mut Pair) -> SessionOffer {
    pair.server.rpc.lifecycle().offer_of(pair.back).unwrap()
}

fn client_side(pair: &mut Pair) -> SessionOffer {
    pair.client.rpc.lifecycle().offer_of(pair.session).unwrap()
}

/// Brings one packet to the server; returns the server's answers.
fn serve(pair: &mut Pair, header: Header, rest: &[u8]) -> Vec<Header> {
    let frame = [&header.encode(), rest].concat();
    pair.server.inbox.borrow_mut().push_back(frame);
    pair.step_server();
    take(&pair.server.out)
}

/// Brings one packet to the client.
fn receive(pair: &mut Pair, header: Header, rest: &[u8]) {
    let frame = [&header.encode(), rest].concat();
    pair.client.inbox.borrow_mut().push_back(frame);
    pair.step_client();
}

/// A request of `packets` packets, filled with ones.
fn call_large(pair: &mut Pair, packets: usize, room: usize, tag: u64) {
    let rpc = &mut pair.client.rpc;
    let mut request = rpc.buf(packets * DATA_SIZE as usize).unwrap();
    request.data_mut().fill(1);
    let response = rpc.buf(room).unwrap();
    rpc.call(pair.session, ECHO, request, response, Tag(tag))
        .unwrap();
}

/// The first packet of a request of three.
fn first_of_three(pair: &mut Pair, req: u32) -> (Header, Vec<u8>) {
    let header = Header {
        aux: ECHO.0,
        size: 3 * DATA_SIZE,
        ..header(&server_side(pair), PacketType::Req, req)
    };
    (header, vec![1; DATA_SIZE as usize])
}

#[test]
fn a_packet_for_the_next_request_of_a_running_slot_is_busy() {
    let mut pair = Pair::new();
    pair.call(HOLD, b"x", 1);
    pair.run();
    let cancel = header(&server_side(&mut pair), PacketType::Cancel, 8);
    assert_eq!(serve(&mut pair, cancel, &[]), []);
    let (large, data) = first_of_three(&mut pair, 8);
    assert_eq!(serve(&mut pair, large, &data), []);
    assert_eq!(pair.server.rpc.counters().drops.busy, 2);
    assert_eq!(pair.server.rpc.receiving(), 0);
    pair.server.rpc.app_mut().held.clear();
    pair.assert_clean();
}

#[test]
fn an_rfr_for_another_request_is_answered_like_a_probe() {
    let config = Config {
        response_hold: Nanos::from_millis(200),
        ..Config::default()
    };
    let mut pair = Pair::with(config, SessionOptions::default());
    pair.call(ECHO, b"x", 1);
    pair.run();
    let ask = |pair: &mut Pair, req| Header {
        aux: 1,
        ..header(&server_side(pair), PacketType::Rfr, req)
    };
    // The client asks, and the server sends its response again.
    let again = ask(&mut pair, 0);
    assert_eq!(kinds(&serve(&mut pair, again, &[])), [PacketType::Resp]);
    let (stale, future) = (ask(&mut pair, 8_u32.wrapping_neg()), ask(&mut pair, 8));
    assert_eq!(serve(&mut pair, stale, &[]), []);
    assert_eq!(serve(&mut pair, future, &[]), []);
    let drops = pair.server.rpc.counters().drops;
    assert_eq!((drops.stale, drops.future), (1, 1));
    pair.pass(Nanos::from_millis(500));
    let gone = serve(&mut pair, again, &[]);
    assert_eq!(kinds(&gone), [PacketType::Err]);
    assert_eq!(ErrorCode(gone[0].size), ErrorCode::RESPONSE_GONE);
    pair.assert_clean();
}

#[test]
fn an_rfr_for_a_running_request_is_answered_like_a_probe() {
    let mut pair = Pair::new();
    pair.call(HOLD, b"x", 1);
    pair.run();
    let ask = Header {
        aux: 1,
        ..header(&server_side(&mut pair), PacketType::Rfr, 0)
    };
    assert_eq!(kinds(&serve(&mut pair, ask, &[])), [PacketType::Cr]);
    pair.server.rpc.app_mut().held.clear();
    pair.assert_clean();
}

#[test]
fn a_paced_session_sends_large_and_small_requests() {
    let options = SessionOptions::DEFAULT.with_scheme(dunlin_core::Scheme::Timely);
    // Without the bypasses, even a session at line rate uses the wheel and the clock.
    let config = Config {
        bypasses: Bypasses::OFF,
        ..Config::default()
    };
    let mut pair = Pair::with(config, options);
    call_large(&mut pair, 40, 50 * DATA_SIZE as usize, 1);
    for tag in 2..20 {
        pair.call(ECHO, b"small", tag);
    }
    for _ in 0..400 {
        exchange(&mut pair);
    }
    assert_eq!(pair.done().len(), 19);
    assert!(pair.done().iter().all(|(_, result)| result.is_ok()));
    pair.assert_clean();
}

#[test]
fn acknowledgements_of_responses_that_are_not_held_change_nothing() {
    let mut pair = Pair::new();
    pair.call(HOLD, b"x", 1);
    pair.call(ECHO, b"y", 2);
    pair.run();
    let before = pair.server.rpc.pool_use();
    // Four requests: one that runs, two that the server has not seen, and an old one.
    let acks = AckVector([
        ReqNum(0),
        ReqNum(3),
        ReqNum(9),
        ReqNum(7_u32.wrapping_neg()),
    ]);
    let request = Header {
        aux: ECHO.0,
        size: 4,
        flags: Flags::ACK_VECTOR,
        ..header(&server_side(&mut pair), PacketType::Req, 2)
    };
    let answers = serve(&mut pair, request, &[&acks.encode()[..], b"more"].concat());
    assert_eq!(kinds(&answers), [PacketType::Resp]);
    assert_eq!(pair.server.rpc.pool_use().1, before.1 + 1);
    // The next vector names the request whose response is held.
    let acks = AckVector([ReqNum(1); 4]);
    let request = Header {
        req: ReqNum(3),
        ..request
    };
    serve(&mut pair, request, &[&acks.encode()[..], b"more"].concat());
    assert_eq!(pair.server.rpc.pool_use().1, before.1 + 1);
    pair.server.rpc.app_mut().held.clear();
    pair.assert_clean();
}

#[test]
fn a_request_that_replaces_a_cancelled_one_in_a_burst_is_acknowledged_once() {
    let mut pair = Pair::new();
    let (first, data) = first_of_three(&mut pair, 0);
    let cancel = header(&server_side(&mut pair), PacketType::Cancel, 0);
    let next = Header {
        req: ReqNum(8),
        ..first
    };
    for (header, data) in [(first, &data[..]), (cancel, &[]), (next, &data)] {
        let frame = [&header.encode(), data].concat();
        pair.server.inbox.borrow_mut().push_back(frame);
    }
    pair.step_server();
    let answers = take(&pair.server.out);
    assert_eq!(kinds(&answers), [PacketType::Err, PacketType::Cr]);
    assert_eq!(answers[1].req, ReqNum(8));
    assert_eq!(pair.server.rpc.receiving(), u64::from(3 * DATA_SIZE));
}

#[test]
fn strange_answers_of_one_packet_are_dropped() {
    let mut pair = Pair::new();
    pair.call(ECHO, b"x", 1);
    pair.step_client();
    let to = client_side(&mut pair);
    let return_of = |cumulative, req| Header {
        size: Header::arrivals(PktNum(cumulative), 0),
        ..header(&to, PacketType::Cr, req)
    };
    receive(&mut pair, return_of(2, 0), &[]);
    assert_eq!(pair.client.rpc.counters().drops.packet_number, 1);
    receive(&mut pair, return_of(1, 8), &[]);
    receive(&mut pair, return_of(1, 1), &[]);
    assert_eq!(pair.client.rpc.counters().drops.unexpected, 2);
    // An answer without a residence time completes the call, and gives no round-trip sample.
    let silent = Header {
        aux: Residence::NO_SAMPLE.0,
        ..return_of(1, 0)
    };
    receive(&mut pair, silent, &[]);
    assert_eq!(pair.client.rpc.counters().rtt_samples, 0);
    pair.run();
    assert_eq!(pair.done(), [(Tag(1), Ok(b"x".to_vec()))]);
    pair.assert_clean();
}

#[test]
fn large_answers_that_contradict_themselves_are_dropped() {
    let mut pair = Pair::new();
    pair.call(ECHO, b"x", 1);
    pair.step_client();
    let room = vec![9; DATA_SIZE as usize];
    let to = client_side(&mut pair);
    let answer = |size, pkt| Header {
        size,
        pkt: PktNum(pkt),
        ..header(&to, PacketType::Resp, 0)
    };
    let (huge, second) = (answer(17 << 20, 0), answer(5000, 1));
    receive(&mut pair, huge, &room);
    assert_eq!(pair.client.rpc.counters().drops.size, 1);
    receive(&mut pair, second, &room);
    assert_eq!(pair.client.rpc.counters().drops.unexpected, 1);
    pair.run();
    assert_eq!(pair.done(), [(Tag(1), Ok(b"x".to_vec()))]);
    // The size of a response changes midway, after its first packet.
    call_large(&mut pair, 20, 1 << 20, 2);
    while pair.ran() < 2 {
        exchange(&mut pair);
    }
    let other = Header {
        size: 30 * DATA_SIZE,
        req: ReqNum(8),
        ..answer(0, 0)
    };
    receive(&mut pair, other, &room);
    assert_eq!(pair.client.rpc.counters().drops.size, 2);
    for _ in 0..20 {
        exchange(&mut pair);
    }
    assert_eq!(pair.done()[1].1, Ok(vec![1; 20 * DATA_SIZE as usize]));
    pair.assert_clean();
}

/// Runs both hosts once, and delivers everything.
fn exchange(pair: &mut Pair) {
    pair.clock.pass(Nanos(5_000));
    pair.step_client();
    deliver(&pair.client.out, &pair.server.inbox);
    pair.step_server();
    deliver(&pair.server.out, &pair.client.inbox);
}

#[test]
fn a_sender_at_its_limit_continues_when_the_gap_is_filled() {
    let options = SessionOptions::DEFAULT.with_credits(600);
    let mut pair = Pair::with(Config::default(), options);
    call_large(&mut pair, 700, 16, 1);
    let mut lost = 0;
    for _ in 0..400 {
        pair.clock.pass(Nanos(5_000));
        pair.step_client();
        let mut frames: Vec<_> = pair.client.out.borrow_mut().drain(..).collect();
        frames.retain(|frame| {
            let header = Header::decode(frame).unwrap();
            let keep = header.pkt.0 != 3 || header.kind != PacketType::Req || lost == 3;
            lost += u32::from(!keep);
            keep
        });
        pair.server.inbox.borrow_mut().extend(frames);
        pair.step_server();
        deliver(&pair.server.out, &pair.client.inbox);
    }
    assert_eq!(lost, 3, "the packet was sent again after each loss");
    let size = 700 * DATA_SIZE;
    let too_large = Err(RpcError::ResponseTooLarge { size });
    assert_eq!(pair.done(), [(Tag(1), too_large)]);
    pair.assert_clean();
}

#[test]
fn requests_that_outlive_their_session_send_nothing() {
    let mut pair = Pair::new();
    pair.call(BACKGROUND, b"drop", 1);
    pair.call(HOLD, b"y", 2);
    pair.run();
    pair.server.rpc.disconnect(pair.back).unwrap();
    pair.run_jobs();
    pair.server.rpc.app_mut().held.clear();
    pair.run();
    assert_eq!(take(&pair.server.out), []);
    pair.client
        .rpc
        .lifecycle()
        .close(pair.session, CloseReason::Disconnected);
    pair.run();
    assert_eq!(pair.done().len(), 2);
    pair.assert_clean();
}

#[test]
fn more_requests_than_a_batch_holds_are_two_batches() {
    let options = options(64, 64);
    let mut pair = Pair::with(Config::default(), options);
    let session = pair.client.open(&options);
    pair.complete(session);
    for (tag, session) in (0..80).zip([pair.session, session].into_iter().cycle()) {
        let rpc = &mut pair.client.rpc;
        let (request, response) = (rpc.buf(1).unwrap(), rpc.buf(8).unwrap());
        rpc.call(session, BATCH, request, response, Tag(tag))
            .unwrap();
    }
    pair.step_client();
    // All of them lie in one frame (rule W11).
    let frame: Vec<u8> = pair.client.out.borrow_mut().drain(..).flatten().collect();
    pair.server.inbox.borrow_mut().push_back(frame);
    pair.run();
    assert_eq!(pair.server.rpc.app().batches, [64, 16]);
    assert_eq!(pair.done().len(), 80);
    pair.assert_clean();
}

#[test]
fn an_item_of_a_batch_that_was_kept_and_answered_needs_no_other_buffer() {
    let mut pair = Pair::new();
    let kind = dunlin_wire::ReqType(60);
    pair.server.rpc.on_batch(kind, |_, mut batch, cx| {
        for item in batch.iter_mut() {
            item.defer(cx).reply_bytes(cx, b"early");
        }
    });
    for tag in 0..3 {
        pair.call(kind, b"x", tag);
        pair.run();
    }
    assert_eq!(pair.done().len(), 3);
    for (_, result) in pair.done() {
        assert_eq!(*result, Ok(b"early".to_vec()));
    }
    pair.assert_clean();
}

/// 50 RFRs that each ask for a whole response come together. Each burst of them brings at most as
/// many packets as the session has credits, and a session that has asked for little does not wait
/// for all of these packets.
#[test]
fn a_flood_of_rfrs_is_held_to_credits_and_waits_for_its_turn() {
    const PACKETS: u16 = 100;
    let mut pair = Pair::new();
    let second = pair.client.open(&SessionOptions::default());
    let back = pair.complete(second);
    let first = pair.session;
    for session in [first, second] {
        pair.session = session;
        call_large(
            &mut pair,
            PACKETS.into(),
            usize::from(PACKETS) * DATA_SIZE as usize,
            1,
        );
        pair.pass(Nanos::from_millis(10));
    }
    assert_eq!(pair.done().len(), 2);
    pair.session = first;
    let flooded = server_side(&mut pair);
    let quiet = pair.server.rpc.lifecycle().offer_of(back).unwrap();
    let ask = |to: &SessionOffer, count| Header {
        aux: count,
        size: Header::arrivals(PktNum(0), 0),
        ..header(to, PacketType::Rfr, 0)
    };
    for _ in 0..50 {
        let frame = ask(&flooded, PACKETS).encode().to_vec();
        pair.server.inbox.borrow_mut().push_back(frame);
    }
    let last = ask(&quiet, 4).encode().to_vec();
    pair.server.inbox.borrow_mut().insert(1, last);
    let mut sent = Vec::new();
    for _ in 0..4 {
        pair.step_server();
        sent.extend(take(&pair.server.out));
    }
    let client = client_side(&mut pair);
    let is_flooded = |answer: &&Header| answer.session == client.session;
    let credits = flooded.credits;
    // The RFRs come in two bursts, because the wire shows only one burst at a time.
    let floods = u32::try_from(sent.iter().filter(is_flooded).count()).unwrap();
    assert!(
        (credits..=2 * credits).contains(&floods),
        "{floods} packets"
    );
    let before = sent
        .iter()
        .position(|answer| answer.session != client.session);
    assert!(before.unwrap() <= 16, "{before:?} packets went first");
    let drops = pair.server.rpc.counters().drops;
    assert_eq!(drops.packet_number, 50);
    pair.assert_clean();
}
