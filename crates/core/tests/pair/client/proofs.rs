//! The end of a call states whether its request was transmitted, and whether its handler ran (rule
//! W13).

use dunlin_core::{
    CloseReason, Config, Nanos, Refuse, RpcError, SessionOffer, SessionOptions, Tag,
};
use dunlin_testkit::pair::*;
use dunlin_testkit::wire::Wire;
use dunlin_wire::{ErrorCode, Ran, ReqType};

/// A pair whose session has one slot, which a held request takes.
fn busy() -> Pair {
    let mut pair = Pair::with(Config::default(), options(1, 1));
    pair.call(HOLD, b"first", 1);
    pair.run();
    pair
}

#[test]
fn a_call_that_waits_for_a_slot_is_never_transmitted() {
    for reason in [CloseReason::Disconnected, CloseReason::PeerFailed] {
        let mut pair = busy();
        pair.call(ECHO, b"second", 2);
        pair.run();
        let session = pair.session;
        pair.client.rpc.lifecycle().close(session, reason);
        pair.client.rpc.run_once();
        let ends: Vec<_> = pair
            .done()
            .iter()
            .map(|(tag, end)| (tag.0, end.clone().unwrap_err()))
            .map(|(tag, error)| (tag, error.transmitted(), error.ran()))
            .collect();
        assert_eq!(ends, [(1, true, Ran::Unknown), (2, false, Ran::No)]);
    }
}

#[test]
fn a_deadline_and_a_cancellation_know_whether_the_call_had_a_slot() {
    let mut pair = busy();
    let second = pair.call(ECHO, b"second", 2);
    pair.call_for(ECHO, b"third", 3, Some(Nanos::from_millis(1)));
    assert!(pair.client.rpc.cx().cancel(second).is_ok());
    pair.pass(Nanos::from_millis(3));
    let waited = [
        (Tag(2), Err(RpcError::Cancelled(Ran::No))),
        (Tag(3), Err(RpcError::DeadlinePassed(Ran::No))),
    ];
    assert_eq!(pair.done(), waited);
    let mut pair = Pair::new();
    let first = pair.call(HOLD, b"first", 1);
    pair.call_for(HOLD, b"second", 2, Some(Nanos::from_millis(1)));
    pair.run();
    assert!(pair.client.rpc.cx().cancel(first).is_ok());
    pair.pass(Nanos::from_millis(3));
    let sent = [
        (Tag(1), Err(RpcError::Cancelled(Ran::Unknown))),
        (Tag(2), Err(RpcError::DeadlinePassed(Ran::Unknown))),
    ];
    assert_eq!(pair.done(), sent);
    assert_eq!(pair.ran(), 2);
}

#[test]
fn a_call_that_was_given_up_is_unanswered_until_the_server_has_answered() {
    for is_cancelled in [true, false] {
        let mut pair = Pair::new();
        let deadline = (!is_cancelled).then_some(Nanos::from_millis(1));
        let call = pair.call_for(HOLD, b"slow", 1, deadline);
        pair.run();
        assert!(
            !pair.client.rpc.cx().is_unanswered(call),
            "the user still waits for the call"
        );
        if is_cancelled {
            pair.client.rpc.cx().cancel(call).unwrap();
        }
        pair.pass(Nanos::from_millis(3));
        assert_eq!(pair.done().len(), 1);
        assert!(pair.client.rpc.cx().is_unanswered(call));
        let held = pair.server.rpc.app_mut().held.pop().unwrap();
        held.reply_bytes(&mut pair.server.rpc.cx(), b"too late");
        pair.pass(Nanos::from_millis(30));
        assert!(!pair.client.rpc.cx().is_unanswered(call));
    }
    // The server never sees a call that waited for a slot.
    let mut pair = busy();
    let waiting = pair.call(ECHO, b"second", 2);
    pair.client.rpc.cx().cancel(waiting).unwrap();
    assert!(!pair.client.rpc.cx().is_unanswered(waiting));
}

/// A pair with a second session, in which the server does not promise to obey the rules of error
/// codes (rule W13), as an older server would not.
fn with_older_server() -> Pair {
    let mut pair = Pair::new();
    let session = pair.client.open(&SessionOptions::default());
    let (back, answer) = pair.accept(session);
    let answer = SessionOffer {
        keeps_code_rules: false,
        ..answer
    };
    let mut lifecycle = pair.client.rpc.lifecycle();
    lifecycle.opened(session, Wire::PEER, &answer).unwrap();
    (pair.session, pair.back) = (session, back);
    pair
}

