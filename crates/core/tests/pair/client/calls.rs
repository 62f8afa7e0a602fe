//! Calls: order, backlog, limits, deadlines, cancellation.

use dunlin_core::{CallErrorKind, Config, Nanos, RpcError, SessionOptions, Tag};
use dunlin_testkit::pair::*;
use dunlin_wire::{ErrorCode, Flags, PacketType, Ran};

#[test]
fn a_call_is_answered_with_two_packets() {
    let mut pair = Pair::new();
    pair.call(ECHO, b"hello", 1);
    pair.step_client();
    let request = pair.client.out.borrow()[0].clone();
    assert_eq!((pair.client.out.borrow().len(), request.len()), (1, 24 + 5));
    pair.run();
    assert_eq!(pair.done(), [(Tag(1), Ok(b"hello".to_vec()))]);
    assert_eq!(pair.client.rpc.counters().tx_packets, 1);
    assert_eq!(pair.server.rpc.counters().tx_packets, 1);
    pair.assert_clean();
}

#[test]
fn both_sides_may_call_on_one_session() {
    let mut pair = Pair::new();
    let request = pair.server.rpc.buf(3).unwrap();
    let response = pair.server.rpc.buf(3).unwrap();
    pair.server
        .rpc
        .call(pair.back, ECHO, request, response, Tag(5))
        .unwrap();
    pair.call(ECHO, b"x", 1);
    pair.run();
    assert_eq!(pair.server.rpc.app().done.len(), 1);
    assert_eq!(pair.done().len(), 1);
    pair.assert_clean();
}

#[test]
fn calls_beyond_the_window_wait_in_order_and_beyond_the_backlog_are_refused() {
    let config = Config {
        backlog: 3,
        ..Config::default()
    };
    let mut pair = Pair::with(config, options(2, 32));
    for tag in 0..5 {
        pair.call(ECHO, &[tag], u64::from(tag));
    }
    let request = pair.client.rpc.buf(9).unwrap();
    let response = pair.client.rpc.buf(9).unwrap();
    let refused = pair
        .client
        .rpc
        .call(pair.session, ECHO, request, response, Tag(9))
        .unwrap_err();
    assert_eq!(refused.kind, CallErrorKind::Overloaded);
    assert_eq!(refused.request.len(), 9);
    drop(refused);
    pair.run();
    let tags: Vec<u64> = pair.done().iter().map(|(tag, _)| tag.0).collect();
    assert_eq!(tags, [0, 1, 2, 3, 4]);
    pair.assert_clean();
}

#[test]
fn one_credit_allows_one_packet_in_flight() {
    let mut pair = Pair::with(Config::default(), options(8, 1));
    for tag in 0..4 {
        pair.call(ECHO, b"x", tag);
    }
    pair.step_client();
    assert_eq!(pair.client.out.borrow().len(), 1);
    pair.run();
    assert_eq!(pair.done().len(), 4);
    pair.assert_clean();
}

#[test]
fn request_numbers_wrap() {
    let first_req = dunlin_wire::ReqNum(0_u32.wrapping_sub(64));
    let config = Config {
        first_req,
        ..Config::default()
    };
    let mut pair = Pair::with(config, options(4, 32));
    for tag in 0..200 {
        pair.call(ECHO, b"x", tag);
        pair.run();
    }
    assert_eq!(pair.done().len(), 200);
    assert!(pair.done().iter().all(|(_, result)| result.is_ok()));
    pair.assert_clean();
}

#[test]
fn a_request_above_the_limit_is_refused_with_its_buffers() {
    let limit = 3 * DATA_SIZE;
    let config = Config {
        max_message: limit,
        ..Config::default()
    };
    let mut pair = Pair::with(config, SessionOptions::default());
    let request = pair.client.rpc.buf(limit as usize + 1).unwrap();
    let response = pair.client.rpc.buf(1).unwrap();
    let refused = pair
        .client
        .rpc
        .call(pair.session, ECHO, request, response, Tag(9))
        .unwrap_err();
    assert_eq!(refused.kind, CallErrorKind::TooLarge { limit });
    assert_eq!(refused.request.len(), limit as usize + 1);
}

#[test]
fn a_response_larger_than_its_buffer_is_an_error() {
    let mut pair = Pair::new();
    let mut request = pair.client.rpc.buf(500).unwrap();
    request.data_mut().fill(1);
    let response = pair.client.rpc.buf(10).unwrap();
    pair.client
        .rpc
        .call(pair.session, ECHO, request, response, Tag(1))
        .unwrap();
    pair.run();
    assert_eq!(
        pair.done()[0].1,
        Err(RpcError::ResponseTooLarge { size: 500 })
    );
    pair.assert_clean();
}

