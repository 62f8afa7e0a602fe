//! Messages of many packets: requests and responses, losses and reordering, and misbehaving peers.

use dunlin_core::{CallOptions, Config, Nanos, Rng, RpcError, SessionOptions, Tag};
use dunlin_testkit::pair::*;
use dunlin_wire::{ErrorCode, Header, PacketType, PktNum, Ran};

/// Bytes whose values show their positions.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    (0..len)
        .map(|i| (i ^ i >> 8 ^ i >> 16).to_le_bytes()[0])
        .collect()
}

/// Issues an echo with room for its answer.
pub(crate) fn call(
    pair: &mut Pair,
    req_type: dunlin_wire::ReqType,
    data: &[u8],
    tag: u64,
) -> dunlin_core::CallId {
    let rpc = &mut pair.client.rpc;
    let mut request = rpc.buf(data.len()).unwrap();
    request.data_mut().copy_from_slice(data);
    let response = rpc.buf(data.len()).unwrap();
    let options = CallOptions::default();
    rpc.call_with(pair.session, req_type, request, response, Tag(tag), options)
        .unwrap()
}

/// Passes time in small steps, in which a fault may remove packets or reverse their order.
fn pass_with(pair: &mut Pair, steps: usize, fault: impl FnMut(&mut Vec<Vec<u8>>)) {
    pass_by(pair, 5_000, steps, fault);
}

pub(super) fn pass_by(
    pair: &mut Pair,
    step_ns: u64,
    steps: usize,
    mut fault: impl FnMut(&mut Vec<Vec<u8>>),
) {
    for _ in 0..steps {
        pair.clock.pass(Nanos(step_ns));
        pair.step_client();
        let mut frames: Vec<_> = pair.client.out.borrow_mut().drain(..).collect();
        fault(&mut frames);
        pair.server.inbox.borrow_mut().extend(frames);
        pair.step_server();
        let mut frames: Vec<_> = pair.server.out.borrow_mut().drain(..).collect();
        fault(&mut frames);
        pair.client.inbox.borrow_mut().extend(frames);
    }
}

/// Passes time without faults until the first call has its answer.
pub(crate) fn finish(pair: &mut Pair) {
    for _ in 0..20_000 {
        pair.clock.pass(Nanos(100_000));
        pass_with(pair, 1, |_| {});
        if !pair.done().is_empty() {
            return;
        }
    }
    panic!("there is no answer");
}

#[test]
fn requests_and_responses_of_every_size_arrive_whole() {
    let size = DATA_SIZE as usize;
    for len in [
        size,
        size + 1,
        2 * size,
        33 * size - 1,
        300 * size + 7,
        1 << 20,
    ] {
        let mut pair = Pair::new();
        let data = pattern(len);
        call(&mut pair, ECHO, &data, 1);
        pass_with(&mut pair, 3000, |_| {});
        assert_eq!(pair.done().len(), 1, "{len} bytes");
        assert!(pair.done()[0].1.as_ref().unwrap() == &data, "{len} bytes");
        assert!(pair.server.rpc.app().ran[0] == data);
        let counters = pair.client.rpc.counters();
        assert_eq!(counters.retransmissions, 0, "{len} bytes: nothing was lost");
        pair.assert_clean();
    }
}

#[test]
fn every_kind_of_handler_gets_large_requests() {
    let data = pattern(5000);
    let refused = |code| Err(RpcError::rejected(code, true));
    for (req_type, answer) in [
        (HOLD, Ok(vec![7; 6000])),
        (BATCH, refused(ErrorCode::RESPONSE_TOO_LARGE)),
        (PANIC, refused(ErrorCode::HANDLER_FAILED)),
        (UNKNOWN, refused(ErrorCode::UNKNOWN_TYPE)),
    ] {
        let mut pair = Pair::new();
        let mut request = pair.client.rpc.buf(data.len()).unwrap();
        request.data_mut().copy_from_slice(&data);
        let response = pair.client.rpc.buf(6000).unwrap();
        pair.client
            .rpc
            .call(pair.session, req_type, request, response, Tag(1))
            .unwrap();
        pass_with(&mut pair, 100, |_| {});
        if req_type == HOLD {
            let (app, mut cx) = pair.server.rpc.with();
            app.held.pop().unwrap().reply_bytes(&mut cx, &[7; 6000]);
            pass_with(&mut pair, 100, |_| {});
        }
        assert_eq!(pair.done(), [(Tag(1), answer)]);
        pair.assert_clean();
    }
}

#[test]
fn a_background_handler_gets_a_large_request() {
    let mut pair = Pair::new();
    call(&mut pair, BACKGROUND, &pattern(3000), 1);
    pass_with(&mut pair, 50, |_| {});
    assert_eq!(pair.server.workers.waiting(), 1);
}

