//! Handles of another endpoint: every operation refuses them, nothing is sent, and nothing is lost.
//! The two endpoints of a pair differ only in their numbers, so their first sessions, calls and
//! requests have the same places in their tables.

use std::cell::RefCell;

use dunlin_core::{
    Batch, BytesPerSec, CallErrorKind, CallId, CongestionControl, Cx, HandleError, Nanos, Request,
    RpcError, Sample, Scheme, Session, SessionOptions, Tag,
};
use dunlin_testkit::pair::*;
use dunlin_wire::{ErrorCode, ReqType};

const WRONG: HandleError = HandleError::WrongEndpoint;

/// A scheme that lets hardly any packet leave.
#[derive(Debug)]
struct Slow;

impl CongestionControl for Slow {
    fn on_answer(&mut self, _: Sample) {}

    fn on_timeout(&mut self, _: Nanos) {}

    fn rate(&self) -> Option<BytesPerSec> {
        Some(BytesPerSec(1))
    }
}

/// How many packets an endpoint has sent, and how many sessions, calls and msgbufs it has.
fn standing(rpc: &mut TestRpc) -> (u64, usize, usize, (usize, usize)) {
    let sent = rpc.counters().tx_packets;
    (sent, rpc.session_count(), rpc.call_count(), rpc.pool_use())
}

/// The server holds a request of the client, and the client holds one of the server.
fn busy_pair() -> (Pair, [CallId; 2]) {
    let mut pair = Pair::new();
    let ours = pair.call(HOLD, b"ours", 1);
    let bufs = [4, 1024].map(|len| pair.server.rpc.buf(len).unwrap());
    let [request, response] = bufs;
    let rpc = &mut pair.server.rpc;
    let theirs = rpc
        .call(pair.back, HOLD, request, response, Tag(2))
        .unwrap();
    pair.run();
    assert_eq!(pair.client.rpc.app().held.len(), 1);
    assert_eq!(pair.server.rpc.app().held.len(), 1);
    (pair, [ours, theirs])
}

/// Answers both requests; the calls must end well.
fn finish(mut pair: Pair) {
    for host in [&mut pair.client, &mut pair.server] {
        let held = host.rpc.app_mut().held.pop().unwrap();
        held.reply_bytes(&mut host.rpc.cx(), b"late");
    }
    pair.run();
    assert_eq!(pair.done(), [(Tag(1), Ok(b"late".to_vec()))]);
    let done = &pair.server.rpc.app().done;
    assert_eq!(*done, [(Tag(2), Ok(b"late".to_vec()))]);
    pair.assert_clean();
}

#[test]
fn a_call_on_a_session_of_another_endpoint_is_refused_with_its_msgbufs() {
    let (mut pair, _) = busy_pair();
    let foreign = pair.session;
    assert_ne!(foreign, pair.back);
    for len in [0, 5, 5000] {
        let rpc = &mut pair.server.rpc;
        let (request, response) = (rpc.buf(len).unwrap(), rpc.buf(7).unwrap());
        let before = standing(rpc);
        let refused = rpc.call(foreign, ECHO, request, response, Tag(9));
        let refused = refused.unwrap_err();
        assert_eq!(refused.kind, CallErrorKind::WrongEndpoint);
        assert!(
            refused.to_string().contains("another endpoint"),
            "{refused}"
        );
        assert_eq!((refused.request.len(), refused.response.len()), (len, 7));
        assert_eq!(standing(rpc), before);
    }
    pair.run();
    let ran = &pair.client.rpc.app().ran;
    assert_eq!(ran.len(), 1, "only the held request ran");
    finish(pair);
}

