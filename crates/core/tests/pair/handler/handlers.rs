//! All kinds of handlers, and the results when they fail.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use dunlin_core::transport::{Frame, TxItem};
use dunlin_core::{Config, Counters, Nanos, PacketLen, RpcError, Seen, SessionOptions, Tag, Tap};
use dunlin_testkit::pair::*;
use dunlin_testkit::wire::{Wire, deliver};
use dunlin_wire::{ErrorCode, HEADER_LEN, Header, PacketType};

const FAILED: RpcError = RpcError::rejected(ErrorCode::HANDLER_FAILED, true);

#[test]
fn a_panic_ends_one_request_and_not_the_endpoint() {
    let mut pair = Pair::new();
    pair.call(PANIC, b"", 1);
    pair.call(ECHO, b"after", 2);
    pair.run();
    assert_eq!(
        pair.done(),
        [(Tag(1), Err(FAILED)), (Tag(2), Ok(b"after".to_vec()))]
    );
    assert_eq!(pair.server.rpc.counters().handler_panics, 1);
    pair.assert_clean();
}

/// Counts the frames that it sees.
struct Frames(Rc<Cell<usize>>);

impl Tap for Frames {
    fn received(&mut self, _: Seen, _: &Frame<'_>, _: PacketLen<'_>) {
        self.0.set(self.0.get() + 1);
    }

    fn sent(&mut self, _: Nanos, _: &TxItem) {}
}

#[test]
fn after_a_panic_the_burst_continues_with_the_next_packet() {
    let every = [false, true].map(|together| [false, true].map(|tapped| (together, tapped)));
    let every = every.into_iter().flatten();
    for ((together, tapped), common) in every.flat_map(|it| [(it, false), (it, true)]) {
        let mut config = Config::default();
        config.bypasses.common = common;
        let mut pair = Pair::with(config, SessionOptions::default());
        pair.call(ECHO, &[1], 1);
        pair.run();
        let (shown, before) = (Rc::default(), pair.server.rpc.counters().rx_packets);
        if tapped {
            let tap = Frames(Rc::clone(&shown));
            pair.server.rpc.set_tap(Some(Box::new(tap)));
        }
        for (tag, kind) in [(2, ECHO), (3, PANIC), (4, ECHO), (5, PANIC), (6, ECHO)] {
            pair.call(kind, &[tag], tag.into());
        }
        pair.step_client();
        let mut frames = deliver(&pair.client.out, &pair.server.inbox);
        if together {
            let joined = pair.server.inbox.borrow_mut().drain(..).flatten().collect();
            pair.server.inbox.borrow_mut().push_back(joined);
            frames = 1;
        }
        pair.step_server();
        let ran = pair.server.rpc.app().ran.concat();
        assert_eq!(ran, [1, 2, 3, 4, 5, 6], "{together} {tapped}");
        let counters = pair.server.rpc.counters();
        assert_eq!(counters.handler_panics, 2);
        assert_eq!(counters.rx_packets - before, 5, "{together} {tapped}");
        assert_eq!(shown.get(), if tapped { frames } else { 0 });
        pair.run();
        let failed = |tag: &u64| [3, 5].contains(tag);
        let ends = pair.done().iter().map(|(tag, end)| (tag.0, end.is_err()));
        assert!(ends.clone().all(|(tag, is_err)| failed(&tag) == is_err));
        assert_eq!(ends.count(), 6);
        pair.assert_clean();
    }
}

/// Records where each packet of a frame begins, as far as the endpoint knows.
struct Walk(Rc<RefCell<Vec<usize>>>);

impl Tap for Walk {
    fn received(&mut self, _: Seen, frame: &Frame<'_>, packet_len: PacketLen<'_>) {
        let mut at = 0;
        while let Some(header) = frame.bytes.get(at..).map(Header::decode) {
            let Some(len) = header.ok().and_then(|header| packet_len(&header)) else {
                return;
            };
            self.0.borrow_mut().push(at);
            at += len;
        }
    }

