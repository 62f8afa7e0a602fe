//! Bugs that a review found. Each test repeats the events that revealed the bug.

use dunlin_core::{Config, Nanos, Request, RpcError, SessionOptions, Tag, TimerToken};
use dunlin_testkit::pair::*;
use dunlin_wire::{ErrorCode, PacketType, Ran, ReqType};
use std::cell::Cell;

thread_local! {
    static FIRES: Cell<u32> = const { Cell::new(0) };
}
const SLOW: ReqType = ReqType(50);
fn slow(app: &mut App, req: Request<'_>, cx: &mut dunlin_core::Cx<'_>) {
    app.ran.push(req.data().to_vec());
    app.clock.pass(Nanos::from_millis(10));
    req.reply_bytes(cx, b"s");
}

#[test]
fn a_scan_before_the_first_transmission_does_not_resend() {
    let mut p = Pair::new();
    p.clock.set(Nanos(50_000_000));
    p.call(ECHO, b"x", 1);
    p.clock.pass(Nanos(300_000)); // the app computed before it ran the loop
    p.client.rpc.run_once();
    let k = kinds(&take(&p.client.out));
    assert_eq!(
        k,
        [PacketType::Req],
        "retrans {}",
        p.client.rpc.counters().retransmissions
    );
}

#[test]
fn a_reused_call_has_no_old_times() {
    // One long call keeps the scan going; a completion issues a new call into an entry that was
    // used before.
    let mut p = Pair::new();
    for t in 0..4 {
        p.call(ECHO, b"x", t);
    }
    p.run();
    p.call(HOLD, b"h", 9);
    p.run();
    p.pass(Nanos::from_millis(100));
    let before = p.client.rpc.counters().retransmissions;
    for i in 0..40u64 {
        p.clock
            .pass(Nanos(if i % 8 == 0 { 1_000_000 } else { 37_000 }));
        p.call(ECHO, b"x", 100 + i);
        p.call(ECHO, b"y", 200 + i);
        p.client.rpc.run_once();
        p.run();
        if i % 8 == 7 {
            p.pass(Nanos::from_millis(30));
        }
    }
    assert_eq!(p.client.rpc.counters().retransmissions - before, 0);
}

#[test]
fn cancelling_in_the_backlog_leaves_nothing_to_wake_up_for() {
    let mut p = Pair::with(Config::default(), options(1, 32));
    p.call(HOLD, b"h", 1);
    p.run();
    p.call_for(ECHO, b"x", 2, Some(Nanos::from_millis(1)));
    p.pass(Nanos::from_millis(3));
    assert_eq!(p.done(), [(Tag(2), Err(RpcError::DeadlinePassed(Ran::No)))]);
    let h = p.server.rpc.app_mut().held.pop().unwrap();
    {
        let (_, mut cx) = p.server.rpc.with();
        h.reply_bytes(&mut cx, b"a");
    }
    p.run();
    p.call(ECHO, b"z", 3);
    p.run();
    assert_eq!(p.done().len(), 3);
    p.assert_clean();
}

#[test]
fn a_timer_set_for_now_waits_for_the_next_iteration() {
    let mut p = Pair::new();
    p.client.rpc.on_timer(|_, t, cx| {
        FIRES.with(|f| {
            f.set(f.get() + 1);
            assert!(f.get() < 1000, "endless");
        });
        cx.timer(cx.now(), t);
    });
    {
        let (_, mut cx) = p.client.rpc.with();
        cx.timer(Nanos(0), TimerToken(1));
    }
    for _ in 0..65 {
        p.client.rpc.run_once();
    }
}

