//! Batch handlers that continue with a large request later: other requests are served meanwhile,
//! and the handler finishes even if the client no longer waits.

use dunlin_core::{Batch, Config, Cx, Nanos, RpcError, SessionOptions};
use dunlin_testkit::pair::*;
use dunlin_wire::{PacketType, ReqType};

/// The type of the requests that [`in_parts`] answers: a large request in the fourth call for it,
/// any other in the first.
const PARTS: ReqType = ReqType(60);

/// A request that takes several packets.
fn large(first: u8) -> Vec<u8> {
    vec![first; 5 * DATA_SIZE as usize]
}

/// Counts the calls for a request by its ticket: the pair's `batches` gets an entry with the
/// ticket's number for each call.
fn in_parts(app: &mut App, mut batch: Batch<'_>, cx: &mut Cx<'_>) {
    for item in batch.iter_mut() {
        app.ran.push(item.data()[..1].to_vec());
        let number = item.ticket(cx).index();
        app.batches.push(number);
        let calls = app.batches.iter().filter(|it| **it == number).count();
        let item = match calls {
            1..=3 => match item.again() {
                Ok(()) => continue,
                Err(item) => item,
            },
            _ => item,
        };
        item.reply(1, |out| {
            out[0] = u8::try_from(calls).expect("the calls are few")
        })
        .expect("it fits");
    }
}

fn pair() -> Pair {
    let mut pair = Pair::new();
    pair.server.rpc.on_batch(PARTS, in_parts);
    pair
}

/// Lets the packets of a large request reach the server, which then has called the handler once.
fn send_large(pair: &mut Pair) {
    for _ in 0..20 {
        pair.client.rpc.run_once();
        deliver(&pair.client.out, &pair.server.inbox);
        if !pair.server.rpc.app().ran.is_empty() {
            return;
        }
        pair.server.rpc.run_once();
        deliver(&pair.server.out, &pair.client.inbox);
    }
    panic!("the request does not arrive");
}

#[test]
fn other_requests_are_answered_between_the_parts() {
    let mut pair = pair();
    pair.call(PARTS, &large(b'l'), 0);
    send_large(&mut pair);
    let mut answered = Vec::new();
    for turn in 1..4 {
        assert_eq!(
            pair.server
                .rpc
                .app()
                .ran
                .iter()
                .filter(|it| *it == b"l")
                .count(),
            turn
        );
        pair.call(ECHO, b"quick", 100 + turn as u64);
        pair.client.rpc.run_once();
        deliver(&pair.client.out, &pair.server.inbox);
        pair.server.rpc.run_once();
        let sent = take(&pair.server.out);
        answered.push(sent.iter().filter(|it| it.kind == PacketType::Resp).count());
    }
    // Each turn answers its quick request; the third turn also answers the large request.
    assert_eq!(answered, [1, 1, 2]);
}

#[test]
fn an_endpoint_with_an_unfinished_request_goes_on_without_packets() {
    let mut pair = pair();
    pair.call(PARTS, &large(b'l'), 7);
    send_large(&mut pair);
    let before = pair.server.rpc.app().ran.len();
    let progress = pair.server.rpc.run_once();
    assert!(progress.busy);
    assert_eq!(pair.server.rpc.app().ran.len(), before + 1);
    pair.run();
    assert_eq!(pair.done(), [(dunlin_core::Tag(7), Ok(vec![4]))]);
}

#[test]
fn requests_that_wait_take_turns() {
    let mut pair = pair();
    for (tag, first) in [(0, b'a'), (1, b'b')] {
        pair.call(PARTS, &large(first), tag);
    }
    for _ in 0..30 {
        pair.run();
    }
    let ran: Vec<u8> = pair.server.rpc.app().ran.concat();
    assert_eq!(ran.len(), 8);
    let last_first = ran.iter().rposition(|it| *it == b'a').unwrap();
    let first_last = ran.iter().position(|it| *it == b'b').unwrap();
    assert!(first_last < last_first, "{}", ran.escape_ascii());
    assert_eq!(pair.done().len(), 2);
}

#[test]
fn again_refuses_a_request_of_one_packet() {
    let mut pair = pair();
    pair.call(PARTS, b"small", 3);
    pair.run();
    assert_eq!(pair.done(), [(dunlin_core::Tag(3), Ok(vec![1]))]);
    assert_eq!(pair.server.rpc.app().ran.len(), 1);
}

#[test]
fn a_handler_comes_to_its_end_although_its_client_has_given_up() {
    let mut pair = pair();
    let call = pair.call(PARTS, &large(b'l'), 0);
    send_large(&mut pair);
    pair.client.rpc.with().1.cancel(call).unwrap();
    pair.run();
    pair.pass(Nanos::from_millis(50));
    assert_eq!(pair.server.rpc.app().ran.len(), 4);
    assert!(
        matches!(pair.done(), [(_, Err(RpcError::Cancelled(_)))]),
        "{:?}",
        pair.done()
    );
}

#[test]
fn a_handler_comes_to_its_end_although_the_session_has_closed() {
    let mut pair = pair();
    pair.call(PARTS, &large(b'l'), 0);
    send_large(&mut pair);
    let back = pair.back;
    pair.server.rpc.with().1.disconnect(back).unwrap();
    pair.run();
    pair.pass(Nanos::from_millis(50));
    assert_eq!(pair.server.rpc.app().ran.len(), 4);
}

/// Answers none of its requests: each call asks for another call, and panics.
fn in_panic(_: &mut App, mut batch: Batch<'_>, _: &mut Cx<'_>) {
    for item in batch.iter_mut() {
        assert!(item.again().is_ok());
    }
    panic!("on purpose");
}

#[test]
fn a_panic_after_again_ends_the_request() {
    let mut pair = Pair::new();
    pair.server.rpc.on_batch(PARTS, in_panic);
    pair.call(PARTS, &large(b'l'), 0);
    for _ in 0..10 {
        pair.run();
    }
    assert_eq!(pair.server.rpc.counters().handler_panics, 1);
    let done = pair.done();
    assert!(
        matches!(done[..], [(_, Err(RpcError::Rejected(..)))]),
        "{done:?}"
    );
}

/// Answers in its fiftieth call, or earlier if it gets no further call.
fn as_long_as_it_may(app: &mut App, mut batch: Batch<'_>, cx: &mut Cx<'_>) {
    for item in batch.iter_mut() {
        let number = item.ticket(cx).index();
        app.batches.push(number);
        let item = match app.batches.iter().filter(|it| **it == number).count() {
            ..50 => match item.again() {
                Ok(()) => continue,
                Err(item) => item,
            },
            _ => item,
        };
        item.reply(0, |_| {}).expect("it fits");
    }
}

#[test]
fn requests_that_wait_for_later_turns_hold_only_a_part_of_the_receive_budget() {
    let config = Config {
        receive_budget: 16 * 8 * u64::from(DATA_SIZE),
        ..Config::default()
    };
    let mut pair = Pair::with(config, SessionOptions::default());
    pair.server.rpc.on_batch(PARTS, as_long_as_it_may);
    // Requests that wait may hold a sixteenth of the budget: the bytes of eight packets. One of
    // these requests, of five packets, fits into that; two do not.
    for tag in 0..2 {
        pair.call(PARTS, &large(b'l'), tag);
    }
    for _ in 0..20 {
        pair.run();
    }
    assert_eq!(pair.done().len(), 2);
    let calls = &pair.server.rpc.app().batches;
    let of_second = calls.iter().filter(|it| **it != calls[0]).count();
    assert_eq!((calls.len(), of_second), (51, 1));
}
