//! Handlers that take long in the dispatch thread: the answers that their clients get, and when the
//! server sees other clients' packets meanwhile (rule S4).

use std::cell::RefCell;
use std::rc::Rc;

use dunlin_core::{Nanos, RpcError, Tag};
use dunlin_testkit::pair::*;
use dunlin_wire::{ErrorCode, PacketType, Ran, ReqType};

/// The handler takes [`LONG`].
const SLOW: ReqType = ReqType(50);
/// The batch handler takes [`LONG`], for all requests of a burst together.
const SLOW_BATCH: ReqType = ReqType(51);
const LONG: Nanos = Nanos::from_millis(10);

type Meanwhile = Option<Box<dyn FnOnce()>>;

thread_local! {
    /// A function that runs in the middle of a handler, to cause events elsewhere.
    static MEANWHILE: RefCell<Meanwhile> = const { RefCell::new(None) };
}

fn take_long(app: &App) {
    app.clock.pass(LONG);
    if let Some(meanwhile) = MEANWHILE.take() {
        meanwhile();
    }
}

/// A pair whose server has learned that both types are slow.
fn pair() -> Pair {
    let mut pair = Pair::new();
    pair.server.rpc.on(SLOW, |app, req, cx| {
        app.ran.push(req.data().to_vec());
        take_long(app);
        req.reply_bytes(cx, b"s");
    });
    pair.server.rpc.on_batch(SLOW_BATCH, |app, mut batch, _| {
        app.batches.push(batch.len());
        take_long(app);
        for item in batch.iter_mut() {
            item.reply(1, |out| out.copy_from_slice(b"b")).unwrap();
        }
    });
    for (tag, kind) in [(100, SLOW), (101, SLOW_BATCH)] {
        pair.call(kind, b"first", tag);
        pair.run();
    }
    assert_eq!(pair.done().len(), 2);
    pair
}

/// Passes the client's packets to the server.
fn send(pair: &mut Pair) {
    pair.client.rpc.run_once();
    deliver(&pair.client.out, &pair.server.inbox);
}

/// Runs the server once; returns the kinds of the packets that it has sent, with their slots.
fn serve(pair: &mut Pair) -> Vec<(PacketType, u32)> {
    pair.server.rpc.run_once();
    let sent = take(&pair.server.out);
    sent.iter().map(|h| (h.kind, h.req.0 % 8)).collect()
}

use PacketType::{Cr, Resp};

#[test]
fn a_slow_batch_handler_is_announced() {
    let mut pair = pair();
    // Slots 0 and 1 are free again; the quick request gets slot 2.
    pair.call(SLOW_BATCH, b"a", 0);
    pair.call(SLOW_BATCH, b"b", 1);
    pair.call(ECHO, b"quick", 2);
    send(&mut pair);
    let begin = pair.clock.read();
    let sent = serve(&mut pair);
    assert_eq!(pair.clock.read().since(begin), LONG);
    assert_eq!(sent, [(Cr, 0), (Cr, 1), (Resp, 2), (Resp, 0), (Resp, 1)]);
    assert_eq!(pair.server.rpc.app().batches, [1, 2]);
}

#[test]
fn a_batch_handler_that_has_become_fast_is_announced_no_longer() {
    let mut pair = pair();
    pair.server.rpc.on_batch(SLOW_BATCH, |app, mut batch, _| {
        if app.clock.read() < Nanos::from_millis(100) {
            take_long(app);
        }
        for item in batch.iter_mut() {
            item.reply(0, |_| {}).unwrap();
        }
    });
    let mut announced = Vec::new();
    for _ in 0..12 {
        pair.call(SLOW_BATCH, b"a", 0);
        send(&mut pair);
        announced.push(serve(&mut pair).len() == 2);
        pair.clock.pass(LONG);
        pair.run();
    }
    assert!(!announced[0], "the first run comes before any announcement");
    assert!(announced[1], "{announced:?}");
    assert!(!announced[11], "{announced:?}");
}

#[test]
fn a_request_after_a_slow_one_waits_for_one_handler() {
    let mut pair = pair();
    for tag in 0..3 {
        pair.call(SLOW, b"slow", tag);
    }
    send(&mut pair);
    // These requests reach the server while the first of the three runs.
    pair.call(ECHO, b"quick", 3);
    pair.call(SLOW, b"slow", 4);
    pair.client.rpc.run_once();
    let later: Vec<_> = pair.client.out.borrow_mut().drain(..).collect();
    let inbox = Rc::clone(&pair.server.inbox);
    MEANWHILE.set(Some(Box::new(move || inbox.borrow_mut().extend(later))));
    assert_eq!(
        serve(&mut pair),
        [(Cr, 0), (Cr, 1), (Cr, 2), (Resp, 0)],
        "only one slow handler runs"
    );
    assert_eq!(
        serve(&mut pair),
        [(Resp, 3), (Cr, 4), (Resp, 1)],
        "packets are read before the next slow handler runs"
    );
    assert_eq!(serve(&mut pair), [(Resp, 2)]);
    assert_eq!(
        pair.server.rpc.next_wakeup(),
        Nanos::ZERO,
        "one request waits"
    );
    assert_eq!(serve(&mut pair), [(Resp, 4)]);
    assert_eq!(serve(&mut pair), []);
}