#[test]
fn an_item_of_a_batch_is_kept_once() {
    let mut p = Pair::new();
    p.server.rpc.on_batch(ReqType(60), |app, mut batch, cx| {
        let mut s = None;
        for item in batch.iter_mut() {
            s = Some(item.session());
            item.defer(cx).reply_bytes(cx, b"1");
        }
        cx.disconnect(s.unwrap()).unwrap();
        for item in batch.iter_mut() {
            app.held.push(item.defer(cx));
        }
    });
    p.call(HOLD, b"h", 5);
    p.call(ReqType(60), b"a", 1);
    p.step_client();
    deliver(&p.client.out, &p.server.inbox);
    p.server.rpc.run_once();
    let first = p.server.rpc.app_mut().held.remove(0);
    p.server.rpc.app_mut().held.clear();
    for _ in 0..5 {
        for _ in 0..65 {
            p.server.rpc.run_once();
        }
        p.clock.pass(Nanos(500_000_000));
    }
    drop(first);
    for _ in 0..10 {
        for _ in 0..65 {
            p.server.rpc.run_once();
        }
        p.clock.pass(Nanos(500_000_000));
    }
    assert_eq!(p.server.rpc.next_wakeup(), Nanos::MAX);
}

#[test]
fn a_held_request_whose_answer_panics_fails() {
    let mut p = Pair::new();
    p.server.rpc.on(ReqType(61), |app, req, cx| {
        if let Some(h) = app.held.pop() {
            h.reply(cx, 4, |_| panic!("write"));
        }
        req.reply_bytes(cx, b"x");
    });
    p.call(HOLD, b"h", 1);
    p.run();
    p.call(ReqType(61), b"h", 2);
    p.run();
    p.pass(Nanos::from_secs(5));
    assert_eq!(p.done().len(), 2, "{:?}", p.done());
}

#[test]
fn a_flood_of_frames_does_not_suspend_deadlines() {
    let mut p = Pair::new();
    p.call_for(HOLD, b"h", 1, Some(Nanos::from_millis(1)));
    p.client.rpc.run_once();
    take(&p.client.out);
    for _ in 0..20_000 {
        p.clock.pass(Nanos(10_000));
        for _ in 0..32 {
            p.client.inbox.borrow_mut().push_back(vec![0; 8]);
        }
        p.client.rpc.run_once();
    }
    assert_eq!(p.done().len(), 1, "200 ms of full bursts");
}

#[test]
fn a_burst_of_one_frame_may_have_left_the_answer_for_the_next() {
    let mut p = Pair::new();
    p.call(ECHO, b"x", 1);
    p.client.rpc.run_once();
    take(&p.client.out);
    let idle = |p: &mut Pair, span| {
        p.clock.pass(span);
        for _ in 0..65 {
            p.client.rpc.run_once();
        }
    };
    for _ in 0..199 {
        idle(&mut p, Nanos::from_micros(100));
    }
    assert_eq!(p.client.rpc.counters().retransmissions, 0);
    p.clock.pass(Nanos::from_micros(400));
    p.client.inbox.borrow_mut().push_back(vec![0; 8]);
    p.client.rpc.run_once();
    assert_eq!(
        p.client.rpc.counters().retransmissions,
        0,
        "the timeout is 20 ms"
    );
    idle(&mut p, Nanos::from_micros(400));
    assert_eq!(
        p.client.rpc.counters().retransmissions,
        1,
        "the retransmission was due"
    );
}

#[test]
fn a_slow_handler_is_not_taken_for_round_trip() {
    let mut p = Pair::new();
    p.client.rpc.on(SLOW, slow);
    let call_slow = |p: &mut Pair| {
        let a = p.server.rpc.buf(3).unwrap();
        let b = p.server.rpc.buf(30).unwrap();
        let back = p.back;
        p.server.rpc.call(back, SLOW, a, b, Tag(7)).unwrap();
    };
    call_slow(&mut p);
    p.run();
    call_slow(&mut p);
    p.run();
    for i in 0..20 {
        p.call(ECHO, b"x", i);
        p.run();
    }
    let rtt0 = p.client.rpc.session_info(p.session).unwrap().rtt;
    call_slow(&mut p);
    for _ in 0..1 {
        p.server.rpc.run_once();
    }
    p.call(ECHO, b"y", 99);
    p.client.rpc.run_once();
    deliver(&p.client.out, &p.server.inbox);
    p.server.rpc.run_once();
    let f: Vec<_> = p.server.out.borrow_mut().drain(..).collect();
    assert_eq!(f.len(), 2);
    p.client.inbox.borrow_mut().extend(f);
    let s0 = p.client.rpc.counters().rtt_samples;
    p.client.rpc.run_once();
    let rtt1 = p.client.rpc.session_info(p.session).unwrap().rtt;
    assert!(
        rtt1.unwrap().0 < 1000,
        "{rtt0:?} {rtt1:?} samples {}",
        p.client.rpc.counters().rtt_samples - s0
    );
}

