//! Packets of large messages whose answers show that earlier packets are lost, and others whose
//! answers do not.

use dunlin_core::{Config, Nanos, Tag};
use dunlin_testkit::pair::*;
use dunlin_wire::Header;

use super::large::{WIDE, call, issue_many, pass_by, pattern};

#[test]
fn a_lost_tail_is_found_by_the_answers_to_later_packets() {
    let mut pair = Pair::with(Config::default(), WIDE);
    issue_many(&mut pair, &pattern(2_000), 1);
    // The last packet of the first message is lost. The session always has other messages to send.
    let begin = pair.clock.read();
    let mut lost = false;
    let mut tag = 1;
    while !pair.done().iter().any(|done| done.0 == Tag(1)) {
        let issued = pair.done().len() as u64 + 2;
        while tag < issued {
            tag += 1;
            call(&mut pair, ECHO, &pattern(2_000), tag);
        }
        pass_by(&mut pair, 1_000, 1, |frames| {
            let before = frames.len();
            frames.retain(|frame| lost || Header::decode(frame).unwrap().pkt.0 != 1);
            lost |= frames.len() < before;
        });
    }
    let took = pair.clock.read().since(begin);
    assert!(took < Nanos::from_micros(100), "{took:?}");
    assert_eq!(pair.client.rpc.counters().retransmissions, 1);
}

/// The client asks for no first packet of a response, so its arrival does not show that packets
/// which left before it are lost. They may wait in the server's queue.
#[test]
fn the_first_packet_of_a_response_is_no_sign_of_loss() {
    let mut pair = Pair::with(Config::default(), WIDE);
    for tag in 1..30 {
        call(&mut pair, ECHO, &pattern(2_000), tag);
        pass_by(&mut pair, 1_000, 10, |_| {});
    }
    call(&mut pair, HOLD, &pattern(3_000), 30);
    // The server acknowledges the whole request after `ack_delay`.
    pass_by(&mut pair, 1_000, 100, |_| {});
    let before = pair.client.rpc.counters().retransmissions;
    // Packets of another message wait in a queue for 27 µs. The client is patient for 20 µs.
    call(&mut pair, ECHO, &pattern(2_000), 31);
    pair.step_client();
    let waiting: Vec<_> = pair.client.out.borrow_mut().drain(..).collect();
    assert_eq!(waiting.len(), 2);
    for micro in 1..28 {
        pair.clock.pass(Nanos::from_micros(1));
        if micro == 15 {
            let (app, mut cx) = pair.server.rpc.with();
            let held = app.held.pop().unwrap();
            held.reply(&mut cx, 3_000, |out| out.fill(1));
            pair.step_server();
            deliver(&pair.server.out, &pair.client.inbox);
        }
        pair.step_client();
    }
    assert_eq!(pair.client.rpc.counters().retransmissions, before);
    pair.server.inbox.borrow_mut().extend(waiting);
    pass_by(&mut pair, 5_000, 10, |_| {});
    assert_eq!(pair.done().len(), 31);
    pair.assert_clean();
}
