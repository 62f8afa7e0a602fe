//! Sessions with a window: packets leave in pairs, one CR answers a pair of a request, and one RFR
//! asks for a pair of a response (rule S7).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use dunlin_core::{BytesPerSec, CongestionControl, Nanos, Sample, Tag};
use dunlin_testkit::pair::*;
use dunlin_wire::{Flags, Header, PacketType, ReqType};

/// A scheme that always has the same window, and counts losses.
#[derive(Debug)]
struct Window {
    packets: u32,
    losses: Arc<AtomicU32>,
}

impl CongestionControl for Window {
    fn on_answer(&mut self, _: Sample) {}

    fn window(&self) -> Option<u32> {
        Some(self.packets)
    }

    fn on_loss(&mut self, _: Nanos) {
        self.losses.fetch_add(1, Ordering::Relaxed);
    }

    fn on_timeout(&mut self, _: Nanos) {}

    fn rate(&self) -> Option<BytesPerSec> {
        Some(BytesPerSec(1_000_000_000))
    }
}

/// Two endpoints, with an echo of `packets` packets under way.
fn echo_within(window: u32, packets: usize) -> Pair {
    call_within(window, packets, ECHO).0
}

/// The same with a call of this type, and the number of losses that the scheme has learned of.
fn call_within(window: u32, packets: usize, req_type: ReqType) -> (Pair, Arc<AtomicU32>) {
    let mut pair = Pair::new();
    let session = pair.session;
    let losses = Arc::default();
    let scheme = Box::new(Window {
        packets: window,
        losses: Arc::clone(&losses),
    });
    assert_eq!(pair.client.rpc.set_own_scheme(session, scheme), Ok(()));
    let rpc = &mut pair.client.rpc;
    let len = packets * DATA_SIZE as usize;
    let (request, response) = (rpc.buf(len).unwrap(), rpc.buf(len).unwrap());
    rpc.call(session, req_type, request, response, Tag(1))
        .unwrap();
    (pair, losses)
}

/// The headers of the packets that the client sends now. They stay in its queue.
fn sent(pair: &mut Pair) -> Vec<Header> {
    pair.step_client();
    let out = pair.client.out.borrow();
    let headers = out.iter().map(|frame| Header::decode(frame).unwrap());
    headers.collect()
}

/// Brings the client's first packet to the server, alone in its burst; passes the answers to the
/// client, and returns their headers.
fn bring_one(pair: &mut Pair) -> Vec<Header> {
    let frame = pair.client.out.borrow_mut().pop_front().unwrap();
    pair.server.inbox.borrow_mut().push_back(frame);
    pair.step_server();
    let out = pair.server.out.borrow();
    let headers = out.iter().map(|frame| Header::decode(frame).unwrap());
    let headers = headers.collect();
    drop(out);
    deliver(&pair.server.out, &pair.client.inbox);
    headers
}

#[test]
fn one_cr_answers_two_packets_that_leave_together() {
    let mut pair = echo_within(2, 6);
    for first in [0, 2, 4] {
        let [one, two] = sent(&mut pair)[..] else {
            panic!("the client did not send a pair");
        };
        assert_eq!((one.pkt.0, one.flags), (first, Flags::FOLLOWED));
        assert_eq!((two.pkt.0, two.flags), (first + 1, Flags::NONE));
        assert!(bring_one(&mut pair).is_empty(), "the server waits");
        let [answer] = bring_one(&mut pair)[..] else {
            panic!("no answer");
        };
        match first {
            4 => assert_eq!(answer.kind, PacketType::Resp),
            _ => assert_eq!(
                (answer.kind, answer.cumulative().0),
                (PacketType::Cr, first + 2)
            ),
        }
    }
    pair.run();
    assert_eq!(pair.done().len(), 1);
    assert_eq!(pair.client.rpc.counters().retransmissions, 0);
    pair.assert_clean();
}

/// With a window of three, two packets leave when the window has room for two, and the last one
/// leaves as soon as it can.
#[test]
fn packets_wait_for_a_second_one_unless_none_follows() {
    let mut pair = echo_within(3, 8);
    let numbers = |pair: &mut Pair| -> Vec<u32> {
        let headers = sent(pair);
        headers.iter().map(|header| header.pkt.0).collect()
    };
    assert_eq!(numbers(&mut pair), [0, 1, 2]);
    assert_eq!(bring_one(&mut pair).len(), 0, "another packet follows");
    assert_eq!(bring_one(&mut pair).len(), 1);
    assert_eq!(numbers(&mut pair), [2, 3, 4]);
    assert_eq!(bring_one(&mut pair).len(), 1);
    assert_eq!(
        numbers(&mut pair),
        [3, 4],
        "packet 5 could leave, but waits"
    );
    bring_one(&mut pair);
    bring_one(&mut pair);
    assert_eq!(numbers(&mut pair), [5, 6, 7]);
    pair.run();
    assert_eq!(pair.done().len(), 1);
    pair.assert_clean();
    let mut pair = echo_within(3, 6);
    assert_eq!(numbers(&mut pair), [0, 1, 2]);
    (0..2).for_each(|_| drop(bring_one(&mut pair)));
    assert_eq!(numbers(&mut pair), [2, 3, 4]);
    bring_one(&mut pair);
    assert_eq!(numbers(&mut pair), [3, 4, 5], "5 is the last packet");
}

