//! The wheel, compared with a sorted list; and the cost of a look, which must not depend on idle
//! time.

use proptest::prelude::*;

use super::*;
use crate::handle::{EndpointNum, SessionIdx};

const SESSION: Session = Session::new(SessionIdx(3), 1, EndpointNum::chosen(1));

fn entry(packet: u32, at: u64) -> Paced {
    Paced {
        session: SESSION,
        req: ReqNum(packet),
        packet,
        at: Nanos(at),
    }
}

fn wheel(width: u64, slots: u64) -> Wheel {
    Wheel::new(Nanos(width), Nanos(width * slots))
}

#[test]
fn a_packet_that_is_due_now_does_not_wait_for_a_slot() {
    let mut wheel = wheel(1000, 16);
    wheel.insert(entry(0, 1500), Nanos(1500));
    assert_eq!(
        wheel.pop_due(Nanos(1500)).map(|entry| entry.packet),
        Some(0)
    );
    assert_eq!(wheel.pop_due(Nanos(1500)), None);
}

#[test]
fn nothing_leaves_early() {
    let mut wheel = wheel(1000, 16);
    wheel.insert(entry(0, 2001), Nanos(10));
    assert_eq!(wheel.next_due(), Nanos(3000));
    assert_eq!(wheel.pop_due(Nanos(2999)), None);
    assert!(wheel.pop_due(Nanos(3000)).is_some());
    assert_eq!(wheel.next_due(), Nanos::MAX);
}

#[test]
fn a_packet_beyond_the_horizon_waits_there_and_is_inserted_again() {
    let mut wheel = wheel(100, 16);
    wheel.insert(entry(7, 1_000_000), Nanos(0));
    let mut looks = 0;
    loop {
        let due = wheel.next_due();
        assert!(due <= Nanos(1_000_000));
        looks += 1;
        if wheel.pop_due(due).is_some() {
            break;
        }
    }
    // 10 000 slots in steps of fifteen.
    assert!((600..700).contains(&looks), "{looks}");
}

/// An hour has 3.6 × 10⁹ slots here. If the wheel looked at each of them, this test would time out.
#[test]
fn idle_time_costs_nothing() {
    let hour = Nanos::from_secs(3600);
    let mut wheel = wheel(1000, 4096);
    let mut now = Nanos::ZERO;
    for round in 0..1000 {
        wheel.insert(entry(round, now.0 + 5000), now);
        now += hour;
        assert_eq!(wheel.next_due(), Nanos(now.0 - hour.0 + 5000));
        assert_eq!(wheel.pop_due(now).map(|entry| entry.packet), Some(round));
        assert_eq!(wheel.pop_due(now), None);
    }
}

#[test]
fn an_empty_wheel_has_no_slots() {
    let mut wheel = wheel(1000, 4096);
    assert_eq!(wheel.pop_due(Nanos::from_secs(9)), None);
    assert!(wheel.slots.is_empty());
}

#[test]
fn entries_are_used_again() {
    let mut wheel = wheel(10, 64);
    for round in 0..10_000_u32 {
        let now = Nanos(u64::from(round) * 7);
        wheel.insert(entry(round, now.0 + 300), now);
        while wheel.pop_due(now).is_some() {}
    }
    assert!(wheel.nodes.len() < 64, "{}", wheel.nodes.len());
}

/// Inserts a packet some time ahead, or lets time pass before a look at the wheel.
#[derive(Clone, Copy, Debug)]
enum Step {
    Insert(u64),
    Pass(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0..3_000_u64).prop_map(Step::Insert),
        1 => (0..200_000_u64).prop_map(Step::Insert),
        2 => (0..2_000_u64).prop_map(Step::Pass),
        1 => (0..500_000_u64).prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 0..300)
}

proptest! {
    /// Each look is complete: every packet that was due a slot ago has left, no packet has left
    /// early, packets with equal times keep their order, and `next_due` is never too late.
    #[test]
    fn the_wheel_behaves_like_a_sorted_list(
        width in prop::sample::select(vec![1_u64, 7, 100, 1000]),
        slots in prop::sample::select(vec![2_u64, 16, 64, 100, 4096]),
        start in 0..10_000_u64,
        steps in steps(),
    ) {
        let mut wheel = wheel(width, slots);
        let mut model: Vec<Paced> = Vec::new();
        let mut now = start;
        for (number, step) in (0_u32..).zip(steps) {
            match step {
                Step::Insert(ahead) => {
                    let new = entry(number, now + ahead);
                    wheel.insert(new, Nanos(now));
                    model.push(new);
                }
                Step::Pass(time) => {
                    now += time;
                    while let Some(out) = wheel.pop_due(Nanos(now)) {
                        prop_assert!(out.at.0 <= now, "the packet leaves early");
                        let place = model.iter().position(|entry| *entry == out);
                        prop_assert!(place.is_some(), "the packet had left, or never waited");
                        model.remove(place.unwrap());
                    }
                    let late = model.iter().find(|entry| entry.at.0 + width <= now);
                    prop_assert!(late.is_none(), "{late:?} is late at {now}");
                }
            }
            let first = model.iter().map(|entry| entry.at.0).min();
            match first {
                None => prop_assert_eq!(wheel.next_due(), Nanos::MAX),
                Some(first) => prop_assert!(wheel.next_due().0 < first.max(now) + width),
            }
        }
    }

    /// Packets of a session do not overtake each other: packets with equal times leave in the order
    /// in which they were inserted.
    #[test]
    fn equal_times_keep_their_order(ahead in 0..100_000_u64, count in 1..50_u32) {
        let mut wheel = wheel(500, 64);
        for packet in 0..count {
            wheel.insert(entry(packet, ahead), Nanos(0));
        }
        for packet in 0..count {
            let out = wheel.pop_due(Nanos(ahead + 500)).map(|entry| entry.packet);
            prop_assert_eq!(out, Some(packet));
        }
    }
}
