//! The scoreboard, compared with a model of plain sets; and which packets it considers lost.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const RTT: Nanos = Nanos::from_micros(10);

fn transfer(packets: u32) -> Transfer {
    let mut transfer = Transfer::new();
    transfer.begin(CallIdx(0), packets, 1);
    transfer
}

fn send_all(transfer: &mut Transfer, now: Nanos) -> Vec<u32> {
    std::iter::from_fn(|| {
        let (packet, _) = transfer.next_to_send()?;
        transfer.on_sent(packet, now);
        Some(packet)
    })
    .collect()
}

#[test]
fn a_sender_is_at_most_512_ahead() {
    let mut transfer = transfer(1000);
    assert_eq!(send_all(&mut transfer, RTT).len(), 512);
    for packet in 1..512 {
        transfer.on_acked(packet, RTT, RTT);
        assert_eq!(transfer.next_to_send(), None, "packet 0 is missing");
    }
    transfer.on_acked(0, RTT, RTT);
    assert_eq!(transfer.base(), 512);
    assert_eq!(transfer.next_to_send(), Some((512, false)));
}

#[test]
fn packets_sent_before_an_answered_one_are_lost_after_the_window() {
    let mut transfer = transfer(4);
    send_all(&mut transfer, Nanos(0));
    for packet in [1, 3] {
        let once = Answered {
            sent: Nanos(0),
            once: true,
            late: false,
        };
        assert_eq!(transfer.on_acked(packet, RTT, RTT), Some(once));
    }
    let window = Nanos(2_500);
    assert_eq!(transfer.find_lost(RTT, window), RTT + window);
    assert!(!transfer.has_lost(), "the packets may be late");
    assert_eq!(transfer.find_lost(RTT + window, window), Nanos::MAX);
    assert_eq!(send_all(&mut transfer, RTT + window), [0, 2]);
    assert_eq!(transfer.outstanding(), 2);
}

#[test]
fn packets_sent_after_the_last_answered_one_are_not_lost() {
    let mut transfer = transfer(3);
    send_all(&mut transfer, Nanos(0));
    transfer.on_acked(0, RTT, RTT);
    assert_eq!(transfer.find_lost(RTT.times(100), Nanos(0)), Nanos::MAX);
    assert_eq!((transfer.has_lost(), transfer.tail()), (false, Some(2)));
}

#[test]
fn the_answer_to_a_tail_that_may_overtake_shows_no_losses() {
    for overtakes in [false, true] {
        let mut transfer = transfer(3);
        if overtakes {
            transfer.let_tail_overtake();
        }
        send_all(&mut transfer, Nanos(1));
        transfer.on_acked(2, RTT, RTT);
        transfer.find_lost(RTT.times(100), Nanos(0));
        assert_eq!(transfer.has_lost(), !overtakes);
        // The answer to any other packet does show losses.
        transfer.on_acked(1, RTT.times(101), RTT);
        transfer.find_lost(RTT.times(300), Nanos(0));
        assert!(transfer.has_lost());
    }
}

#[test]
fn a_packet_that_was_late_widens_the_window() {
    let mut transfer = transfer(3);
    send_all(&mut transfer, Nanos(0));
    transfer.on_acked(2, RTT, RTT);
    let window = Nanos(1_000);
    transfer.find_lost(RTT + window, window);
    assert_eq!(send_all(&mut transfer, RTT + window), [0, 1]);
    // This answer comes sooner than the second copy could be answered.
    let late = transfer.on_acked(0, RTT + window.times(2), RTT);
    assert!(late.is_some_and(|answered| !answered.once && answered.late));
    assert_eq!(transfer.reorder, 1);
}

