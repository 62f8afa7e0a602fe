//! Drain: requests that arrive are refused before their handlers run, while requests that handlers
//! already have continue (rule C14).

use dunlin_core::{Nanos, RpcError, Tag};
use dunlin_testkit::pair::*;
use dunlin_wire::{ErrorCode, Ran, ReqType};

const REFUSED: RpcError = RpcError::Rejected(ErrorCode::SHUTTING_DOWN, Ran::No);

/// The ends of all calls, by their tags.
fn ends(pair: &Pair) -> Vec<(u64, Result<Vec<u8>, RpcError>)> {
    let mut ends: Vec<_> = pair.done().to_vec();
    ends.sort_by_key(|(Tag(tag), _)| *tag);
    ends.into_iter().map(|(Tag(tag), end)| (tag, end)).collect()
}

/// Lets the client send, and the server take the packets in one iteration.
fn send(pair: &mut Pair) {
    pair.client.rpc.run_once();
    deliver(&pair.client.out, &pair.server.inbox);
    pair.server.rpc.run_once();
}

#[test]
fn requests_of_every_kind_are_refused_and_no_handler_runs() {
    let mut pair = Pair::new();
    pair.server.rpc.drain();
    for (tag, kind) in [ECHO, HOLD, PANIC, SILENT, BACKGROUND, BATCH]
        .into_iter()
        .enumerate()
    {
        pair.call(kind, b"late", tag as u64);
    }
    pair.run();
    pair.run_jobs();
    pair.run();
    assert!(ends(&pair).iter().all(|(_, end)| *end == Err(REFUSED)));
    assert_eq!(pair.done().len(), 6);
    assert_eq!((pair.ran(), pair.server.rpc.app().batches.len()), (0, 0));
    assert_eq!(pair.server.rpc.counters().turned_away, 6);
    // A request of a type without a handler gets the same error as without the drain.
    pair.call(UNKNOWN, b"", 9);
    pair.run();
    let unknown = RpcError::rejected(ErrorCode::UNKNOWN_TYPE, true);
    assert_eq!(ends(&pair)[6], (9, Err(unknown)));
    assert_eq!(pair.server.rpc.counters().turned_away, 6);
    pair.assert_clean();
}

#[test]
fn requests_that_handlers_have_are_answered() {
    let mut pair = Pair::new();
    pair.call(HOLD, b"held", 1);
    pair.call(BACKGROUND, b"worker", 2);
    pair.run();
    assert_eq!(pair.server.rpc.requests_under_way(), 2);
    pair.server.rpc.drain();
    pair.call(HOLD, b"late", 3);
    pair.run();
    assert_eq!(pair.server.rpc.requests_under_way(), 2);
    pair.run_jobs();
    pair.run();
    assert_eq!(pair.server.rpc.requests_under_way(), 1);
    let held = pair.server.rpc.app_mut().held.pop().unwrap();
    held.reply_bytes(&mut pair.server.rpc.cx(), b"answer");
    pair.run();
    assert_eq!(pair.server.rpc.requests_under_way(), 0);
    let expected = [
        (1, Ok(b"answer".to_vec())),
        (2, Ok(b"worker".to_vec())),
        (3, Err(REFUSED)),
    ];
    assert_eq!(ends(&pair), expected);
    pair.assert_clean();
}

#[test]
fn a_request_that_has_arrived_in_part_is_refused_when_the_rest_comes() {
    let mut pair = Pair::new();
    pair.call(ECHO, &[7; 100 * DATA_SIZE as usize], 1);
    send(&mut pair);
    assert!(
        pair.server.rpc.receiving() > 0,
        "the request has arrived in part"
    );
    pair.server.rpc.drain();
    pair.run();
    assert_eq!(ends(&pair), [(1, Err(REFUSED))]);
    assert_eq!(pair.ran(), 0);
    pair.assert_clean();
}

#[test]
fn a_request_that_waits_for_a_slow_handler_is_refused() {
    const SLOW: ReqType = ReqType(50);
    let mut pair = Pair::new();
    pair.server.rpc.on(SLOW, |app, req, cx| {
        app.ran.push(req.data().to_vec());
        app.clock.pass(Nanos::from_millis(10));
        req.reply_bytes(cx, b"slow");
    });
    // The server learns that the handler is slow; after that, one request runs in each iteration.
    pair.call(SLOW, b"first", 0);
    pair.run();
    for tag in 1..4 {
        pair.call(SLOW, b"next", tag);
    }
    send(&mut pair);
    let ran = pair.ran();
    assert!(ran < 4, "some requests wait");
    pair.server.rpc.drain();
    pair.run();
    assert_eq!(pair.ran(), ran);
    let refused = ends(&pair)
        .iter()
        .filter(|(_, end)| *end == Err(REFUSED))
        .count();
    assert_eq!(refused, 4 - ran);
    pair.assert_clean();
}

#[test]
fn a_second_handler_of_a_type_is_noticed() {
    let mut pair = Pair::new();
    assert_eq!(pair.server.rpc.registered_twice(), None);
    pair.server.rpc.on_batch(ECHO, |_, _, _| {});
    assert_eq!(pair.server.rpc.registered_twice(), Some(ECHO));
}