    fn sent(&mut self, _: Nanos, _: &TxItem) {}
}

#[test]
fn a_tap_can_tell_where_packets_begin_after_a_part_of_a_large_message() {
    let mut pair = Pair::new();
    pair.call(ECHO, &[1], 1);
    pair.run();
    let starts = Rc::default();
    let tap = Walk(Rc::clone(&starts));
    pair.server.rpc.set_tap(Some(Box::new(tap)));
    pair.call(ECHO, &[2; Wire::DATA_SIZE as usize + 400], 2);
    pair.call(ECHO, b"tail", 3);
    pair.step_client();
    assert_eq!(deliver(&pair.client.out, &pair.server.inbox), 3);
    let mut frames: Vec<Vec<u8>> = pair.server.inbox.borrow_mut().drain(..).collect();
    frames.sort_by_key(|frame| std::cmp::Reverse(frame.len()));
    assert_eq!(frames[0].len(), HEADER_LEN + Wire::DATA_SIZE as usize);
    let expected = [0, frames[0].len(), frames[0].len() + frames[1].len()];
    let mut joined = frames.concat();
    pair.server.inbox.borrow_mut().push_back(joined.clone());
    pair.step_server();
    assert_eq!(*starts.borrow(), expected);
    // The length of a packet of a session that is not open is unknown.
    joined[4..8].fill(0x7f);
    pair.server.inbox.borrow_mut().push_back(joined);
    pair.step_server();
    assert_eq!(starts.borrow().len(), expected.len());
    pair.run();
    pair.assert_clean();
}

#[test]
fn a_handler_that_does_not_answer_fails_its_request() {
    let mut pair = Pair::new();
    pair.call(SILENT, b"", 1);
    pair.run();
    assert_eq!(pair.done(), [(Tag(1), Err(FAILED))]);
    assert_eq!(pair.server.rpc.counters().unanswered, 1);
    pair.assert_clean();
}

#[test]
fn a_held_request_is_acknowledged_and_answered_later() {
    let mut pair = Pair::new();
    pair.call(HOLD, b"x", 1);
    pair.run();
    assert_eq!(pair.server.rpc.counters().credit_returns, 0);
    pair.pass(Nanos::from_micros(100));
    assert_eq!(pair.server.rpc.counters().credit_returns, 1);
    pair.pass(Nanos::from_millis(500));
    assert_eq!(pair.client.rpc.counters().retransmissions, 0);
    assert!(pair.client.rpc.counters().probes >= 3);
    let held = pair.server.rpc.app_mut().held.pop().unwrap();
    held.reply_bytes(&mut pair.server.rpc.cx(), b"late");
    pair.run();
    assert_eq!(pair.done(), [(Tag(1), Ok(b"late".to_vec()))]);
    assert_eq!(pair.ran(), 1);
    pair.assert_clean();
}

/// Makes calls that the server holds, lets time pass, and answers all of them.
fn answer_late(pair: &mut Pair, calls: u64) {
    pair.pass(Nanos::from_millis(1));
    for tag in 0..calls {
        pair.call(HOLD, b"x", tag);
    }
    pair.run();
    pair.pass(Nanos::from_micros(1));
    let held: Vec<_> = pair.server.rpc.app_mut().held.drain(..).collect();
    for request in held {
        request.reply_bytes(&mut pair.server.rpc.cx(), b"late");
    }
    pair.run();
}

#[test]
fn late_answers_take_the_common_path_and_give_their_times() {
    let mut pair = Pair::new();
    for calls in [1, 3, 8] {
        let before = *pair.client.rpc.counters();
        answer_late(&mut pair, calls);
        let after = pair.client.rpc.counters();
        assert_eq!(after.rx_plain - before.rx_plain, calls);
        assert_eq!(after.rx_declined, before.rx_declined);
        let samples = |counters: &Counters| counters.rtt_samples + counters.rtt_away;
        assert_eq!(samples(after) - samples(&before), 1, "one request asks");
        assert_eq!(after.completions - before.completions, calls);
    }
    assert_eq!(pair.server.rpc.counters().credit_returns, 0);
    assert_eq!(pair.done().len(), 12);
    pair.assert_clean();
}