#[test]
fn a_deadline_completes_at_once_and_the_slot_waits_for_the_server() {
    let mut pair = Pair::with(Config::default(), options(1, 1));
    pair.call_for(HOLD, b"slow", 1, Some(Nanos::from_millis(1)));
    pair.run();
    pair.pass(Nanos::from_millis(3));
    assert_eq!(
        pair.done(),
        [(Tag(1), Err(RpcError::DeadlinePassed(Ran::Unknown)))]
    );
    // The server still has the request, so the only slot must not be used. One cancellation reaches
    // its handler, however often the client sends it.
    pair.call(ECHO, b"next", 2);
    pair.pass(Nanos::from_millis(30));
    assert!(pair.client.rpc.counters().cancels > 1);
    assert_eq!(pair.server.rpc.app().given_up, 1);
    assert_eq!(pair.done().len(), 1);
    let held = pair.server.rpc.app_mut().held.pop().unwrap();
    assert!(held.is_cancelled(&pair.server.rpc.cx()));
    held.reply_bytes(&mut pair.server.rpc.cx(), b"too late");
    pair.run();
    assert_eq!(pair.done()[1], (Tag(2), Ok(b"next".to_vec())));
    pair.assert_clean();
}

#[test]
fn cancelling_a_request_that_never_arrived_uses_its_number_up() {
    let mut pair = Pair::with(Config::default(), options(1, 1));
    let id = pair.call(ECHO, b"lost", 1);
    pair.step_client();
    let request = pair.client.out.borrow_mut().pop_front().unwrap();
    assert!(pair.client.rpc.cx().cancel(id).is_ok());
    assert!(pair.client.rpc.cx().cancel(id).is_err());
    pair.run();
    assert_eq!(
        pair.done(),
        [(Tag(1), Err(RpcError::Cancelled(Ran::Unknown)))]
    );
    // The request comes after its cancellation, so it must not run.
    pair.server.inbox.borrow_mut().push_back(request);
    pair.run();
    assert_eq!(pair.ran(), 0);
    pair.call(ECHO, b"next", 2);
    pair.run();
    assert_eq!(pair.done()[1], (Tag(2), Ok(b"next".to_vec())));
    pair.assert_clean();
}

#[test]
fn cancelling_in_the_backlog_sends_nothing() {
    let mut pair = Pair::with(Config::default(), options(1, 1));
    pair.call(ECHO, b"a", 1);
    let id = pair.call(ECHO, b"b", 2);
    pair.call(ECHO, b"c", 3);
    assert!(pair.client.rpc.cx().cancel(id).is_ok());
    pair.run();
    let tags: Vec<u64> = pair.done().iter().map(|(tag, _)| tag.0).collect();
    assert_eq!(tags, [2, 1, 3]);
    assert_eq!(pair.ran(), 2);
    pair.assert_clean();
}

#[test]
fn cancel_is_resent_until_it_is_answered() {
    let mut pair = Pair::new();
    let id = pair.call(ECHO, b"x", 1);
    pair.step_client();
    pair.client.out.borrow_mut().clear();
    pair.client.rpc.cx().cancel(id).unwrap();
    let lost = pair.pass_alone(Nanos::from_millis(200));
    assert!(lost.len() >= 3, "{lost:?}");
    assert!(lost.iter().all(|header| header.kind == PacketType::Cancel));
    pair.assert_clean();
}

/// A message that is too long to be copied; the transport reads it in the msgbuf.
const LENT: &[u8] = &[7; 33];

#[test]
fn a_msgbuf_comes_back_only_when_the_transport_is_done() {
    let mut pair = Pair::new();
    // The first call of a session asks for a round-trip sample, and takes the general path.
    for tag in 0..3 {
        pair.client.stuck.set(true);
        let id = pair.call(ECHO, LENT, tag);
        pair.run();
        assert_eq!(
            pair.done().len() as u64,
            tag,
            "the response came, but the transport still has the request"
        );
        assert!(
            pair.client.rpc.cx().cancel(id).is_err(),
            "the call is over, but its completion is not yet delivered"
        );
        pair.client.stuck.set(false);
        pair.run();
        assert_eq!(pair.done().last(), Some(&(Tag(tag), Ok(LENT.to_vec()))));
    }
    assert!(pair.client.rpc.counters().rx_declined > 0);
    pair.assert_clean();
}

