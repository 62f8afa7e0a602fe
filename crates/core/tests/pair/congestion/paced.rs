//! Sessions with a limited rate: packets that wait for their departure, packets that do not, and
//! the samples that congestion control gets (rule S15).

use dunlin_core::{
    Bypasses, BytesPerSec, Config, CongestionControl, Nanos, Sample, Scheme, SessionOptions, Tag,
};
use dunlin_testkit::pair::*;
use dunlin_wire::{Flags, Header, PacketType};

/// A scheme that always has the same rate.
#[derive(Debug)]
struct Fixed(u64);

impl CongestionControl for Fixed {
    fn on_answer(&mut self, _: Sample) {}

    fn on_timeout(&mut self, _: Nanos) {}

    fn rate(&self) -> Option<BytesPerSec> {
        Some(BytesPerSec(self.0))
    }
}

/// At this rate, a packet of 1024 bytes with its header takes a millisecond.
const PACKET_A_MS: u64 = 1_048_000;

fn paced_pair(rate: u64) -> Pair {
    let mut pair = Pair::new();
    let session = pair.session;
    let controlled = pair
        .client
        .rpc
        .set_own_scheme(session, Box::new(Fixed(rate)));
    assert_eq!(controlled, Ok(()));
    pair
}

/// Issues an echo of `len` bytes with room for its answer.
fn call(pair: &mut Pair, len: usize, tag: u64) {
    let rpc = &mut pair.client.rpc;
    let (request, response) = (rpc.buf(len).unwrap(), rpc.buf(len).unwrap());
    let session = pair.session;
    rpc.call(session, ECHO, request, response, Tag(tag))
        .unwrap();
}

/// Passes `micros` µs in small steps. Returns the packets of a type that the client sent, each with
/// its time in µs since the beginning.
fn departures(pair: &mut Pair, micros: u64, kind: PacketType) -> Vec<(u64, Header)> {
    let begin = pair.clock.read();
    let mut seen = Vec::new();
    for micro in 0..micros / 10 {
        pair.clock.set(begin + Nanos::from_micros(micro * 10));
        pair.step_client();
        let at = pair.clock.read().since(begin).0 / 1000;
        for frame in pair.client.out.borrow().iter() {
            let header = Header::decode(frame).unwrap();
            if header.kind == kind {
                seen.push((at, header));
            }
        }
        deliver(&pair.client.out, &pair.server.inbox);
        pair.step_server();
        deliver(&pair.server.out, &pair.client.inbox);
    }
    seen
}

/// Checks that each packet left within two steps of its expected time.
#[track_caller]
fn assert_times(seen: &[(u64, Header)], micros: &[u64]) {
    let times: Vec<u64> = seen.iter().map(|(at, _)| *at).collect();
    let fits = |(at, time): (&u64, &u64)| *at >= *time && *at <= time + 20;
    let all = times.len() == micros.len() && times.iter().zip(micros).all(fits);
    assert!(all, "{times:?} instead of {micros:?}");
}

#[test]
fn a_large_request_leaves_packet_by_packet() {
    let mut pair = paced_pair(PACKET_A_MS);
    call(&mut pair, 5 * 1024, 1);
    let seen = departures(&mut pair, 5000, PacketType::Req);
    assert_times(&seen, &[0, 1000, 2000, 3000, 4000]);
    assert!(
        seen.iter()
            .all(|(_, header)| !header.flags.has(Flags::RETRANSMISSION))
    );
    // All packets but the first were paced, and so was an RFR for the rest of the response.
    assert_eq!(pair.client.rpc.counters().paced, 5);
    pair.assert_clean();
}

#[test]
fn small_requests_follow_each_other_at_the_rate() {
    let mut pair = paced_pair(PACKET_A_MS);
    for tag in 0..3 {
        call(&mut pair, 500, tag);
    }
    // The packets have 524 bytes each.
    assert_times(
        &departures(&mut pair, 3000, PacketType::Req),
        &[0, 500, 1000],
    );
    assert_eq!(pair.done().len(), 3);
    pair.assert_clean();
}

#[test]
fn messages_of_a_session_take_turns_of_64_packets() {
    // A packet takes 20 µs, which is two steps.
    let mut pair = paced_pair(50 * PACKET_A_MS);
    call(&mut pair, 70 * 1024, 1);
    call(&mut pair, 70 * 1024, 2);
    let seen = departures(&mut pair, 4000, PacketType::Req);
    let mut turns: Vec<(u32, u32)> = Vec::new();
    for (_, header) in &seen {
        match turns.last_mut() {
            Some((req, packets)) if *req == header.req.0 => *packets += 1,
            _ => turns.push((header.req.0, 1)),
        }
    }
    assert_eq!(turns, [(0, 64), (1, 64), (0, 6), (1, 6)]);
    pair.pass(Nanos::from_millis(20));
    assert_eq!(pair.done().len(), 2);
    pair.assert_clean();
}