#[test]
fn no_other_operation_takes_a_session_of_another_endpoint() {
    let (mut pair, _) = busy_pair();
    let foreign = pair.session;
    let rpc = &mut pair.server.rpc;
    let before = standing(rpc);
    let scheme = rpc.session_info(pair.back).unwrap().scheme;
    assert_eq!(rpc.session_info(foreign).err(), Some(WRONG));
    assert_eq!(rpc.cx().session_info(foreign).err(), Some(WRONG));
    assert_eq!(rpc.set_scheme(foreign, Scheme::Dcqcn), Err(WRONG));
    assert_eq!(rpc.set_own_scheme(foreign, Box::new(Slow)), Err(WRONG));
    assert_eq!(rpc.disconnect(foreign), Err(WRONG));
    assert_eq!(rpc.cx().disconnect(foreign), Err(WRONG));
    assert!(rpc.lifecycle().offer_of(foreign).is_none());
    assert!(rpc.lifecycle().rename(foreign).is_none());
    assert_eq!(standing(rpc), before);
    assert_eq!(rpc.session_info(pair.back).unwrap().scheme, scheme);
    finish(pair);
}

#[test]
fn a_call_of_another_endpoint_is_not_cancelled() {
    let (mut pair, [ours, theirs]) = busy_pair();
    assert_ne!(ours, theirs);
    let rpc = &mut pair.server.rpc;
    assert_eq!(rpc.cx().cancel(ours), Err(WRONG));
    // The same holds for a call that has ended.
    finish(pair);
    let mut pair = Pair::new();
    let ended = pair.call(ECHO, b"x", 1);
    pair.run();
    assert_eq!(pair.client.rpc.cx().cancel(ended), Err(HandleError::Ended));
    assert_eq!(pair.server.rpc.cx().cancel(ended), Err(WRONG));
}

#[test]
fn stale_handles_and_handles_of_another_endpoint_have_different_errors() {
    let mut pair = Pair::new();
    let (session, call) = (pair.session, pair.call(HOLD, b"x", 1));
    assert_eq!(pair.client.rpc.disconnect(session), Ok(()));
    let ended = HandleError::Ended;
    assert_eq!(pair.client.rpc.disconnect(session), Err(ended));
    assert_eq!(pair.client.rpc.cx().cancel(call), Err(ended));
    assert_eq!(pair.client.rpc.session_info(session).err(), Some(ended));
    assert_eq!(pair.server.rpc.session_info(session).err(), Some(WRONG));
    let none = Session::NONE;
    assert_eq!(pair.client.rpc.session_info(none).err(), Some(ended));
}

/// Requests of this type are kept without a guard; their tickets go to [`KEPT`].
const KEEP: ReqType = ReqType(60);

thread_local! {
    static KEPT: RefCell<Vec<dunlin_core::Ticket>> = const { RefCell::new(Vec::new()) };
    static OTHER: RefCell<Option<Pair>> = const { RefCell::new(None) };
}

fn keep(_: &mut App, req: Request<'_>, cx: &mut Cx<'_>) {
    let ticket = req.keep(cx);
    KEPT.with_borrow_mut(|kept| kept.push(ticket));
}

#[test]
fn a_ticket_of_another_endpoint_answers_no_request() {
    let mut pair = Pair::new();
    pair.client.rpc.on(KEEP, keep);
    pair.server.rpc.on(KEEP, keep);
    pair.call(KEEP, b"ours", 1);
    pair.run();
    let [request, response] = [4, 64].map(|len| pair.server.rpc.buf(len).unwrap());
    let rpc = &mut pair.server.rpc;
    rpc.call(pair.back, KEEP, request, response, Tag(2))
        .unwrap();
    pair.run();
    let kept = KEPT.take();
    let [at_server, at_client] = kept[..] else {
        panic!("{kept:?}")
    };
    assert_eq!(at_server.index(), at_client.index());
    let before = standing(&mut pair.client.rpc);
    let mut cx = pair.client.rpc.cx();
    let write = |_: &mut [u8]| panic!("a refused reply is written");
    assert_eq!(cx.reply(at_server, 1, write), Err(WRONG));
    assert_eq!(cx.reject(at_server, ErrorCode::application(1)), Err(WRONG));
    assert_eq!(cx.abandon(at_server), Err(WRONG));
    assert_eq!(cx.is_cancelled(at_server), Err(WRONG));
    assert_eq!(standing(&mut pair.client.rpc), before);
    for (host, ticket) in [(&mut pair.client, at_client), (&mut pair.server, at_server)] {
        let mut cx = host.rpc.cx();
        assert_eq!(cx.is_cancelled(ticket), Ok(false));
        assert_eq!(cx.reply(ticket, 1, |out| out[0] = b'k'), Ok(()));
        assert_eq!(cx.reply(ticket, 1, write), Err(HandleError::Ended));
        assert_eq!(cx.is_cancelled(ticket), Ok(true));
    }
    pair.run();
    assert_eq!(pair.done(), [(Tag(1), Ok(b"k".to_vec()))]);
    pair.assert_clean();
}