#[test]
fn losses_are_repaired_one_by_one() {
    let mut pair = Pair::new();
    let data = pattern(1 << 20);
    call(&mut pair, ECHO, &data, 1);
    let (mut rng, mut lost) = (Rng::new(7), 0);
    pass_with(&mut pair, 6000, |frames| {
        frames.retain(|_| {
            let keep = rng.below(256) > 5;
            lost += u64::from(!keep);
            keep
        });
    });
    assert!(pair.done()[0].1.as_ref().unwrap() == &data);
    let again = pair.client.rpc.counters().retransmissions;
    assert!(
        lost > 20 && again < 3 * lost,
        "{lost} lost, {again} sent again"
    );
    pair.assert_clean();
}

#[test]
fn reordered_packets_are_not_lost() {
    let mut pair = Pair::new();
    let data = pattern(1 << 20);
    call(&mut pair, ECHO, &data, 1);
    pass_with(&mut pair, 3000, |frames| frames.reverse());
    assert!(pair.done()[0].1.as_ref().unwrap() == &data);
    pair.assert_clean();
}

#[test]
fn small_requests_pass_large_ones() {
    let mut pair = Pair::new();
    call(&mut pair, ECHO, &pattern(1 << 20), 1);
    pass_with(&mut pair, 20, |_| {});
    for tag in 2..6 {
        call(&mut pair, ECHO, b"small", tag);
    }
    pass_with(&mut pair, 4, |_| {});
    assert_eq!(pair.done().len(), 4, "the large one is still on its way");
    pass_with(&mut pair, 3000, |_| {});
    assert_eq!(pair.done().len(), 5);
    pair.assert_clean();
}

#[test]
fn a_response_that_does_not_fit_is_an_error_and_the_session_goes_on() {
    let mut pair = Pair::new();
    let mut request = pair.client.rpc.buf(9000).unwrap();
    request.data_mut().fill(3);
    let response = pair.client.rpc.buf(100).unwrap();
    pair.client
        .rpc
        .call(pair.session, ECHO, request, response, Tag(1))
        .unwrap();
    pass_with(&mut pair, 100, |_| {});
    let too_large = Err(RpcError::ResponseTooLarge { size: 9000 });
    assert_eq!(pair.done(), [(Tag(1), too_large)]);
    pair.assert_clean();
}

#[test]
fn a_cancelled_transfer_gives_everything_back() {
    for steps in [1, 3, 10, 60] {
        let mut pair = Pair::new();
        let large = call(&mut pair, ECHO, &pattern(1 << 20), 1);
        pass_with(&mut pair, steps, |_| {});
        assert!(
            pair.client.rpc.cx().cancel(large).is_ok(),
            "after {steps} steps"
        );
        pass_with(&mut pair, 200, |_| {});
        let results: Vec<_> = pair.done().iter().filter(|done| done.0 == Tag(1)).collect();
        assert_eq!(results, [&(Tag(1), Err(RpcError::Cancelled(Ran::Unknown)))]);
        call(&mut pair, ECHO, b"after", 3);
        pass_with(&mut pair, 100, |_| {});
        assert_eq!(pair.done().last().unwrap().1, Ok(b"after".to_vec()));
        pair.assert_clean();
    }
}

#[test]
fn a_full_budget_refuses_requests_until_it_has_room_again() {
    let config = Config {
        session_receive_budget: 100_000,
        ..Config::default()
    };
    let mut pair = Pair::with(config, SessionOptions::default());
    for tag in 0..3 {
        call(&mut pair, ECHO, &pattern(60_000), tag);
    }
    pass_with(&mut pair, 100, |_| {});
    let overloaded = Err(RpcError::rejected(ErrorCode::OVERLOADED, true));
    let refused = pair.done().iter().filter(|done| done.1 == overloaded);
    assert_eq!((refused.count(), pair.done().len()), (2, 3));
    call(&mut pair, ECHO, &pattern(60_000), 9);
    pass_with(&mut pair, 100, |_| {});
    assert_eq!(pair.done()[3].1.as_ref().unwrap(), &pattern(60_000));
    pair.assert_clean();
}

#[test]
fn the_memory_of_a_request_whose_sender_stops_is_freed() {
    let mut pair = Pair::new();
    call(&mut pair, ECHO, &pattern(100_000), 1);
    pair.step_client();
    deliver(&pair.client.out, &pair.server.inbox);
    pair.step_server();
    assert!(pair.server.rpc.pool_use().1 > 0);
    for _ in 0..4000 {
        pair.clock.pass(Nanos(1_000_000));
        pair.step_server();
    }
    assert_eq!(pair.server.rpc.pool_use().1, 0);
}

