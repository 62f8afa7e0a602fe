//! Turns of sessions, and packets that are not queued: a packet asked for twice, and packets beyond
//! a session's credits.

use dunlin_wire::{Flags, ReqNum};

use super::{Asked, Asking};
use crate::handle::{RequestId, RequestIdx, SessionIdx};
use crate::time::Nanos;

fn asking(request: u32, packets: std::ops::Range<u32>) -> Asking {
    let id = RequestId {
        index: RequestIdx(request),
        generation: 0,
        req: ReqNum(request),
    };
    Asking::new(id, packets, Flags::NONE, Nanos(1))
}

/// Sends all packets, each counted as one byte. Returns session, request and number of each packet.
fn drain(asked: &mut Asked) -> Vec<(u32, u32, u32)> {
    let mut sent = Vec::new();
    while let Some((session, id, part)) = asked.first() {
        sent.push((session.0, id.index.0, part.next));
        asked.on_sent(1, false);
    }
    assert!(asked.is_empty());
    sent
}

#[test]
fn sessions_take_turns_however_much_one_asks_for() {
    let mut asked = Asked::with(1);
    assert!(asked.ask(SessionIdx(4), &asking(1, 0..4), 32));
    assert!(asked.ask(SessionIdx(4), &asking(2, 7..9), 32));
    assert!(asked.ask(SessionIdx(2), &asking(3, 5..7), 32));
    let expected = [
        (4, 1, 0),
        (2, 3, 5),
        (4, 1, 1),
        (2, 3, 6),
        (4, 1, 2),
        (4, 1, 3),
        (4, 2, 7),
        (4, 2, 8),
    ];
    assert_eq!(drain(&mut asked), expected);
}

#[test]
fn a_waiting_packet_is_not_queued_twice() {
    let mut asked = Asked::with(1);
    let session = SessionIdx(0);
    assert!(asked.ask(session, &asking(1, 4..6), 32));
    assert!(asked.ask(session, &asking(1, 8..9), 32));
    assert!(asked.ask(session, &asking(1, 3..10), 32));
    // Another request has packets of the same numbers.
    assert!(asked.ask(session, &asking(2, 4..5), 32));
    let mut sent = drain(&mut asked);
    sent.sort_unstable();
    let first: Vec<_> = (3..10).map(|packet| (0, 1, packet)).collect();
    assert_eq!(sent, [first, vec![(0, 2, 4)]].concat());
    // The packet has left, so the client may ask for it again.
    assert!(asked.ask(session, &asking(1, 4..5), 32));
    assert_eq!(drain(&mut asked), [(0, 1, 4)]);
}

#[test]
fn a_session_has_no_more_packets_here_than_credits() {
    let mut asked = Asked::with(1);
    let session = SessionIdx(1);
    assert!(asked.ask(session, &asking(1, 0..3), 4));
    assert!(!asked.ask(session, &asking(1, 2..9), 4));
    assert!(!asked.ask(session, &asking(2, 0..1), 4));
    assert!(
        asked.ask(SessionIdx(0), &asking(3, 0..1), 4),
        "another session has its own credits"
    );
    assert_eq!(drain(&mut asked).len(), 5);
    assert!(asked.ask(session, &asking(1, 2..6), 4));
}

#[test]
fn an_ended_session_and_a_dropped_response_leave_no_packets() {
    let mut asked = Asked::with(1);
    for session in [0, 1] {
        assert!(asked.ask(SessionIdx(session), &asking(session, 0..4), 4));
    }
    asked.forget(SessionIdx(0));
    asked.forget(SessionIdx(9));
    assert_eq!(
        asked.first().map(|(session, ..)| session),
        Some(SessionIdx(1))
    );
    asked.on_gone();
    assert!(asked.is_empty());
    assert!(asked.ask(SessionIdx(0), &asking(0, 0..4), 4));
    assert!(asked.ask(SessionIdx(1), &asking(1, 0..4), 4));
}

#[test]
fn packets_asked_for_in_reverse_order_make_a_bounded_number_of_parts() {
    let mut asked = Asked::with(1);
    let session = SessionIdx(0);
    let taken = (0..4096).rev().filter(|packet| {
        let packet: u32 = *packet;
        asked.ask(session, &asking(1, packet..packet + 1), 4096)
    });
    assert_eq!(taken.count(), super::MOST_PARTS);
    assert!(
        !asked.ask(session, &asking(1, 4000..4096), 4096),
        "there is no room for another part"
    );
    assert_eq!(drain(&mut asked).len(), super::MOST_PARTS);
    assert!(asked.ask(session, &asking(1, 4000..4096), 4096));
}

#[test]
fn an_rfr_that_meets_many_parts_is_cut_off() {
    let mut asked = Asked::with(1);
    let session = SessionIdx(0);
    for packet in (0..40).step_by(2) {
        assert!(asked.ask(session, &asking(1, packet..packet + 1), 4096));
    }
    assert!(!asked.ask(session, &asking(1, 0..40), 4096));
    // Half of the steps met a part, the others filled the gap after it.
    assert_eq!(drain(&mut asked).len(), 20 + super::MOST_STEPS / 2);
}

#[test]
fn a_packet_that_waits_gets_the_flags_of_a_later_rfr() {
    let mut asked = Asked::with(1);
    let session = SessionIdx(0);
    assert!(asked.ask(session, &asking(1, 0..2), 32));
    let again = Asking {
        flags: Flags::ECN_ECHO,
        ..asking(1, 1..2)
    };
    assert!(asked.ask(session, &again, 32));
    let (.., part) = asked.first().expect("two packets wait");
    assert!(part.flags.has(Flags::ECN_ECHO));
    assert_eq!(drain(&mut asked).len(), 2);
}

#[test]
fn a_session_that_asks_packet_by_packet_keeps_its_turn() {
    let mut asked = Asked::with(3);
    let send = |asked: &mut Asked| {
        let (session, ..) = asked.first().expect("a packet waits");
        asked.on_sent(1, false);
        session.0
    };
    assert!(asked.ask(SessionIdx(0), &asking(1, 0..1), 32));
    assert_eq!(send(&mut asked), 0);
    assert!(asked.is_empty());
    assert!(asked.ask(SessionIdx(1), &asking(2, 0..9), 32));
    assert_eq!(send(&mut asked), 1);
    // The first session has two thirds of its turn left.
    assert!(asked.ask(SessionIdx(0), &asking(1, 1..9), 32));
    let order: Vec<u32> = (0..8).map(|_| send(&mut asked)).collect();
    assert_eq!(order, [0, 0, 1, 1, 0, 0, 0, 1]);
}

#[test]
fn a_session_that_ends_leaves_no_turn_to_the_next_one_with_its_index() {
    let mut asked = Asked::with(2);
    assert!(asked.ask(SessionIdx(0), &asking(1, 0..1), 32));
    asked.on_sent(1, false);
    asked.forget(SessionIdx(0));
    assert!(asked.ask(SessionIdx(1), &asking(2, 0..1), 32));
    assert!(asked.ask(SessionIdx(0), &asking(3, 0..1), 32));
    assert_eq!(drain(&mut asked), [(1, 2, 0), (0, 3, 0)]);
}

#[test]
fn the_last_packet_of_a_response_ends_the_turn() {
    let mut asked = Asked::with(9);
    assert!(asked.ask(SessionIdx(0), &asking(1, 0..3), 32));
    assert!(asked.ask(SessionIdx(1), &asking(2, 0..1), 32));
    asked.on_sent(1, false);
    asked.on_sent(1, true);
    assert_eq!(drain(&mut asked), [(1, 2, 0), (0, 1, 2)]);
}