/// Answers a request by its ticket, unless the request is empty; then keeps the request if it is
/// still unanswered.
fn keep_unanswered(_: &mut App, req: Request<'_>, cx: &mut Cx<'_>) {
    let ticket = req.ticket(cx);
    if !req.data().is_empty() {
        assert_eq!(cx.reply(ticket, 1, |out| out[0] = b'k'), Ok(()));
    }
    let kept = req.keep_unanswered(cx);
    KEPT.with_borrow_mut(|all| all.extend(kept));
}

/// Tries to answer by the first ticket, then answers with the number of requests so far.
fn answer_by_old_ticket(_: &mut App, req: Request<'_>, cx: &mut Cx<'_>) {
    let mut kept = KEPT.take();
    if let Some(first) = kept.first() {
        let _ = cx.reply(*first, 1, |out| out[0] = b'!');
    }
    kept.push(req.ticket(cx));
    let count = u8::try_from(kept.len()).unwrap();
    let _ = cx.reply(kept[kept.len() - 1], 1, |out| out[0] = b'0' + count);
    KEPT.set(kept);
}

#[test]
fn a_ticket_does_not_answer_a_later_request_of_its_slot() {
    let mut pair = Pair::new();
    pair.server.rpc.on(KEEP, answer_by_old_ticket);
    for tag in 1..=3 {
        pair.call(KEEP, b"x", tag);
        pair.run();
    }
    let kept = KEPT.take();
    assert!(kept.iter().all(|ticket| ticket.index() == kept[0].index()));
    let answers = [(1, b"1"), (2, b"2"), (3, b"3")];
    let answers = answers.map(|(tag, answer)| (Tag(tag), Ok(answer.to_vec())));
    assert_eq!(pair.done(), answers);
    pair.assert_clean();
}

#[test]
fn a_request_that_was_answered_by_its_ticket_is_not_kept() {
    let mut pair = Pair::new();
    pair.server.rpc.on(KEEP, keep_unanswered);
    pair.call(KEEP, b"x", 1);
    pair.call(KEEP, b"", 2);
    pair.run();
    assert_eq!(pair.done(), [(Tag(1), Ok(b"k".to_vec()))]);
    let kept = KEPT.take();
    assert_eq!(kept.len(), 1);
    let mut cx = pair.server.rpc.cx();
    assert_eq!(cx.reply(kept[0], 0, |_| {}), Ok(()));
    pair.run();
    assert_eq!(pair.done()[1..], [(Tag(2), Ok(Vec::new()))]);
    pair.assert_clean();
}

/// Uses the request with the context of the server in [`OTHER`]. The request's data names the
/// operation.
fn astray(_: &mut App, req: Request<'_>, _: &mut Cx<'_>) {
    OTHER.with_borrow_mut(|other| {
        let cx = &mut other.as_mut().unwrap().server.rpc.cx();
        match req.data() {
            b"reply" => req.reply(cx, 1, |_| panic!("no request is here")),
            b"reject" => req.reject(cx, ErrorCode::application(7)),
            b"keep" => {
                let ticket = req.keep(cx);
                assert_eq!(
                    cx.reject(ticket, ErrorCode::OVERLOADED),
                    Err(HandleError::Ended)
                );
            }
            b"keep if unanswered" => assert_eq!(req.keep_unanswered(cx), None),
            b"ticket" => {
                let ticket = req.ticket(cx);
                assert_eq!(cx.abandon(ticket), Err(HandleError::Ended));
            }
            _ => {
                let deferred = req.defer(cx);
                assert!(deferred.is_cancelled(cx));
                deferred.reply_bytes(cx, b"astray");
            }
        }
    });
}

