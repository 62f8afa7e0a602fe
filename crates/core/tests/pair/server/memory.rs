//! The answers of a server without free memory, for each place where a request needs memory.

use dunlin_core::{Config, Nanos, RpcError, SessionOptions, Tag};
use dunlin_msgbuf::MsgBuf;
use dunlin_testkit::pair::*;
use dunlin_wire::{ErrorCode, ReqType};

const OVERLOADED: RpcError = RpcError::rejected(ErrorCode::OVERLOADED, true);
const NO_MEMORY: RpcError = RpcError::rejected(ErrorCode::NO_RESPONSE_MEMORY, true);

/// A pair of endpoints with little memory.
fn pair() -> Pair {
    let config = Config {
        pool_bytes: 4 << 20,
        ..Config::default()
    };
    Pair::with(config, SessionOptions::default())
}

/// Takes all memory of the server; the last piece is a small one.
fn use_up(pair: &mut Pair) -> Vec<MsgBuf> {
    let mut taken = Vec::new();
    for len in [1 << 20, 1 << 16, 1 << 12, 512, 1] {
        if len < 1 << 12 {
            // The loop cuts this piece into smaller ones.
            taken.pop();
        }
        while let Ok(buf) = pair.server.rpc.buf(len) {
            taken.push(buf);
        }
    }
    taken
}

/// Gives the memory back, and checks that the next request of this type is answered.
fn recovers(pair: &mut Pair, taken: Vec<MsgBuf>, req_type: ReqType) {
    drop(taken);
    pair.call(req_type, b"after", 99);
    pair.run();
    pair.run_jobs();
    pair.run();
    assert_eq!(pair.done().last(), Some(&(Tag(99), Ok(b"after".to_vec()))));
    pair.assert_clean();
}

#[test]
fn a_request_without_room_for_its_answer_fails_as_overload_unless_its_handler_ran() {
    // A batch and a job have room for their answers before they run.
    let ends = [
        (ECHO, NO_MEMORY, 1),
        (BATCH, OVERLOADED, 0),
        (BACKGROUND, OVERLOADED, 0),
    ];
    for (req_type, error, runs) in ends {
        let mut pair = pair();
        let taken = use_up(&mut pair);
        pair.call(req_type, b"x", 1);
        pair.run();
        assert_eq!(pair.done(), [(Tag(1), Err(error))], "{req_type:?}");
        assert_eq!(pair.ran(), runs, "{req_type:?}");
        recovers(&mut pair, taken, req_type);
    }
}

/// The first request of the burst asks for a sample, so it waits for the handler before the others
/// are looked at; the last one finds no memory for its answer.
#[test]
fn a_batch_handler_gets_the_bytes_of_its_own_requests_if_one_has_no_room() {
    let mut pair = pair();
    // The first two slots keep the buffers of these answers.
    for tag in [1, 2] {
        pair.call(BATCH, b"early", tag);
    }
    pair.run();
    let taken = use_up(&mut pair);
    pair.clock.pass(Nanos::from_millis(1));
    for (tag, data) in [(3, b"three"), (4, b"four."), (5, b"five.")] {
        pair.call(BATCH, data, tag);
    }
    pair.run();
    let mut done = pair.done()[2..].to_vec();
    done.sort_by_key(|(tag, _)| *tag);
    let expected = [
        (Tag(3), Ok(b"three".to_vec())),
        (Tag(4), Ok(b"four.".to_vec())),
        (Tag(5), Err(OVERLOADED)),
    ];
    assert_eq!(done, expected);
    recovers(&mut pair, taken, BATCH);
}

#[test]
fn a_job_without_room_for_its_answer_gives_its_request_back() {
    let mut pair = pair();
    let mut taken = use_up(&mut pair);
    // Leaves room for the request alone.
    taken.pop();
    let free = pair.server.rpc.pool_use();
    pair.call(BACKGROUND, b"x", 1);
    pair.run();
    assert_eq!(pair.done(), [(Tag(1), Err(OVERLOADED))]);
    assert_eq!(
        pair.server.rpc.pool_use(),
        free,
        "the copy went back to the pool"
    );
    recovers(&mut pair, taken, BACKGROUND);
}

#[test]
fn a_large_request_without_room_fails_as_overload() {
    let mut pair = pair();
    let taken = use_up(&mut pair);
    call_large(&mut pair, ECHO);
    pair.run();
    assert_eq!(pair.done(), [(Tag(1), Err(OVERLOADED))]);
    assert_eq!(pair.server.rpc.receiving(), 0);
    recovers(&mut pair, taken, ECHO);
}

#[test]
fn a_large_request_without_room_for_its_answer_fails_as_overload() {
    for req_type in [BATCH, BACKGROUND] {
        let mut pair = pair();
        call_large(&mut pair, req_type);
        // The first packet takes the memory that the request needs.
        pair.client.rpc.run_once();
        let mut frames: Vec<_> = pair.client.out.borrow_mut().drain(..).collect();
        let rest = frames.split_off(1);
        pair.server.inbox.borrow_mut().extend(frames);
        pair.step_server();
        assert_ne!(pair.server.rpc.receiving(), 0);
        let taken = use_up(&mut pair);
        pair.server.inbox.borrow_mut().extend(rest);
        pair.run();
        assert_eq!(pair.done(), [(Tag(1), Err(OVERLOADED))], "{req_type:?}");
        recovers(&mut pair, taken, req_type);
    }
}

#[test]
fn a_slow_request_without_room_to_wait_fails_as_overload() {
    let mut pair = pair();
    let slow = ReqType(60);
    pair.server.rpc.on(slow, |app, req, cx| {
        app.clock.pass(Nanos::from_millis(1));
        req.reply_bytes(cx, b"after");
    });
    pair.call(slow, b"x", 1);
    pair.run();
    let taken = use_up(&mut pair);
    pair.call(slow, b"x", 2);
    pair.run();
    assert_eq!(pair.done()[1], (Tag(2), Err(OVERLOADED)));
    recovers(&mut pair, taken, slow);
}

#[test]
fn a_response_buffer_that_is_too_small_is_replaced() {
    let options = SessionOptions::DEFAULT.with_window(1);
    let mut pair = Pair::with(Config::default(), options);
    for (tag, req_type) in [(1, ECHO), (2, BATCH), (3, ECHO)] {
        pair.call(req_type, b"x", tag);
        pair.run();
    }
    assert!(pair.done().iter().all(|done| done.1 == Ok(b"x".to_vec())));
    assert_eq!(pair.done().len(), 3);
    pair.assert_clean();
}

/// Issues a request of several packets.
fn call_large(pair: &mut Pair, req_type: ReqType) {
    let rpc = &mut pair.client.rpc;
    let mut request = rpc.buf(3 * DATA_SIZE as usize).unwrap();
    request.data_mut().fill(1);
    let response = rpc.buf(16).unwrap();
    rpc.call(pair.session, req_type, request, response, Tag(1))
        .unwrap();
}