#[test]
fn residence_includes_the_wait_for_a_slow_handler() {
    let mut p = Pair::new();
    p.server.rpc.on(SLOW, slow);
    p.call(SLOW, b"0", 0);
    p.run();
    p.call(SLOW, b"1", 1);
    p.call(SLOW, b"2", 2);
    p.call(ECHO, b"e", 3);
    p.client.rpc.run_once();
    deliver(&p.client.out, &p.server.inbox);
    // Each iteration runs one slow handler.
    p.server.rpc.run_once();
    p.server.rpc.run_once();
    let h = take(&p.server.out);
    let r: Vec<_> = h
        .iter()
        .map(|h| (h.kind, h.req.0, h.residence().to_nanos()))
        .collect();
    let waited: Vec<_> = r
        .iter()
        .filter(|(kind, ..)| *kind == PacketType::Resp)
        .map(|(_, req, ns)| (*req, ns.map(|ns| ns / 1_000_000)))
        .collect();
    assert_eq!(
        waited,
        [(2, None), (8, Some(9)), (1, Some(19))],
        "in milliseconds, rounded down; the client did not ask about the quick one"
    );
}

#[test]
fn slow_polling_still_gives_round_trip_samples() {
    let mut p = Pair::new();
    for i in 0..2000u64 {
        p.call(ECHO, b"x", i);
        p.client.rpc.run_once();
        deliver(&p.client.out, &p.server.inbox);
        p.server.rpc.run_once();
        for _ in 0..10 {
            p.clock.pass(Nanos(400));
            p.client.rpc.run_once();
        }
        deliver(&p.server.out, &p.client.inbox);
        p.client.rpc.run_once();
    }
    let c = p.client.rpc.counters();
    assert!(
        // Every twenty-fifth request asks for a sample.
        p.done().len() == 2000 && c.rtt_samples > 50,
        "{} samples, {} away",
        c.rtt_samples,
        c.rtt_away
    );
}

#[test]
fn gaps_do_not_hide_a_silent_peer_for_ever() {
    let mut p = Pair::new();
    p.call(ECHO, b"x", 1);
    for _ in 0..5000 {
        p.clock.pass(Nanos(3_000_000));
        for _ in 0..65 {
            p.client.rpc.run_once();
        }
        take(&p.client.out);
    }
    assert_eq!(p.done().len(), 1, "15 s of silence, looking every 3 ms");
}

#[test]
fn an_answer_after_a_cancel_gives_no_sample() {
    let mut p = Pair::new();
    let id = p.call(ECHO, b"x", 1);
    p.client.rpc.run_once();
    deliver(&p.client.out, &p.server.inbox);
    p.server.rpc.run_once();
    let f: Vec<_> = p.server.out.borrow_mut().drain(..).collect();
    for _ in 0..2000 {
        p.clock.pass(Nanos(1000));
        for _ in 0..2 {
            p.client.rpc.run_once();
        }
    }
    p.client.rpc.cx().cancel(id).unwrap();
    p.client.rpc.run_once();
    p.clock.pass(Nanos(500));
    p.client.inbox.borrow_mut().extend(f);
    p.client.rpc.run_once();
    let i = p.client.rpc.session_info(p.session).unwrap();
    assert_eq!(p.client.rpc.counters().rtt_samples, 0, "{:?}", i.rtt);
}