/// Does the same with a request of a batch.
fn astray_batch(_: &mut App, mut batch: Batch<'_>, _: &mut Cx<'_>) {
    OTHER.with_borrow_mut(|other| {
        let cx = &mut other.as_mut().unwrap().server.rpc.cx();
        for (item, number) in batch.iter_mut().zip(0..) {
            match number % 2 {
                0 => item.defer(cx).reply_bytes(cx, b"astray"),
                _ => item.reply_now(cx, 6, |out| out.copy_from_slice(b"astray")),
            }
        }
    });
}

/// Makes the client of another pair handle as many requests as the server of `pair` has, and answer
/// all of them with the context of that server.
fn send_astray(pair: Pair) -> Pair {
    OTHER.set(Some(pair));
    let ways = [
        "reply",
        "reject",
        "keep",
        "keep if unanswered",
        "ticket",
        "defer",
        "batch",
    ];
    for how in ways {
        let mut outer = Pair::new();
        match how {
            "batch" => outer.client.rpc.on_batch(KEEP, astray_batch),
            _ => outer.client.rpc.on(KEEP, astray),
        }
        for tag in 0..4 {
            let rpc = &mut outer.server.rpc;
            let (mut request, response) = (rpc.buf(how.len()).unwrap(), rpc.buf(64).unwrap());
            request.data_mut().copy_from_slice(how.as_bytes());
            rpc.call(outer.back, KEEP, request, response, Tag(tag))
                .unwrap();
        }
        outer.run();
        let done = &outer.server.rpc.app().done;
        let failed = Err(RpcError::rejected(ErrorCode::HANDLER_FAILED, true));
        assert_eq!(done.len(), 4, "{how}");
        assert!(
            done.iter().all(|(_, end)| *end == failed),
            "{how}: {done:?}"
        );
        outer.assert_clean();
    }
    OTHER.take().unwrap()
}

#[test]
fn a_request_is_not_answered_at_another_endpoint() {
    let mut pair = Pair::new();
    for tag in 0..4 {
        pair.call(HOLD, b"held", tag);
    }
    pair.run();
    let before = standing(&mut pair.server.rpc);
    let mut pair = send_astray(pair);
    assert_eq!(standing(&mut pair.server.rpc), before);
    let (app, mut cx) = pair.server.rpc.with();
    for held in app.held.drain(..) {
        assert!(!held.is_cancelled(&cx));
        held.reply_bytes(&mut cx, b"late");
    }
    pair.run();
    assert!(
        pair.done()
            .iter()
            .all(|(_, end)| *end == Ok(b"late".to_vec()))
    );
    pair.assert_clean();
}

/// Requests of slow handlers stay dispatched between iterations.
#[test]
fn a_request_that_waits_for_its_slow_handler_is_not_answered_by_another_endpoint() {
    let mut pair = Pair::new();
    pair.server.rpc.on(KEEP, |app, req, cx| {
        app.clock.pass(Nanos::from_millis(10));
        req.reply_bytes(cx, b"slow");
    });
    pair.call(KEEP, b"learn", 100);
    pair.run();
    for tag in 0..4 {
        pair.call(KEEP, b"wait", tag);
    }
    pair.client.rpc.run_once();
    deliver(&pair.client.out, &pair.server.inbox);
    pair.server.rpc.run_once();
    let mut pair = send_astray(pair);
    pair.run();
    assert_eq!(pair.done().len(), 5);
    assert!(
        pair.done()
            .iter()
            .all(|(_, end)| *end == Ok(b"slow".to_vec()))
    );
    pair.assert_clean();
}

#[test]
fn any_session_may_be_prefetched() {
    let (mut pair, other) = (Pair::new(), Pair::new());
    let gone = pair.client.open(&SessionOptions::default());
    pair.client.rpc.disconnect(gone).unwrap();
    let sessions = [pair.session, pair.back, other.session, gone];
    let (_, cx) = pair.client.rpc.with();
    sessions.iter().for_each(|session| cx.prefetch(*session));
    pair.call(ECHO, b"x", 1);
    pair.run();
    assert_eq!(pair.done(), [(Tag(1), Ok(b"x".to_vec()))]);
    pair.assert_clean();
}