#[test]
fn an_rfr_takes_the_time_of_the_bytes_that_it_asks_for() {
    let mut pair = Pair::new();
    call(&mut pair, 10 * 1024, 1);
    // The request leaves unpaced, and the server sends the first packet of the response.
    while pair.ran() == 0 {
        pair.step_client();
        deliver(&pair.client.out, &pair.server.inbox);
        pair.step_server();
        deliver(&pair.server.out, &pair.client.inbox);
    }
    let session = pair.session;
    pair.client
        .rpc
        .set_own_scheme(session, Box::new(Fixed(PACKET_A_MS)))
        .unwrap();
    let seen = departures(&mut pair, 20_000, PacketType::Rfr);
    let asked: Vec<u16> = seen.iter().map(|(_, header)| header.aux).collect();
    assert_eq!(asked, [4, 4, 1]);
    assert_times(&seen, &[0, 4000, 8000]);
    assert_eq!(pair.done().len(), 1);
    pair.assert_clean();
}

#[test]
fn answers_are_never_paced() {
    let mut pair = Pair::new();
    let back = pair.back;
    // The rate is one packet in a second.
    pair.server
        .rpc
        .set_own_scheme(back, Box::new(Fixed(1048)))
        .unwrap();
    for tag in 0..4 {
        call(&mut pair, 5000, tag);
    }
    for _ in 0..100 {
        pair.clock.pass(Nanos(10_000));
        pair.run();
    }
    assert_eq!(pair.done().len(), 4, "answers do not wait for the rate");
    assert_eq!(pair.server.rpc.counters().paced, 0);
    pair.assert_clean();
}

#[test]
fn a_request_that_waits_in_the_wheel_has_no_timeout() {
    // The second request leaves after 100 ms; the first timeout would come after 20 ms.
    let mut pair = paced_pair(5240);
    call(&mut pair, 500, 1);
    call(&mut pair, 500, 2);
    assert_times(
        &departures(&mut pair, 150_000, PacketType::Req),
        &[0, 100_000],
    );
    assert_eq!(pair.client.rpc.counters().retransmissions, 0);
    pair.assert_clean();
}

#[test]
fn a_request_that_is_cancelled_in_the_wheel_never_leaves() {
    let mut pair = paced_pair(PACKET_A_MS);
    call(&mut pair, 500, 1);
    let id = pair.call(ECHO, &[0; 500], 2);
    pair.run();
    assert!(pair.client.rpc.cx().cancel(id).is_ok());
    let seen = departures(&mut pair, 3000, PacketType::Req);
    assert_times(&seen, &[]);
    assert_eq!(pair.ran(), 1);
    pair.assert_clean();
}

#[test]
fn a_session_that_ends_leaves_nothing_to_send() {
    let mut pair = paced_pair(PACKET_A_MS);
    call(&mut pair, 5 * 1024, 1);
    pair.step_client();
    let session = pair.session;
    assert!(pair.client.rpc.disconnect(session).is_ok());
    // Another session takes the session's number. No packet of the old session may go to the new
    // one.
    let options = SessionOptions::default();
    let again = pair.client.open(&options);
    assert_eq!(again.number(), session.number());
    pair.client.out.borrow_mut().clear();
    let seen = departures(&mut pair, 10_000, PacketType::Req);
    assert_times(&seen, &[]);
}

#[test]
fn a_short_wheel_paces_all_the_same() {
    let config = Config {
        wheel_slot: Nanos::from_micros(10),
        wheel_horizon: Nanos::from_micros(20),
        ..Config::default()
    };
    let mut pair = Pair::with(config, SessionOptions::default());
    let session = pair.session;
    pair.client
        .rpc
        .set_own_scheme(session, Box::new(Fixed(PACKET_A_MS)))
        .unwrap();
    call(&mut pair, 3 * 1024, 1);
    let seen = departures(&mut pair, 3000, PacketType::Req);
    assert_times(&seen, &[0, 1000, 2000]);
    pair.assert_clean();
}

#[test]
fn marks_are_echoed_and_lower_the_rate() {
    let options = SessionOptions::DEFAULT.with_scheme(Scheme::Dcqcn);
    // The network marks a large request, whose CRs echo the mark; a small request, whose RESP
    // echoes it; and a RESP itself.
    for (len, at_server) in [(20 * 1024, true), (100, true), (100, false)] {
        let mut pair = Pair::with(Config::default(), options);
        let rate = |pair: &Pair| pair.client.rpc.session_info(pair.session).unwrap().rate;
        assert_eq!(rate(&pair), None);
        let marked = match at_server {
            true => &pair.server.congestion,
            false => &pair.client.congestion,
        };
        marked.set(true);
        call(&mut pair, len, 1);
        pair.run();
        assert!(
            rate(&pair).is_some(),
            "{len} bytes, marked at the server: {at_server}"
        );
        assert!(pair.client.rpc.counters().congestion_marks > 0);
        pair.client.congestion.set(false);
        pair.server.congestion.set(false);
        pair.pass(Nanos::from_millis(10));
        pair.assert_clean();
    }
}