#[test]
fn one_rfr_asks_for_two_packets() {
    let mut pair = echo_within(2, 8);
    let mut asked = Vec::new();
    while pair.done().is_empty() {
        for header in sent(&mut pair) {
            if header.kind == PacketType::Rfr {
                asked.push((header.pkt.0, header.aux));
            }
            bring_one(&mut pair);
            // Each packet of a response comes alone, too.
            while pair.client.inbox.borrow().len() > 1 {
                let last = pair.client.inbox.borrow_mut().pop_back().unwrap();
                pair.server.out.borrow_mut().push_front(last);
            }
            pair.step_client();
            deliver(&pair.server.out, &pair.client.inbox);
        }
    }
    assert_eq!(asked, [(1, 2), (3, 2), (5, 2), (7, 1)]);
    pair.assert_clean();
}

#[test]
fn the_mark_of_a_followed_packet_is_echoed_by_the_answer_to_both() {
    for (packets, kind) in [(2, PacketType::Resp), (3, PacketType::Cr)] {
        let mut pair = echo_within(2, packets);
        sent(&mut pair);
        pair.server.congestion.set(true);
        assert!(bring_one(&mut pair).is_empty());
        pair.server.congestion.set(false);
        let [answer] = bring_one(&mut pair)[..] else {
            panic!("no answer");
        };
        assert_eq!(answer.kind, kind);
        assert!(answer.flags.has(Flags::ECN_ECHO));
    }
}

#[test]
fn a_followed_packet_that_comes_twice_is_answered_at_once() {
    let mut pair = echo_within(2, 6);
    sent(&mut pair);
    let again = pair.client.out.borrow()[0].clone();
    assert!(bring_one(&mut pair).is_empty());
    pair.client.out.borrow_mut().push_front(again);
    let [answer] = bring_one(&mut pair)[..] else {
        panic!("no answer");
    };
    assert_eq!((answer.kind, answer.cumulative().0), (PacketType::Cr, 1));
    pair.run();
    pair.assert_clean();
}

/// Without congestion control, the server answers each packet with a CR of its own, so that the
/// next packet leaves as soon as possible.
#[test]
fn a_session_without_congestion_control_marks_no_packet_as_followed() {
    let mut pair = Pair::new();
    let rpc = &mut pair.client.rpc;
    let len = 6 * DATA_SIZE as usize;
    let (request, response) = (rpc.buf(len).unwrap(), rpc.buf(len).unwrap());
    let session = pair.session;
    rpc.call(session, ECHO, request, response, Tag(1)).unwrap();
    let headers = sent(&mut pair);
    assert_eq!(headers.len(), 6);
    assert!(headers.iter().all(|header| header.flags == Flags::NONE));
    pair.run();
    pair.assert_clean();
}

/// Lets time pass until the echo is complete; returns the losses that the scheme has learned of.
fn losses_until_done(pair: &mut Pair, losses: &AtomicU32) -> u32 {
    pair.pass(Nanos::from_millis(50));
    assert_eq!(pair.done().len(), 1);
    pair.assert_clean();
    losses.load(Ordering::Relaxed)
}

/// The first packet of a pair gets no CR of its own, and the window has no room for a later packet
/// whose answer could show the loss.
#[test]
fn the_loss_of_the_second_packet_of_a_request_counts() {
    let (mut pair, losses) = call_within(2, 6, ECHO);
    sent(&mut pair);
    bring_one(&mut pair);
    pair.client.out.borrow_mut().clear();
    assert_eq!(losses_until_done(&mut pair, &losses), 1);
    assert_eq!(pair.client.rpc.counters().retransmissions, 1);
}

#[test]
fn the_loss_of_the_last_packet_of_a_request_counts() {
    // The answer has two packets, or one.
    for req_type in [ECHO, REJECT] {
        let (mut pair, losses) = call_within(2, 2, req_type);
        sent(&mut pair);
        bring_one(&mut pair);
        pair.client.out.borrow_mut().clear();
        assert_eq!(losses_until_done(&mut pair, &losses), 1);
        let (mut pair, losses) = call_within(2, 2, req_type);
        sent(&mut pair);
        bring_one(&mut pair);
        bring_one(&mut pair);
        pair.client.inbox.borrow_mut().clear();
        assert_eq!(
            losses_until_done(&mut pair, &losses),
            0,
            "only the answer was lost"
        );
    }
}

#[test]
fn the_loss_of_the_second_packet_of_a_response_counts() {
    let (mut pair, losses) = call_within(2, 6, ECHO);
    let [mut asked, mut lost] = [0; 2];
    while pair.done().is_empty() {
        let headers = sent(&mut pair);
        asked += headers
            .iter()
            .filter(|header| header.kind == PacketType::Rfr)
            .count();
        deliver(&pair.client.out, &pair.server.inbox);
        pair.step_server();
        if asked == 1 && lost == 0 && pair.server.out.borrow().len() == 2 {
            pair.server.out.borrow_mut().pop_back();
            lost += 1;
        }
        deliver(&pair.server.out, &pair.client.inbox);
        pair.clock.pass(Nanos::from_micros(10));
    }
    assert_eq!(lost, 1);
    assert_eq!(losses_until_done(&mut pair, &losses), 1);
}

#[test]
fn a_lost_cr_counts_as_no_loss_of_packets() {
    let (mut pair, losses) = call_within(2, 6, ECHO);
    sent(&mut pair);
    bring_one(&mut pair);
    bring_one(&mut pair);
    pair.client.inbox.borrow_mut().clear();
    assert_eq!(losses_until_done(&mut pair, &losses), 0);
    assert_eq!(pair.client.rpc.counters().retransmissions, 1);
}
