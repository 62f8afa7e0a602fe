//! Lost, duplicated and late packets; silent peers.

use dunlin_core::{
    Account, CloseReason, Config, Nanos, Report, RpcError, SessionEvent, SessionOptions, Tag,
};
use dunlin_testkit::pair::*;
use dunlin_wire::{ErrorCode, Flags, PacketType, Ran};

#[test]
fn a_lost_request_is_sent_again_with_backoff() {
    let mut pair = Pair::new();
    pair.call(ECHO, b"x", 1);
    let lost = pair.pass_alone(Nanos::from_millis(70));
    assert_eq!(
        lost.len(),
        3,
        "the request leaves at 0, 20 and 60 ms: {lost:?}"
    );
    assert!(lost[0].flags == Flags::SAMPLE && lost[1].flags == Flags::RETRANSMISSION);
    pair.pass(Nanos::from_millis(100));
    assert_eq!(pair.done(), [(Tag(1), Ok(b"x".to_vec()))]);
    assert_eq!(pair.ran(), 1);
    pair.assert_clean();
}

#[test]
fn a_lost_response_is_sent_again_without_a_second_run() {
    let mut pair = Pair::new();
    pair.call(ECHO, b"x", 1);
    pair.step_client();
    deliver(&pair.client.out, &pair.server.inbox);
    pair.step_server();
    assert_eq!(kinds(&take(&pair.server.out)), [PacketType::Resp]);
    pair.pass(Nanos::from_millis(30));
    assert_eq!(pair.done(), [(Tag(1), Ok(b"x".to_vec()))]);
    assert_eq!(
        (pair.ran(), pair.server.rpc.counters().responses_resent),
        (1, 1)
    );
    assert_eq!(
        pair.client.rpc.counters().rtt_samples,
        0,
        "a retransmission gives no sample"
    );
    pair.assert_clean();
}

#[test]
fn after_the_hold_a_duplicate_gets_an_error_and_no_second_run() {
    let mut pair = Pair::new();
    pair.call(ECHO, b"x", 1);
    pair.step_client();
    let request: Vec<_> = pair.client.out.borrow_mut().drain(..).collect();
    pair.server.inbox.borrow_mut().extend(request.clone());
    pair.step_server();
    take(&pair.server.out);
    // Until the hold has ended, only the server runs.
    for _ in 0..2000 {
        pair.clock.pass(Nanos(1_000_000));
        pair.step_server();
    }
    assert_eq!(pair.server.rpc.pool_use().1, 0);
    pair.server.inbox.borrow_mut().extend(request);
    pair.run();
    let gone = Err(RpcError::rejected(ErrorCode::RESPONSE_GONE, true));
    assert_eq!(pair.done(), [(Tag(1), gone)]);
    assert_eq!(pair.ran(), 1);
    pair.call(ECHO, b"y", 2);
    pair.run();
    assert_eq!(pair.done()[1], (Tag(2), Ok(b"y".to_vec())));
}

#[test]
fn a_duplicate_of_a_running_request_gets_a_credit_return() {
    let mut pair = Pair::new();
    pair.call(HOLD, b"x", 1);
    pair.step_client();
    let request: Vec<_> = pair.client.out.borrow_mut().drain(..).collect();
    for _ in 0..3 {
        pair.server.inbox.borrow_mut().extend(request.clone());
    }
    pair.step_server();
    assert_eq!(
        kinds(&take(&pair.server.out)),
        [PacketType::Cr, PacketType::Cr]
    );
    assert_eq!(pair.ran(), 1);
}

#[test]
fn probes_go_on_while_the_server_answers_them() {
    let mut pair = Pair::new();
    pair.call(HOLD, b"x", 1);
    pair.pass(Nanos::from_secs(10));
    assert!(pair.done().is_empty(), "a slow handler is no failure");
    let counters = *pair.client.rpc.counters();
    assert_eq!(counters.retransmissions, 0);
    assert!((50..=200).contains(&counters.probes), "{}", counters.probes);
    let before = pair.client.rpc.cx().ask_within(Nanos::from_millis(20));
    assert_eq!(before, Config::default().probe_max);
    pair.pass(Nanos::from_secs(10));
    let more = pair.client.rpc.counters().probes - counters.probes;
    assert!((400..=600).contains(&more), "{more}");
}