#[test]
fn a_panic_in_a_continuation_ends_that_call_only() {
    let mut p = Pair::new();
    p.client.rpc.on_completion(|_, _, _| panic!("completion"));
    // The server sends requests to the client's batch handler, while the client has a pending echo.
    let a = p.server.rpc.buf(3).unwrap();
    let b = p.server.rpc.buf(30).unwrap();
    let back = p.back;
    p.server.rpc.call(back, BATCH, a, b, Tag(7)).unwrap();
    p.server.rpc.run_once();
    p.call(ECHO, b"y", 99);
    p.client.rpc.run_once();
    deliver(&p.client.out, &p.server.inbox);
    p.server.rpc.run_once();
    deliver(&p.server.out, &p.client.inbox);
    let r = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| p.client.rpc.run_once()));
    assert!(r.is_ok());
    p.client.inbox.borrow_mut().push_back(vec![0xEE; 200]);
    let r = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| p.client.rpc.run_once()));
    assert!(r.is_ok());
    assert_eq!(
        p.client.rpc.app().ran,
        [vec![0; 3]],
        "the batch ran once, with its own bytes"
    );
    assert_eq!(p.client.rpc.counters().handler_panics, 1);
}

#[test]
fn all_slow_requests_of_a_burst_are_announced_before_the_first_runs() {
    let mut p = Pair::with(
        Config {
            rto_floor: Nanos::from_millis(1),
            ..Config::default()
        },
        SessionOptions::default(),
    );
    p.server.rpc.on(SLOW, slow);
    for i in 0..40 {
        p.call(SLOW, b"0", i);
        p.run();
    }
    for i in 0..30 {
        p.call(ECHO, b"e", 500 + i);
        p.clock.pass(Nanos(1000));
        p.client.rpc.run_once();
        p.run();
    }
    assert!(p.client.rpc.counters().rtt_samples > 0);
    // Now two requests come together. The server takes both in one burst.
    p.call(SLOW, b"1", 101);
    p.call(SLOW, b"2", 102);
    p.client.rpc.run_once();
    let start = p.clock.read();
    deliver(&p.client.out, &p.server.inbox);
    p.server.rpc.run_once();
    p.server.rpc.run_once();
    let sent: Vec<Vec<u8>> = p.server.out.borrow_mut().drain(..).collect();
    // Both CRs arrive without delay; the responses come 10 and 20 ms later.
    p.clock.set(start);
    assert!(sent.len() >= 4);
    p.client
        .inbox
        .borrow_mut()
        .extend(sent[..2].iter().cloned());
    for _ in 0..100 {
        p.clock.pass(Nanos(100_000));
        for _ in 0..65 {
            p.client.rpc.run_once();
        }
    }
    let k = kinds(&take(&p.client.out));
    assert_eq!(p.client.rpc.counters().retransmissions, 0, "{k:?}");
}

#[test]
fn a_held_request_is_answered_only_by_its_own_endpoint() {
    let mut p = Pair::new();
    // Both endpoints hold a request: the client holds one that the server has sent.
    p.call(HOLD, b"secret-a", 1);
    let a = p.server.rpc.buf(3).unwrap();
    let b = p.server.rpc.buf(30).unwrap();
    let back = p.back;
    p.server.rpc.call(back, HOLD, a, b, Tag(7)).unwrap();
    p.run();
    let h = p.server.rpc.app_mut().held.pop().unwrap(); // held at the server
    {
        let (_, mut cx) = p.client.rpc.with();
        h.reply_bytes(&mut cx, b"for client");
    } // wrong endpoint
    p.run();
    let failed = Err(RpcError::rejected(ErrorCode::HANDLER_FAILED, true));
    assert_eq!(
        p.done(),
        [(Tag(1), failed)],
        "the handle was lost on the way"
    );
    assert!(
        p.server.rpc.app().done.is_empty(),
        "the client's request is still held"
    );
}