#[test]
fn a_burst_of_late_answers_goes_on_after_a_completion_function_panics() {
    let mut pair = Pair::new();
    pair.client.rpc.on_completion(|app, done, cx| {
        app.done.push((done.tag, Ok(Vec::new())));
        cx.recycle([done.request, done.response]);
        assert!(!done.tag.0.is_multiple_of(2), "planted");
    });
    for calls in [1, 3, 8] {
        answer_late(&mut pair, calls);
    }
    assert_eq!(pair.done().len(), 12, "each call ends once");
    let counters = pair.client.rpc.counters();
    assert_eq!((counters.handler_panics, counters.completions), (7, 12));
    assert_eq!(counters.rx_plain, 12);
    pair.assert_clean();
}

#[test]
fn a_held_request_that_is_dropped_is_answered_with_an_error() {
    let mut pair = Pair::new();
    pair.call(HOLD, b"x", 1);
    pair.run();
    pair.server.rpc.app_mut().held.clear();
    pair.run();
    assert_eq!(pair.done(), [(Tag(1), Err(FAILED))]);
    pair.assert_clean();
}

#[test]
fn a_handler_may_call_back_on_the_same_session() {
    let mut pair = Pair::with(Config::default(), options(1, 1));
    pair.call(CALL_BACK, b"nested", 1);
    pair.run();
    assert_eq!(pair.client.rpc.app().ran, [b"nested".to_vec()]);
    assert_eq!(pair.done(), [(Tag(1), Ok(b"nested".to_vec()))]);
    pair.assert_clean();
}

#[test]
fn background_requests_run_elsewhere_and_do_not_block_others() {
    let mut pair = Pair::new();
    pair.call(BACKGROUND, b"slow", 1);
    pair.call(ECHO, b"fast", 2);
    pair.pass(Nanos::from_millis(50));
    assert_eq!(pair.done(), [(Tag(2), Ok(b"fast".to_vec()))]);
    pair.run_jobs();
    pair.run();
    assert_eq!(pair.done()[1], (Tag(1), Ok(b"slow".to_vec())));
    assert_eq!(pair.client.rpc.counters().retransmissions, 0);
    pair.assert_clean();
}

#[test]
fn each_failure_of_a_background_handler_has_its_own_error() {
    let mut pair = Pair::new();
    for (tag, data) in [(1, &b"panic"[..]), (2, b"large"), (3, b"drop")] {
        pair.call(BACKGROUND, data, tag);
    }
    pair.run();
    pair.run_jobs();
    pair.run();
    let mut done = pair.done().to_vec();
    done.sort_by_key(|(tag, _)| *tag);
    let too_large = RpcError::rejected(ErrorCode::RESPONSE_TOO_LARGE, true);
    assert_eq!(
        done,
        [
            (Tag(1), Err(FAILED)),
            (Tag(2), Err(too_large)),
            (Tag(3), Err(FAILED))
        ]
    );
    assert_eq!(pair.server.rpc.counters().handler_panics, 1);
    pair.assert_clean();
}

#[test]
fn a_full_queue_of_jobs_is_overload() {
    let mut pair = Pair::new();
    for tag in 0..6 {
        pair.call(BACKGROUND, b"x", tag);
    }
    pair.run();
    let overloaded = Err(RpcError::rejected(ErrorCode::OVERLOADED, true));
    assert_eq!(
        pair.done()
            .iter()
            .filter(|(_, result)| *result == overloaded)
            .count(),
        2
    );
    pair.run_jobs();
    pair.run();
    assert_eq!(pair.done().len(), 6);
    pair.assert_clean();
}

