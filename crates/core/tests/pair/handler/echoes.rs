//! Requests that their handlers return with [`Request::echo`](dunlin_core::Request): a request in a
//! msgbuf of its own becomes the answer; any other is copied.

use std::cell::RefCell;

use dunlin_core::{Config, Cx, Nanos, RpcError, SessionOptions, Tag};
use dunlin_msgbuf::MsgBuf;
use dunlin_testkit::pair::*;
use dunlin_wire::{ErrorCode, ReqType};

use crate::transfer::large::{call, finish, pattern};

/// The handler returns the request.
const RETURN: ReqType = ReqType(60);
/// The handler uses up the server's memory, then returns the request.
const RETURN_WITHOUT_MEMORY: ReqType = ReqType(61);
/// The handler uses up the server's memory, then answers with a copy of the data.
const COPY_WITHOUT_MEMORY: ReqType = ReqType(62);
/// The handler returns the request, then panics.
const RETURN_AND_PANIC: ReqType = ReqType(63);
/// The handler answers by the request's ticket, then returns the request.
const ANSWER_AND_RETURN: ReqType = ReqType(64);
/// The handler takes [`LONG`], then returns the request.
const RETURN_SLOWLY: ReqType = ReqType(65);

const LONG: Nanos = Nanos::from_millis(10);

const LARGE: usize = 100_000;

thread_local! {
    /// The memory that handlers have taken from the server.
    static TAKEN: RefCell<Vec<MsgBuf>> = const { RefCell::new(Vec::new()) };
}

fn use_up(cx: &mut Cx<'_>) {
    for len in [1 << 20, 1 << 16, 1 << 12, 512, 1] {
        while let Ok(buf) = cx.buf(len) {
            TAKEN.with_borrow_mut(|taken| taken.push(buf));
        }
    }
}

fn pair() -> Pair {
    let config = Config {
        pool_bytes: 4 << 20,
        ..Config::default()
    };
    let mut pair = Pair::with(config, SessionOptions::default());
    let server = &mut pair.server.rpc;
    server.on(RETURN, |_, req, cx| req.echo(cx));
    server.on(RETURN_WITHOUT_MEMORY, |_, req, cx| {
        use_up(cx);
        req.echo(cx);
    });
    server.on(COPY_WITHOUT_MEMORY, |_, req, cx| {
        use_up(cx);
        let data = req.data();
        req.reply_bytes(cx, data);
    });
    server.on(RETURN_AND_PANIC, |_, req, cx| {
        req.echo(cx);
        panic!("a handler that panics after its answer");
    });
    server.on(ANSWER_AND_RETURN, |_, req, cx| {
        let ticket = req.ticket(cx);
        cx.reply(ticket, 5, |out| out.copy_from_slice(b"first"))
            .expect("the request is unanswered");
        req.echo(cx);
    });
    server.on(RETURN_SLOWLY, |app, req, cx| {
        app.clock.pass(LONG);
        req.echo(cx);
    });
    pair
}

/// The result of a call of this type with these bytes.
fn answer(pair: &mut Pair, req_type: ReqType, data: &[u8]) -> Result<Vec<u8>, RpcError> {
    call(pair, req_type, data, 1);
    finish(pair);
    TAKEN.take();
    let (tag, result) = pair.done().last().expect("the call has ended").clone();
    assert_eq!(tag, Tag(1));
    pair.client.rpc.app_mut().done.clear();
    result
}

#[test]
fn requests_of_all_lengths_come_back() {
    let mut pair = pair();
    let packet = DATA_SIZE as usize;
    for len in [0, 1, packet, packet + 1, LARGE, 7, LARGE + 1] {
        let data = pattern(len);
        assert_eq!(answer(&mut pair, RETURN, &data), Ok(data), "{len} bytes");
    }
    pair.assert_clean();
}

#[test]
fn a_large_request_comes_back_in_its_own_memory() {
    let mut pair = pair();
    let data = pattern(LARGE);
    let error = RpcError::rejected(ErrorCode::NO_RESPONSE_MEMORY, true);
    assert_eq!(answer(&mut pair, COPY_WITHOUT_MEMORY, &data), Err(error));
    assert_eq!(answer(&mut pair, RETURN_WITHOUT_MEMORY, &data), Ok(data));
    pair.assert_clean();
}

#[test]
fn a_panic_after_the_echo_is_counted_and_the_answer_stays() {
    let mut pair = pair();
    for len in [9, LARGE] {
        let data = pattern(len);
        assert_eq!(answer(&mut pair, RETURN_AND_PANIC, &data), Ok(data));
    }
    assert_eq!(pair.server.rpc.counters().handler_panics, 2);
    pair.assert_clean();
}

#[test]
fn an_earlier_answer_stays() {
    let mut pair = pair();
    for len in [9, LARGE] {
        let result = answer(&mut pair, ANSWER_AND_RETURN, &pattern(len));
        assert_eq!(result, Ok(b"first".to_vec()), "{len} bytes");
    }
    pair.assert_clean();
}

#[test]
fn a_slow_handler_echoes_the_requests_that_waited_for_it() {
    let mut pair = pair();
    // After the first one, the server treats the type as slow, and keeps a request until it runs.
    for len in [9, 9, LARGE] {
        let data = pattern(len);
        assert_eq!(
            answer(&mut pair, RETURN_SLOWLY, &data),
            Ok(data),
            "{len} bytes"
        );
    }
    pair.assert_clean();
}

#[test]
fn a_returned_request_leaves_no_msgbuf_to_the_next_one() {
    let mut pair = pair();
    // If a response also went back to the pool, later requests would overwrite it.
    for round in 0..50 {
        let data: Vec<u8> = pattern(LARGE).iter().map(|byte| byte ^ round).collect();
        for tag in 0..4 {
            call(&mut pair, RETURN, &data, tag);
        }
        while pair.done().len() < 4 {
            finish(&mut pair);
        }
        for (_, result) in pair.done() {
            assert_eq!(result.as_deref(), Ok(&*data));
        }
        pair.client.rpc.app_mut().done.clear();
    }
    pair.assert_clean();
}