#[test]
fn a_slow_request_that_is_cancelled_while_it_waits_does_not_run() {
    let mut pair = pair();
    pair.call(SLOW, b"runs", 0);
    let waits = pair.call(SLOW, b"waits", 1);
    send(&mut pair);
    serve(&mut pair);
    assert!(pair.client.rpc.cx().cancel(waits).is_ok());
    send(&mut pair);
    let ran = pair.ran();
    pair.run();
    assert_eq!(pair.ran(), ran);
    let (tag, result) = pair.done().last().unwrap();
    assert_eq!(
        (tag.0, result),
        (1, &Err(RpcError::Cancelled(Ran::Unknown)))
    );
    // The answer to the other request was lost above.
    pair.assert_clean();
    assert_eq!(pair.ran(), ran);
    assert_eq!(pair.done().len(), 4);
}

#[test]
fn a_session_may_end_while_its_slow_requests_wait() {
    let mut pair = pair();
    for tag in 0..3 {
        pair.call(SLOW, b"slow", tag);
    }
    send(&mut pair);
    serve(&mut pair);
    let back = pair.back;
    assert!(pair.server.rpc.disconnect(back).is_ok());
    let ran = pair.ran();
    pair.step_server();
    assert_eq!(pair.ran(), ran);
    assert_eq!(pair.server.rpc.pool_use().1, 0, "msgbufs are missing");
}

#[test]
fn a_slow_handler_is_found_in_an_iteration_of_one_ordinary_packet() {
    let mut pair = Pair::new();
    pair.server.rpc.on(SLOW, |app, req, cx| {
        take_long(app);
        req.reply_bytes(cx, b"s");
    });
    // Warm up: the first request asks for a round-trip sample, and the first request of a slot
    // finds no response buffer, so neither is an ordinary packet.
    for tag in 0..9 {
        pair.call(ECHO, b"quick", tag);
        pair.run();
    }
    let plain = pair.server.rpc.counters().rx_plain;
    pair.call(SLOW, b"first", 9);
    pair.run();
    assert_eq!(pair.server.rpc.counters().rx_plain, plain + 1);
    assert_eq!(pair.server.rpc.counters().credit_returns, 0);
    pair.call(SLOW, b"second", 10);
    send(&mut pair);
    let sent = serve(&mut pair);
    let kinds: Vec<_> = sent.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [Cr, Resp], "the slow request is announced");
}

#[test]
fn a_completion_that_takes_long_is_not_blamed_on_a_handler() {
    let mut pair = Pair::new();
    pair.client.rpc.on_completion(|app, done, cx| {
        app.done.push((done.tag, Ok(Vec::new())));
        cx.recycle([done.request, done.response]);
        if done.tag == Tag(9) {
            app.clock.pass(LONG);
            // These are more packets than a short burst may have.
            for tag in 10..15 {
                let [request, response] = [16; 2].map(|len| cx.buf(len).unwrap());
                cx.call(done.session, ECHO, request, response, Tag(tag))
                    .unwrap();
            }
        }
    });
    // The client runs a handler, and after that a completion that takes long.
    let session = pair.back;
    for round in 0..3 {
        let [request, response] = [16; 2].map(|len| pair.server.rpc.buf(len).unwrap());
        let call = pair
            .server
            .rpc
            .call(session, ECHO, request, response, Tag(round));
        call.unwrap();
        pair.run();
        pair.call(ECHO, b"slow", 9);
        pair.run();
        assert_eq!(pair.client.rpc.counters().credit_returns, 0, "{round}");
    }
    assert_eq!(pair.server.rpc.app().done.len(), 3);
    assert_eq!(pair.done().len(), 18);
    pair.assert_clean();
}

#[test]
fn an_endpoint_without_workers_refuses_only_requests_for_workers() {
    let mut pair = Pair::without_workers();
    pair.server.rpc.on(SLOW, |app, req, cx| {
        take_long(app);
        req.reply_bytes(cx, b"s");
    });
    for (tag, kind) in [(0, SLOW), (1, SLOW), (2, BACKGROUND), (3, SLOW)] {
        pair.call(kind, b"x", tag);
        pair.run();
    }
    let overloaded = RpcError::rejected(ErrorCode::OVERLOADED, true);
    for (tag, end) in pair.done() {
        match tag.0 {
            2 => assert_eq!(end, &Err(overloaded)),
            _ => assert_eq!(end.as_deref(), Ok(&b"s"[..])),
        }
    }
    assert_eq!(pair.done().len(), 4);
    pair.assert_clean();
}

#[test]
fn a_transport_that_takes_long_is_not_blamed_on_the_handler() {
    let mut pair = Pair::new();
    // Each packet costs as much as a system call: eight packets take longer than `ack_delay`.
    pair.server.cost_ns.set(10_000);
    for round in 0..3 {
        for tag in 0..8 {
            pair.call(ECHO, b"quick", round * 8 + tag);
        }
        pair.run();
        let announced = pair.server.rpc.counters().credit_returns;
        assert_eq!(announced, 0, "in round {round}");
    }
    assert_eq!(pair.done().len(), 24);
    pair.assert_clean();
}