#[test]
fn each_completion_may_make_the_next_call() {
    let mut pair = Pair::new();
    pair.client.rpc.on_completion(|app, done, cx| {
        app.done.push((done.tag, done.result.map(|()| Vec::new())));
        let next = Tag(done.tag.0 + 1);
        if next.0 == 20 {
            return cx.recycle([done.request, done.response]);
        }
        cx.call(done.session, ECHO, done.request, done.response, next)
            .unwrap();
    });
    pair.call(ECHO, b"ping", 0);
    pair.run();
    let expected: Vec<_> = (0..20).map(|tag| (Tag(tag), Ok(Vec::new()))).collect();
    assert_eq!(pair.done(), expected);
    assert!(pair.client.rpc.counters().tx_staged >= 19);
    pair.assert_clean();
}

#[test]
fn a_short_response_that_does_not_fit_is_an_error_on_both_paths() {
    let mut pair = Pair::new();
    for tag in 0..3 {
        let rpc = &mut pair.client.rpc;
        let request = rpc.buf(1000).unwrap();
        let response = rpc.buf(8).unwrap();
        rpc.call(pair.session, ECHO, request, response, Tag(tag))
            .unwrap();
        pair.run();
        let end = pair.done().last();
        let too_large = RpcError::ResponseTooLarge { size: 1000 };
        assert_eq!(end, Some(&(Tag(tag), Err(too_large))));
    }
    assert!(pair.client.rpc.counters().rx_declined > 0);
    pair.assert_clean();
}

#[test]
fn a_short_message_is_copied_and_does_not_wait_for_the_transport() {
    for stuck in [true, false] {
        let mut pair = Pair::new();
        pair.client.stuck.set(stuck);
        pair.server.stuck.set(stuck);
        for (tag, len) in [0, 1, 8, 31, 32].into_iter().enumerate() {
            let message = vec![u8::try_from(len).unwrap(); len];
            let tag = tag as u64;
            pair.call(ECHO, &message, tag);
            pair.run();
            assert_eq!(pair.done().last(), Some(&(Tag(tag), Ok(message))));
        }
        let held = pair.server.rpc.pool_use();
        assert!(held.1 <= 5, "the server has set responses aside: {held:?}");
        pair.assert_clean();
    }
}

#[test]
fn a_copy_of_a_request_does_not_end_the_loan_of_an_earlier_transmission() {
    let mut pair = Pair::new();
    for tag in 0..5 {
        pair.call(ECHO, b"x", tag);
    }
    pair.run();
    pair.clock.pass(Nanos::from_millis(2));
    pair.client.stuck.set(true);
    // The acknowledgement vector for the server takes the space that a copy would need.
    pair.call(ECHO, b"y", 5);
    pair.step_client();
    let lent = take(&pair.client.out);
    assert!(lent[0].flags.has(Flags::ACK_VECTOR), "{lent:?}");
    while pair.client.out.borrow().is_empty() {
        pair.clock.pass(Nanos::from_millis(1));
        pair.step_client();
    }
    pair.run();
    assert_eq!(
        pair.done().len(),
        5,
        "the transport may still read the first transmission"
    );
    pair.client.stuck.set(false);
    pair.run();
    assert_eq!(pair.done()[5], (Tag(5), Ok(b"y".to_vec())));
    pair.assert_clean();
}

#[test]
fn a_response_buffer_is_not_rewritten_while_the_transport_reads_it() {
    let mut pair = Pair::with(Config::default(), options(1, 1));
    pair.server.stuck.set(true);
    for tag in 0..10 {
        pair.call(ECHO, LENT, tag);
        pair.run();
    }
    assert_eq!(pair.done().len(), 10);
    assert!(pair.server.rpc.pool_use().1 >= 10);
    pair.server.stuck.set(false);
    pair.assert_clean();
}

#[test]
fn rejections_carry_their_code() {
    let mut pair = Pair::new();
    pair.call(REJECT, b"", 1);
    pair.call(UNKNOWN, b"", 2);
    pair.run();
    assert_eq!(
        pair.done()[0].1,
        Err(RpcError::rejected(ErrorCode::application(42), true))
    );
    assert_eq!(
        pair.done()[1].1,
        Err(RpcError::rejected(ErrorCode::UNKNOWN_TYPE, true))
    );
    pair.assert_clean();
}

#[test]
fn timers_fire_in_order() {
    use dunlin_core::TimerToken;
    let mut pair = Pair::new();
    let mut cx = pair.client.rpc.cx();
    let now = cx.now();
    cx.timer(now + Nanos::from_millis(2), TimerToken(2));
    cx.timer(now + Nanos::from_millis(1), TimerToken(1));
    pair.pass(Nanos::from_millis(1));
    assert_eq!(pair.client.rpc.app().timers, [TimerToken(1)]);
    pair.pass(Nanos::from_millis(1));
    assert_eq!(pair.client.rpc.app().timers, [TimerToken(1), TimerToken(2)]);
}