/// Adds copies of the packets that match, with changed headers.
fn forge(frames: &mut Vec<Vec<u8>>, change: impl Fn(&mut Header) -> bool) -> usize {
    let mut forged = Vec::new();
    for frame in frames.iter() {
        let mut header = Header::decode(frame).unwrap();
        if change(&mut header) {
            let mut copy = frame.clone();
            copy[..24].copy_from_slice(&header.encode());
            forged.push(copy);
        }
    }
    let count = forged.len();
    frames.extend(forged);
    count
}

#[test]
fn contradictions_are_dropped_and_counted() {
    let mut pair = Pair::new();
    let data = pattern(200_000);
    call(&mut pair, ECHO, &data, 1);
    let mut forged = [0; 6];
    pass_with(&mut pair, 1000, |frames| {
        // A message that changes its size midway.
        forged[0] += forge(frames, |header| {
            let shows = header.kind == PacketType::Req && header.pkt.0 == 9;
            header.size += 1;
            shows
        });
        // A CR that acknowledges packets that have not been sent.
        forged[1] += forge(frames, |header| {
            let shows = header.kind == PacketType::Cr && header.cumulative().0 < 90;
            header.size = Header::arrivals(PktNum(190), 0);
            shows
        });
        // A request for packets that the response does not have.
        forged[2] += forge(frames, |header| {
            let shows = header.kind == PacketType::Rfr && header.aux != 0;
            header.pkt = PktNum(197_u32.wrapping_sub(u32::from(header.aux)));
            shows
        });
        // Packets of the response that the client has not asked for.
        forged[3] += forge(frames, |header| {
            let shows = header.kind == PacketType::Resp && header.pkt.0 == 20;
            header.pkt = PktNum(180);
            shows
        });
        // A response that becomes small midway.
        forged[5] += forge(frames, |header| {
            let shows = header.kind == PacketType::Resp && header.pkt.0 == 40;
            (header.pkt, header.size) = (PktNum(0), DATA_SIZE);
            shows
        });
        // A packet number that the message does not have.
        forged[4] += forge(frames, |header| {
            let shows = header.kind == PacketType::Req && header.pkt.0 == 5;
            header.pkt = PktNum(u32::MAX);
            shows
        });
    });
    assert!(forged.iter().all(|count| *count > 0), "{forged:?}");
    assert!(pair.done()[0].1.as_ref().unwrap() == &data);
    let (client, server) = (pair.client.rpc.counters(), pair.server.rpc.counters());
    assert_eq!(server.drops.size, forged[0] as u64);
    assert_eq!(client.drops.size, forged[5] as u64);
    assert!(client.drops.packet_number >= forged[1] as u64, "{client:?}");
    assert_eq!(server.drops.packet_number, (forged[2] + forged[4]) as u64);
    assert!(client.drops.unexpected >= forged[3] as u64, "{client:?}");
    pair.assert_clean();
}

#[test]
fn one_credit_carries_a_large_message() {
    let options = options(2, 1);
    let mut pair = Pair::with(Config::default(), options);
    let data = pattern(20_000);
    call(&mut pair, ECHO, &data, 1);
    call(&mut pair, ECHO, b"small", 2);
    pass_with(&mut pair, 300, |_| {});
    assert_eq!(pair.done().len(), 2);
    assert!(pair.done().iter().any(|done| done.1.as_ref() == Ok(&data)));
    pair.assert_clean();
}

#[test]
fn a_silent_peer_fails_in_the_middle_of_a_message() {
    let mut pair = Pair::new();
    call(&mut pair, ECHO, &pattern(1 << 20), 1);
    pass_with(&mut pair, 20, |_| {});
    let begin = pair.clock.read();
    while pair.done().is_empty() {
        pass_with(&mut pair, 1, Vec::clear);
    }
    assert_eq!(
        pair.done(),
        [(Tag(1), Err(RpcError::PeerFailed(Ran::Unknown)))]
    );
    // The server is silent for a second, and then its process is silent for another second.
    let took = pair.clock.read().since(begin);
    assert!(took < Nanos::from_millis(2500), "{took:?}");
}

#[test]
fn silence_does_not_make_a_storm() {
    let mut pair = Pair::new();
    call(&mut pair, ECHO, &pattern(1 << 20), 1);
    // The steps are so short that there are samples of the round trip.
    pass_by(&mut pair, 1_000, 10, |_| {});
    assert!(pair.done().is_empty() && pair.client.rpc.counters().rtt_samples > 0);
    let before = pair.client.rpc.counters().tx_packets;
    // The server is stopped for a tenth of a second.
    for _ in 0..2000 {
        pair.clock.pass(Nanos(50_000));
        pair.step_client();
    }
    let sent = pair.client.rpc.counters().tx_packets - before;
    assert!(sent < 6 * 32, "{sent} packets, with 32 credits");
    take(&pair.client.out);
    finish(&mut pair);
    assert!(pair.done()[0].1.is_ok());
    pair.assert_clean();
}