/// All round trips were measured while the queue was full. Then a burst is lost, and the queue is
/// empty.
#[test]
fn probes_that_are_answered_sooner_than_ever_are_believed() {
    let mut transfer = transfer(5);
    send_all(&mut transfer, Nanos(0));
    transfer.on_acked(0, RTT, RTT);
    let mut now = RTT;
    for tail in [4, 3] {
        now += RTT.times(10);
        assert_eq!(transfer.find_lost(now, Nanos(0)), Nanos::MAX);
        assert_eq!(transfer.tail(), Some(tail));
        transfer.on_probe(tail, now);
        // The scoreboard must assume that the first copy was late.
        now += Nanos(RTT.0 / 2);
        assert!(transfer.on_acked(tail, now, RTT).is_some());
    }
    transfer.find_lost(now, Nanos(0));
    assert_eq!(
        send_all(&mut transfer, now),
        [1, 2],
        "both packets leave together"
    );
}

#[test]
fn packets_that_never_left_cannot_have_arrived() {
    let mut transfer = transfer(3);
    assert_eq!(transfer.on_acked(0, RTT, RTT), None);
    transfer.on_sent(0, RTT);
    assert_eq!(transfer.on_acked(1, RTT, RTT), None);
    assert!(transfer.on_acked(0, RTT, RTT).is_some());
    assert_eq!(transfer.on_acked(0, RTT, RTT), None, "twice");
}

/// The next new packet, and the set of acknowledged ones.
#[derive(Default)]
struct Model {
    next: u32,
    acked: BTreeSet<u32>,
}

impl Model {
    fn base(&self) -> u32 {
        (0..).find(|packet| !self.acked.contains(packet)).unwrap()
    }
}

#[test]
fn a_message_waits_in_the_queue_or_in_the_wheel_but_not_in_both() {
    let mut transfer = transfer(4);
    assert!(transfer.begin_wait());
    assert!(
        !transfer.begin_wait(),
        "the message is already in the queue"
    );
    transfer.end_wait();
    transfer.begin_place(Nanos(7));
    assert!(transfer.has_place() && !transfer.begin_wait());
    assert!(
        !transfer.end_place(Nanos(6)),
        "the message does not wait for this time"
    );
    assert!(transfer.has_place());
    assert!(transfer.end_place(Nanos(7)));
    assert!(!transfer.has_place() && transfer.begin_wait());
}

proptest! {
    #[test]
    fn the_scoreboard_agrees_with_plain_sets(
        packets in 1..700_u32,
        steps in prop::collection::vec(any::<(u8, u16)>(), 0..1500),
    ) {
        let mut transfer = transfer(packets);
        let mut model = Model::default();
        let mut now = Nanos(0);
        for (what, which) in steps {
            now += Nanos(u64::from(which));
            match what % 8 {
                0..=3 => {
                    if let Some((packet, again)) = transfer.next_to_send() {
                        prop_assert_eq!(again, packet < model.next);
                        prop_assert!(packet < packets && packet < model.base() + MAX_AHEAD);
                        prop_assert!(!model.acked.contains(&packet));
                        transfer.on_sent(packet, now);
                        model.next = model.next.max(packet + 1);
                    }
                }
                4..=6 => {
                    let packet = transfer.base() + u32::from(which % 300);
                    let fits = packet < model.next && !model.acked.contains(&packet);
                    prop_assert_eq!(transfer.on_acked(packet, now, RTT).is_some(), fits);
                    if fits {
                        model.acked.insert(packet);
                    }
                }
                _ if which % 8 == 0 => {
                    if let Some(tail) = transfer.tail() {
                        transfer.on_probe(tail, now);
                    }
                }
                _ => {
                    transfer.find_lost(now, RTT);
                }
            }
            let acked = u32::try_from(model.acked.len()).unwrap();
            prop_assert_eq!(transfer.base(), model.base());
            prop_assert_eq!(transfer.next(), model.next);
            prop_assert_eq!(transfer.outstanding(), model.next - acked);
            prop_assert_eq!(transfer.is_complete(), acked == packets);
            prop_assert!(transfer.held() >= 1);
        }
    }
}