/// The first probes of a call are at 20, 60, 140 and 240 ms.
#[test]
fn a_call_asks_at_once_if_it_would_have_asked_by_a_new_limit() {
    let mut pair = Pair::new();
    pair.call(HOLD, b"x", 1);
    pair.pass(Nanos::from_millis(180));
    let before = pair.client.rpc.counters().probes;
    pair.client.rpc.cx().ask_within(Nanos::from_millis(20));
    pair.pass(Nanos::from_millis(5));
    assert_eq!(pair.client.rpc.counters().probes, before + 1);
}

#[test]
fn a_silent_peer_fails_in_time_and_gets_a_close() {
    let mut pair = Pair::new();
    for tag in 0..20 {
        pair.call(ECHO, b"x", tag);
    }
    pair.pass_alone(Nanos::from_millis(900));
    assert!(pair.done().is_empty());
    pair.pass_alone(Nanos::from_millis(200));
    // The server's process is of an old release and cannot answer inquiries.
    let Some(Report::Question(_)) = pair.client.rpc.lifecycle().take_report() else {
        panic!("the client asks no question");
    };
    let session = pair.session;
    let mut lifecycle = pair.client.rpc.lifecycle();
    lifecycle.on_account(session, &Account::Nothing);
    pair.client.rpc.run_once();
    assert_eq!(pair.done().len(), 20);
    // Eight calls have slots; the others waited for them.
    for (tag, result) in pair.done() {
        let ran = if tag.0 < 8 { Ran::Unknown } else { Ran::No };
        assert_eq!(*result, Err(RpcError::PeerFailed(ran)), "{tag:?}");
    }
    let closed = SessionEvent::Closed {
        session: pair.session,
        reason: CloseReason::PeerFailed,
    };
    assert_eq!(pair.client.rpc.app().events.last(), Some(&closed));
    let Some(Report::Closed(closed)) = pair.client.rpc.lifecycle().take_report() else {
        panic!("no session has ended");
    };
    assert!(closed.tell && closed.session == pair.session && closed.remote.is_some());
    assert!(pair.client.rpc.lifecycle().take_report().is_none());
    pair.assert_clean();
}

#[test]
fn an_endpoint_that_was_paused_fails_no_peer() {
    let mut pair = Pair::new();
    pair.call(ECHO, b"x", 1);
    pair.run();
    pair.call(HOLD, b"y", 2);
    pair.step_client();
    // The client does not run for 5 s, and then finds all packets together.
    pair.clock.pass(Nanos(5_000_000_000));
    pair.run();
    pair.pass(Nanos::from_millis(20));
    assert_eq!(pair.done().len(), 1);
    let held = pair.server.rpc.app_mut().held.pop().unwrap();
    held.reply_bytes(&mut pair.server.rpc.cx(), b"z");
    pair.run();
    assert_eq!(pair.done()[1], (Tag(2), Ok(b"z".to_vec())));
}

#[test]
fn idle_time_is_not_taken_for_loss() {
    let mut pair = Pair::new();
    for tag in 0..10 {
        pair.call(ECHO, b"x", tag);
        pair.run();
        pair.pass(Nanos::from_secs(5));
    }
    assert_eq!(pair.client.rpc.counters().retransmissions, 0);
    assert_eq!(pair.done().len(), 10);
}

#[test]
fn responses_wait_in_the_queue_while_the_client_is_away_and_nothing_is_resent() {
    let mut pair = Pair::new();
    for tag in 0..8 {
        pair.call(ECHO, b"x", tag);
    }
    pair.step_client();
    deliver(&pair.client.out, &pair.server.inbox);
    pair.step_server();
    deliver(&pair.server.out, &pair.client.inbox);
    pair.clock.pass(Nanos(100_000_000));
    pair.run();
    assert_eq!(pair.done().len(), 8);
    assert_eq!(pair.client.rpc.counters().retransmissions, 0);
    assert_eq!(
        pair.client.rpc.counters().rtt_samples,
        0,
        "the client measured its own absence"
    );
}