#[test]
fn absence_of_the_client_is_no_silence_of_its_peer() {
    let config = Config {
        response_hold: Nanos::from_secs(10),
        ..Config::default()
    };
    let mut pair = Pair::with(config, SessionOptions::default());
    call(&mut pair, ECHO, &pattern(4 << 20), 1);
    // This ends after the first scan of calls; large messages need no further scans.
    pass_with(&mut pair, 100, |_| {});
    assert!(pair.done().is_empty());
    // The client does not run for two seconds, and packets on their way to it are lost.
    pair.clock.pass(Nanos(2_000_000_000));
    pair.client.inbox.borrow_mut().clear();
    // This is long enough for several attempts, before which no request is given up.
    for _ in 0..1000 {
        pair.clock.pass(Nanos(100_000));
        pair.step_client();
        pair.client.out.borrow_mut().clear();
    }
    assert!(pair.done().is_empty(), "{:?}", pair.done());
    finish(&mut pair);
    assert!(pair.done()[0].1.is_ok());
    pair.pass(Nanos::from_secs(12));
    pair.assert_clean();
}

/// Issues `count` large echoes on a session whose round trip has been measured as short.
pub(super) fn issue_many(pair: &mut Pair, data: &[u8], count: u64) {
    call(pair, ECHO, &pattern(1 << 16), 0);
    pass_by(pair, 1_000, 500, |_| {});
    assert!(pair.client.rpc.counters().rtt_samples > 0);
    assert_eq!(pair.done().len(), 1);
    (1..=count).for_each(|tag| {
        call(pair, ECHO, data, tag);
    });
}

/// Sessions with many requests and packets in flight.
pub(super) const WIDE: SessionOptions = options(64, 64);

#[test]
fn a_server_that_is_occupied_with_other_messages_loses_none() {
    let mut pair = Pair::with(Config::default(), WIDE);
    issue_many(&mut pair, &pattern(5_000), 60);
    // The server needs many bursts, and much more time than the measured round trip.
    for _ in 0..400 {
        pair.server.rpc.run_once();
        for _ in 0..15 {
            pair.clock.pass(Nanos::from_micros(1));
            pair.client.rpc.run_once();
            deliver(&pair.client.out, &pair.server.inbox);
        }
        deliver(&pair.server.out, &pair.client.inbox);
    }
    assert_eq!(pair.done().len(), 61);
    assert_eq!(pair.client.rpc.counters().retransmissions, 0);
    pair.assert_clean();
}

#[test]
fn a_peer_that_does_not_run_for_a_while_is_asked_once_and_not_for_every_message() {
    let mut pair = Pair::with(Config::default(), WIDE);
    issue_many(&mut pair, &pattern(5_000), 30);
    pass_by(&mut pair, 1_000, 3, |_| {});
    // The server does not run for 3 ms.
    for _ in 0..3_000 {
        pair.clock.pass(Nanos::from_micros(1));
        pair.step_client();
    }
    let asked = pair.client.rpc.counters().retransmissions;
    assert!((1..12).contains(&asked), "{asked} packets were sent again");
    deliver(&pair.client.out, &pair.server.inbox);
    pass_by(&mut pair, 5_000, 1_000, |_| {});
    assert_eq!(pair.done().len(), 31);
    assert_eq!(pair.client.rpc.counters().retransmissions, asked);
    pair.assert_clean();
}

#[test]
fn equal_messages_of_a_session_take_about_as_long() {
    let mut pair = Pair::new();
    let data = pattern(200 << 10);
    let mut issued = [0_u64; 8];
    let mut took = Vec::new();
    let (mut tags, mut seen) = (0, 0);
    for slot in 0..8 {
        call(&mut pair, ECHO, &data, slot);
        tags += 1;
    }
    let begin = pair.clock.read().0;
    issued.fill(begin);
    while took.len() < 200 {
        pass_by(&mut pair, 2_000, 1, |_| {});
        let done: Vec<_> = pair.done()[seen..].iter().map(|done| done.0.0).collect();
        seen += done.len();
        for tag in done {
            let slot = tag % 8;
            took.push(pair.clock.read().0 - issued[slot as usize]);
            issued[slot as usize] = pair.clock.read().0;
            call(&mut pair, ECHO, &data, slot + 8 * tags);
            tags += 1;
        }
    }
    // Leaves out the first calls, which began together.
    let took = &mut took[8..];
    let mean = took.iter().sum::<u64>() / took.len() as u64;
    took.sort_unstable();
    let slow = took[took.len() * 99 / 100];
    assert!(slow * 2 <= mean * 3, "{slow} ns, in the mean {mean} ns");
    assert_eq!(pair.client.rpc.counters().retransmissions, 0);
}