/// Lets the client send and the server answer; returns the headers of the server's packets.
fn answers(pair: &mut Pair) -> Vec<Header> {
    pair.step_client();
    deliver(&pair.client.out, &pair.server.inbox);
    pair.step_server();
    let out = pair.server.out.borrow();
    let sent = out.iter().map(|frame| Header::decode(frame).unwrap());
    let sent = sent.collect();
    drop(out);
    deliver(&pair.server.out, &pair.client.inbox);
    sent
}

#[test]
fn the_marks_of_a_burst_are_echoed_once() {
    // The network marks a packet of the first burst, or of the burst that completes the request.
    for marked in [0, 1] {
        let mut pair = paced_pair(PACKET_A_MS);
        call(&mut pair, 2 * 1024, 1);
        let mut echoes = Vec::new();
        for burst in 0..2 {
            pair.server.congestion.set(burst == marked);
            let sent = answers(&mut pair);
            assert_eq!(sent.len(), 1, "{sent:?}");
            echoes.push(sent[0].flags.has(Flags::ECN_ECHO));
            pair.clock.pass(Nanos::from_millis(1));
        }
        assert_eq!(echoes, [marked == 0, marked == 1], "CR, RESP");
    }
}

#[test]
fn only_the_first_answer_to_a_request_echoes_its_mark() {
    let mut pair = Pair::new();
    pair.server.congestion.set(true);
    pair.call(HOLD, b"x", 1);
    assert!(answers(&mut pair).is_empty());
    pair.server.congestion.set(false);
    // The server acknowledges the request, and answers it later.
    pair.clock.pass(Nanos::from_micros(100));
    for _ in 0..64 {
        pair.server.rpc.run_once();
    }
    let sent = answers(&mut pair);
    assert_eq!(sent[0].kind, PacketType::Cr, "{sent:?}");
    assert!(sent[0].flags.has(Flags::ECN_ECHO));
    let (app, mut cx) = pair.server.rpc.with();
    app.held.pop().unwrap().reply(&mut cx, 0, |_| {});
    let sent = answers(&mut pair);
    assert_eq!(sent[0].kind, PacketType::Resp, "{sent:?}");
    assert!(
        !sent[0].flags.has(Flags::ECN_ECHO),
        "the CR has echoed the mark"
    );
}

#[test]
fn marks_of_large_responses_slow_down_rfrs_and_no_requests() {
    let options = SessionOptions::DEFAULT.with_scheme(Scheme::Dcqcn);
    let mut pair = Pair::with(Config::default(), options);
    call(&mut pair, 200 * 1024, 1);
    // The request leaves at line rate; then the network marks packets of the response.
    while pair.ran() == 0 {
        pair.step_client();
        deliver(&pair.client.out, &pair.server.inbox);
        pair.step_server();
        deliver(&pair.server.out, &pair.client.inbox);
    }
    pair.client.congestion.set(true);
    assert_eq!(pair.client.rpc.counters().paced, 0);
    departures(&mut pair, 100, PacketType::Rfr);
    assert!(pair.client.rpc.counters().paced > 0, "an RFR waits");
    let rate = pair.client.rpc.session_info(pair.session).unwrap().rate;
    assert_eq!(rate, None, "the rate of requests has not changed");
    (2..6).for_each(|tag| call(&mut pair, 1000, tag));
    assert_times(&departures(&mut pair, 10, PacketType::Req), &[0; 4]);
    pair.client.congestion.set(false);
    pair.pass(Nanos::from_millis(10));
    assert_eq!(pair.done().len(), 5);
    pair.assert_clean();
}

#[test]
fn a_session_has_the_scheme_that_was_chosen_last() {
    let config = Config {
        scheme: Some(Scheme::Timely),
        ..Config::default()
    };
    let scheme = |pair: &Pair| pair.client.rpc.session_info(pair.session).unwrap().scheme;
    let options = SessionOptions::default();
    // The transport knows nothing about its peer.
    assert_eq!(scheme(&Pair::new()), Scheme::None);
    assert_eq!(scheme(&Pair::with(config.clone(), options)), Scheme::Timely);
    let swift = options.with_scheme(Scheme::Swift);
    let mut pair = Pair::with(config, swift);
    assert_eq!(scheme(&pair), Scheme::Swift);
    // Each side chooses for its own requests.
    let other = pair.server.rpc.session_info(pair.back).unwrap().scheme;
    assert_eq!(other, Scheme::Timely);
    let session = pair.session;
    assert!(pair.client.rpc.set_scheme(session, Scheme::Dcqcn).is_ok());
    assert_eq!(scheme(&pair), Scheme::Dcqcn);
    pair.client.rpc.disconnect(session).unwrap();
    assert!(pair.client.rpc.set_scheme(session, Scheme::Dcqcn).is_err());
}

