//! Runs, compared with the same events of each packet alone: both leave the same scoreboard.

use proptest::prelude::*;

use super::*;
use crate::handle::CallIdx;

const RTT: Nanos = Nanos::from_micros(10);

/// An event of a random message.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// This number of packets leave, or fewer.
    Send(u32),
    /// A CR reports this number of packets in order, and perhaps one after them.
    Acked(u32, Option<u32>),
    /// The tail is probed.
    Probe,
    /// Losses are looked for.
    Look,
    /// The last packet may overtake others.
    Overtake,
}

fn event() -> impl Strategy<Value = Event> {
    let ahead = || prop_oneof![4 => Just(None), 1 => (0..40_u32).prop_map(Some)];
    prop_oneof![
        8 => (0..40_u32).prop_map(Event::Send),
        8 => (0..40_u32, ahead()).prop_map(|(count, other)| Event::Acked(count, other)),
        1 => Just(Event::Probe),
        2 => Just(Event::Look),
        1 => Just(Event::Overtake),
    ]
}

/// Sends packets, each alone.
fn send_each(transfer: &mut Transfer, most: u32, now: Nanos) {
    for _ in 0..most {
        if let Some((packet, _)) = transfer.next_to_send() {
            transfer.on_sent(packet, now);
        }
    }
}

/// Sends lost packets, each alone, and then a run.
fn send_run(transfer: &mut Transfer, most: u32, now: Nanos) {
    let mut left = most;
    while left != 0
        && let Some((packet, true)) = transfer.next_to_send()
    {
        transfer.on_sent(packet, now);
        left -= 1;
    }
    let (count, next) = (transfer.unsent().min(left), transfer.next());
    assert_eq!(transfer.on_run_sent(count, now), next);
}

/// Reports packets, each alone; returns when the last new one left.
fn ack_each(transfer: &mut Transfer, end: u32, now: Nanos) -> Option<Nanos> {
    let answers = transfer.base()..end;
    let answers = answers.filter_map(|packet| transfer.on_acked(packet, now, RTT));
    answers.last().map(|answered| answered.sent)
}

proptest! {
    #[test]
    fn a_run_changes_the_scoreboard_as_its_packets_do(
        packets in 1..600_u32,
        events in prop::collection::vec(event(), 1..120),
    ) {
        let (mut one, mut each) = (Transfer::new(), Transfer::new());
        for transfer in [&mut one, &mut each] {
            transfer.begin(CallIdx(0), packets, 1);
        }
        let mut now = RTT;
        for event in events {
            now += Nanos(2_000);
            match event {
                Event::Send(most) => {
                    send_run(&mut one, most, now);
                    send_each(&mut each, most, now);
                }
                Event::Acked(count, other) => {
                    let end = (one.base() + count).min(one.next());
                    match one.on_run_acked(end, now) {
                        Some(sent) => {
                            prop_assert_eq!(ack_each(&mut each, end, now), Some(sent));
                        }
                        None => {
                            for transfer in [&mut one, &mut each] {
                                ack_each(transfer, end, now);
                            }
                        }
                    }
                    if let Some(other) = other {
                        for transfer in [&mut one, &mut each] {
                            transfer.on_acked(end + other, now, RTT);
                        }
                    }
                }
                Event::Probe => for transfer in [&mut one, &mut each] {
                    if let Some(tail) = transfer.tail() {
                        transfer.on_probe(tail, now);
                    }
                },
                Event::Look => for transfer in [&mut one, &mut each] {
                    transfer.find_lost(now, Nanos(1_000));
                },
                Event::Overtake => for transfer in [&mut one, &mut each] {
                    transfer.let_tail_overtake();
                },
            }
            prop_assert_eq!(format!("{one:?}"), format!("{each:?}"));
        }
    }
}

#[test]
fn a_run_is_refused_while_a_packet_in_flight_left_again_or_arrived_early() {
    let mut transfer = Transfer::new();
    transfer.begin(CallIdx(0), 10, 1);
    assert_eq!((transfer.unsent(), transfer.on_run_sent(8, RTT)), (10, 0));
    assert_eq!(transfer.on_run_acked(2, RTT.times(2)), Some(RTT));
    assert_eq!(
        transfer.on_run_acked(2, RTT.times(2)),
        None,
        "no packet is new"
    );
    transfer.on_acked(3, RTT.times(2), RTT);
    assert_eq!(transfer.on_run_acked(3, RTT.times(2)), None);
    transfer.on_acked(2, RTT.times(2), RTT);
    assert_eq!((transfer.base(), transfer.outstanding()), (4, 4));
    assert_eq!(transfer.on_run_acked(6, RTT.times(2)), Some(RTT));
    transfer.on_sent(6, RTT.times(3));
    assert_eq!(transfer.on_run_acked(8, RTT.times(4)), None);
    transfer.on_acked(6, RTT.times(4), RTT);
    assert_eq!(transfer.on_run_acked(8, RTT.times(4)), Some(RTT));
}