#[test]
fn acknowledgement_vectors_free_responses_of_idle_slots() {
    let mut pair = Pair::with(Config::default(), options(8, 32));
    for tag in 0..8 {
        pair.call(ECHO, b"x", tag);
    }
    pair.run();
    assert_eq!(pair.server.rpc.pool_use().1, 8);
    pair.pass(Nanos::from_millis(2));
    pair.call(ECHO, b"y", 8);
    pair.run();
    assert_eq!(
        pair.server.rpc.pool_use().1,
        4,
        "four responses were acknowledged"
    );
    pair.assert_clean();
}

#[test]
fn a_peer_that_does_not_run_for_a_while_is_asked_by_one_call_and_not_by_all() {
    let options = SessionOptions::DEFAULT.with_window(64);
    let mut pair = Pair::with(Config::default(), options);
    (0..30).for_each(|tag| {
        pair.call(ECHO, b"hello", tag);
    });
    // This is longer than the first timeout, which is 20 ms, and shorter than the second.
    pair.pass_at_client(Nanos::from_millis(30));
    assert_eq!(pair.client.rpc.counters().retransmissions, 1);
    pair.pass(Nanos::from_millis(50));
    assert_eq!(pair.done().len(), 30);
    assert_eq!(pair.client.rpc.counters().retransmissions, 1);
    pair.assert_clean();
}

#[test]
fn all_of_many_calls_that_were_lost_are_repaired_soon_after_the_first() {
    let options = SessionOptions::DEFAULT.with_window(64);
    let mut pair = Pair::with(Config::default(), options);
    (0..30).for_each(|tag| {
        pair.call(ECHO, b"hello", tag);
    });
    pair.pass_alone(Nanos::from_millis(1));
    pair.pass(Nanos::from_millis(25));
    assert_eq!(pair.done().len(), 30);
    assert_eq!(pair.client.rpc.counters().retransmissions, 30);
    pair.assert_clean();
}

/// Issues a call whose response is lost.
fn lose_response(pair: &mut Pair, tag: u64) {
    pair.call(ECHO, b"x", tag);
    pair.step_client();
    deliver(&pair.client.out, &pair.server.inbox);
    pair.step_server();
    let lost = take(&pair.server.out);
    assert!(kinds(&lost).contains(&PacketType::Resp), "{lost:?}");
}

#[test]
fn a_lost_response_is_asked_for_although_other_calls_ask_all_the_time() {
    let config = Config {
        probe_max: Nanos::from_millis(15),
        ..Config::default()
    };
    let mut pair = Pair::with(config, options(64, 64));
    // Each of these calls asks every 15 ms, and one of them every 0.3 ms.
    for tag in 0..63 {
        pair.call(HOLD, b"h", tag);
        pair.pass(Nanos::from_micros(300));
    }
    pair.pass(Nanos::from_millis(40));
    let probes = pair.client.rpc.counters().probes;
    lose_response(&mut pair, 100);
    pair.pass(Nanos::from_millis(30));
    assert!(pair.client.rpc.counters().probes > probes + 60);
    assert_eq!(pair.done(), [(Tag(100), Ok(b"x".to_vec()))]);
    assert_eq!(pair.client.rpc.counters().retransmissions, 1);
}

#[test]
fn a_lost_response_is_asked_for_while_it_is_held_although_another_handler_took_long() {
    let mut pair = Pair::new();
    pair.call(ECHO, b"", 0);
    pair.call(HOLD, b"long", 1);
    pair.pass(Nanos::from_secs(3));
    let held = pair.server.rpc.app_mut().held.pop().unwrap();
    held.reply_bytes(&mut pair.server.rpc.cx(), b"l");
    pair.run();
    assert_eq!(pair.done().len(), 2);
    assert!(pair.client.rpc.counters().rtt_samples > 0);
    lose_response(&mut pair, 2);
    pair.pass(Nanos::from_millis(300));
    assert_eq!(pair.done()[2..], [(Tag(2), Ok(b"x".to_vec()))]);
    pair.assert_clean();
}