#[test]
fn a_scheme_can_be_taken_away_while_packets_wait() {
    let mut pair = paced_pair(PACKET_A_MS);
    call(&mut pair, 50 * 1024, 1);
    departures(&mut pair, 2000, PacketType::Req);
    let session = pair.session;
    assert!(pair.client.rpc.set_scheme(session, Scheme::None).is_ok());
    let seen = departures(&mut pair, 3000, PacketType::Req);
    assert_eq!(seen.len(), 48, "the rest goes as fast as credits allow");
    assert_eq!(pair.done().len(), 1);
    pair.assert_clean();
}

#[test]
fn the_rate_limiter_is_bypassed_at_line_rate_unless_asked_not_to() {
    let config = Config {
        scheme: Some(Scheme::Timely),
        ..Config::default()
    };
    let mut pair = Pair::with(config, SessionOptions::default());
    let paced = |pair: &Pair| pair.client.rpc.counters().paced;
    for (limiter, waited) in [(true, 0), (false, 3), (true, 3)] {
        pair.client.rpc.set_bypasses(Bypasses {
            limiter,
            ..Bypasses::default()
        });
        for tag in 0..3 {
            call(&mut pair, 10, tag);
        }
        departures(&mut pair, 100, PacketType::Req);
        assert_eq!(paced(&pair), waited, "bypassed: {limiter}");
    }
    assert_eq!(pair.done().len(), 9);
    pair.assert_clean();
}

#[test]
fn the_timely_bypass_takes_fewer_samples() {
    let config = Config {
        scheme: Some(Scheme::Timely),
        ..Config::default()
    };
    let mut pair = Pair::with(config, SessionOptions::default());
    let mut samples = |timely: bool| {
        pair.client.rpc.set_bypasses(Bypasses {
            timely,
            ..Bypasses::default()
        });
        let before = pair.client.rpc.counters().rtt_samples;
        for tag in 0..20 {
            call(&mut pair, 10, tag);
            pair.clock.pass(Nanos(1000));
            pair.run();
        }
        pair.client.rpc.counters().rtt_samples - before
    };
    assert!(samples(true) <= 3, "the session asks every 10 µs");
    assert_eq!(samples(false), 20);
}

/// Round trips of half a microsecond, except for one of 0.6 ms. After such a round trip, eRPC's
/// Timely keeps a lower rate for ever, because it ignores samples below 2 µs (design §17).
#[test]
fn one_spike_on_a_fast_fabric_is_forgotten_within_a_hundred_round_trips() {
    let config = Config {
        scheme: Some(Scheme::Timely),
        ..Config::default()
    };
    let mut pair = Pair::with(config, SessionOptions::default());
    let mut tag = 0;
    let mut round_trip = |pair: &mut Pair, nanos: u64| {
        call(pair, 32, tag);
        tag += 1;
        let done = pair.done().len();
        // A paced request waits at the client, then takes its time on the fabric.
        while pair.client.out.borrow().is_empty() {
            pair.clock.pass(Nanos(100));
            pair.step_client();
        }
        // The endpoint polls during that time.
        for part in 0..10 {
            pair.clock.pass(Nanos(nanos / 10));
            pair.step_client();
            if part == 5 {
                deliver(&pair.client.out, &pair.server.inbox);
                pair.step_server();
            }
        }
        deliver(&pair.server.out, &pair.client.inbox);
        pair.step_client();
        assert_eq!(pair.done().len(), done + 1);
        pair.client.rpc.session_info(pair.session).unwrap().rate
    };
    for _ in 0..100 {
        assert_eq!(round_trip(&mut pair, 500), None);
    }
    // The next request is measured.
    pair.clock.pass(Nanos(10_000));
    pair.step_client();
    let before = pair.client.rpc.counters().rtt_samples;
    let lowered = round_trip(&mut pair, 600_000);
    assert!(pair.client.rpc.counters().rtt_samples > before);
    assert!(lowered.is_some(), "a spike must have an effect");
    let back = (1..=100).find(|_| round_trip(&mut pair, 500).is_none());
    assert!(back.is_some_and(|round_trips| round_trips > 1), "{back:?}");
    // No request waits in the wheel, either.
    let paced = pair.client.rpc.counters().paced;
    for _ in 0..20 {
        round_trip(&mut pair, 500);
    }
    assert_eq!(pair.client.rpc.counters().paced, paced);
}