#[test]
fn the_codes_of_a_server_prove_something_only_if_it_keeps_the_rules() {
    let unknown = ReqType(77);
    for (mut pair, keeps_rules, ran) in [
        (Pair::new(), true, Ran::No),
        (with_older_server(), false, Ran::Unknown),
    ] {
        let info = pair.client.rpc.session_info(pair.session).unwrap();
        assert_eq!(info.keeps_code_rules, keeps_rules);
        pair.call(unknown, b"x", 1);
        pair.call(REJECT, b"x", 2);
        // This call has more than one packet, so another code path ends it.
        call_long(&mut pair, unknown, 3);
        pair.run();
        let code = ErrorCode::UNKNOWN_TYPE;
        let ends = [
            (Tag(1), Err(RpcError::Rejected(code, ran))),
            (
                Tag(2),
                Err(RpcError::Rejected(ErrorCode::application(42), Ran::Yes)),
            ),
            (Tag(3), Err(RpcError::Rejected(code, ran))),
        ];
        assert_eq!(pair.done(), ends);
    }
}

fn call_long(pair: &mut Pair, req_type: ReqType, tag: u64) {
    pair.call(req_type, &vec![1; 3 * DATA_SIZE as usize], tag);
}

/// The codes with which handlers reject, and the codes that clients get.
const CODES: [(ErrorCode, ErrorCode); 5] = [
    (ErrorCode::application(3), ErrorCode::application(3)),
    (ErrorCode::OVERLOADED, ErrorCode::REFUSED),
    (ErrorCode::SHUTTING_DOWN, ErrorCode::HANDLER_FAILED),
    (ErrorCode::UNDECODABLE, ErrorCode::HANDLER_FAILED),
    (ErrorCode::UNKNOWN_TYPE, ErrorCode::HANDLER_FAILED),
];

fn code_in(data: &[u8]) -> ErrorCode {
    CODES[usize::from(data[0])].0
}

/// Makes the server reject with each of the codes, by each method that handlers have.
#[test]
fn no_handler_sends_a_code_that_proves_that_it_did_not_run() {
    let (direct, deferred, kept, batch, job) = (60, 61, 62, 63, 64);
    let mut pair = Pair::new();
    let rpc = &mut pair.server.rpc;
    rpc.on(ReqType(direct), |_, req, cx| {
        let code = code_in(req.data());
        req.reject(cx, code);
    });
    rpc.on(ReqType(deferred), |_, req, cx| {
        let code = code_in(req.data());
        req.defer(cx).reject(cx, code);
    });
    rpc.on(ReqType(kept), |_, req, cx| {
        let code = code_in(req.data());
        let ticket = req.keep(cx);
        cx.reject(ticket, code).unwrap();
    });
    rpc.on_batch(ReqType(batch), |_, mut batch, _| {
        for item in batch.iter_mut() {
            let code = code_in(item.data());
            item.reject(code);
        }
    });
    rpc.on_background(ReqType(job), 64, |req| {
        let code = code_in(req.data());
        req.reject(code);
    });
    for req_type in direct..=job {
        for (at, (_, expected)) in CODES.iter().enumerate() {
            let tag = pair.done().len() as u64;
            pair.call(ReqType(req_type), &[u8::try_from(at).unwrap()], tag);
            pair.run();
            pair.run_jobs();
            pair.run();
            let (_, end) = pair.done().last().unwrap();
            assert_eq!(*end, Err(RpcError::rejected(*expected, true)), "{req_type}");
        }
    }
}

#[test]
fn the_library_sends_its_own_codes_for_requests_that_did_not_run() {
    let mut pair = Pair::new();
    pair.server.rpc.on(ReqType(60), |_, req, cx| {
        req.refuse(cx, ErrorCode::UNDECODABLE);
    });
    pair.server.rpc.on(ReqType(61), |_, req, cx| {
        req.keep(cx).refuse(cx, ErrorCode::SHUTTING_DOWN);
    });
    pair.call(ReqType(60), b"x", 1);
    pair.call(ReqType(61), b"x", 2);
    pair.run();
    let codes = [ErrorCode::UNDECODABLE, ErrorCode::SHUTTING_DOWN];
    let ends = codes.map(|code| Err(RpcError::Rejected(code, Ran::No)));
    assert_eq!(
        pair.done(),
        [(Tag(1), ends[0].clone()), (Tag(2), ends[1].clone())]
    );
}