#[test]
fn a_job_whose_session_has_closed_is_forgotten() {
    let mut pair = Pair::new();
    pair.call(BACKGROUND, b"x", 1);
    pair.call(HOLD, b"y", 2);
    pair.run();
    pair.server.rpc.disconnect(pair.back).unwrap();
    pair.run_jobs();
    pair.run();
    assert_eq!(pair.server.rpc.app().given_up, 2);
    let held = pair.server.rpc.app_mut().held.pop().unwrap();
    assert!(held.is_cancelled(&pair.server.rpc.cx()));
    held.reply_bytes(&mut pair.server.rpc.cx(), b"too late");
    pair.client
        .rpc
        .lifecycle()
        .close(pair.session, dunlin_core::CloseReason::Disconnected);
    pair.run();
    assert_eq!(pair.done().len(), 2);
    pair.assert_clean();
}

#[test]
fn a_batch_handler_gets_the_burst_at_once() {
    let mut pair = Pair::new();
    for (tag, data) in [(1, &b"a"[..]), (2, b"b"), (3, b"none"), (4, b"reject")] {
        pair.call(BATCH, data, tag);
    }
    pair.call(ECHO, b"e", 5);
    pair.run();
    assert_eq!(pair.server.rpc.app().batches, [4]);
    let mut done = pair.done().to_vec();
    done.sort_by_key(|(tag, _)| *tag);
    assert_eq!(done[0].1, Ok(b"a".to_vec()));
    assert_eq!(done[1].1, Ok(b"b".to_vec()));
    assert_eq!(done[2].1, Err(FAILED));
    assert_eq!(
        done[3].1,
        Err(RpcError::rejected(ErrorCode::application(1), true))
    );
    assert_eq!(done[4].1, Ok(b"e".to_vec()));
    pair.assert_clean();
}

#[test]
fn a_panic_in_a_batch_fails_only_unanswered_requests() {
    let mut pair = Pair::new();
    for (tag, data) in [(1, &b"a"[..]), (2, b"panic"), (3, b"c")] {
        pair.call(BATCH, data, tag);
    }
    pair.run();
    let mut done = pair.done().to_vec();
    done.sort_by_key(|(tag, _)| *tag);
    assert_eq!(
        done,
        [
            (Tag(1), Ok(b"a".to_vec())),
            (Tag(2), Err(FAILED)),
            (Tag(3), Err(FAILED))
        ]
    );
    pair.assert_clean();
}

#[test]
fn several_packets_in_one_frame_are_one_batch() {
    let mut pair = Pair::new();
    for tag in 0..5 {
        pair.call(BATCH, &[b'0' + u8::try_from(tag).unwrap()], tag);
    }
    pair.step_client();
    let packed: Vec<u8> = pair.client.out.borrow_mut().drain(..).flatten().collect();
    pair.server.inbox.borrow_mut().push_back(packed);
    pair.run();
    assert_eq!(pair.server.rpc.app().batches, [5]);
    assert_eq!(pair.done().len(), 5);
    pair.assert_clean();
}

#[test]
fn a_slow_dispatch_handler_is_announced_from_its_second_run_on() {
    let mut pair = Pair::new();
    pair.server.rpc.on(HOLD, |app, req, cx| {
        app.clock.pass(Nanos::from_millis(10));
        req.reply_bytes(cx, b"slow");
    });
    for tag in 0..3 {
        pair.call(HOLD, b"x", tag);
        pair.step_client();
        let request = pair.client.out.borrow_mut().drain(..).next().unwrap();
        pair.server.inbox.borrow_mut().push_back(request);
        pair.step_server();
        let sent = kinds(
            &pair
                .server
                .out
                .borrow()
                .iter()
                .map(|f| dunlin_wire::Header::decode(f).unwrap())
                .collect::<Vec<_>>(),
        );
        let expected = if tag == 0 {
            vec![PacketType::Resp]
        } else {
            vec![PacketType::Cr, PacketType::Resp]
        };
        assert_eq!(sent, expected, "run {tag}");
        pair.run();
    }
    assert_eq!(pair.done().len(), 3);
}
