//! When a pace is known, and which of two loads is the less.

use dunlin_core::{Nanos, Rng};

use super::*;

fn load(outstanding: u32, takes_ms: u64, answers: u64) -> Load {
    let mut pace = Pace::new();
    for _ in 0..answers {
        pace.on_answer(Nanos::from_millis(takes_ms), 1);
    }
    Load { outstanding, pace }
}

fn is_less(load: Load, other: Load) -> bool {
    load.is_less(other, &mut Rng::new(1))
}

#[test]
fn a_pace_counts_once_it_is_known() {
    let quick = load(5, 1, ENOUGH);
    assert!(is_less(load(4, 10, ENOUGH - 1), quick));
    assert!(!is_less(load(4, 10, ENOUGH), quick));
    assert!(is_less(load(4, 10, ENOUGH), load(5, 1, 0)));
}

#[test]
fn calls_of_a_slow_server_count_at_most_four_times() {
    for (takes, least) in [(1, 4), (2, 9), (3, 13), (4, 17), (100, 17)] {
        let slow = load(4, takes, ENOUGH);
        let [fewer, enough] = [least - 2, least].map(|busy| load(busy, 1, ENOUGH));
        assert!(!is_less(slow, fewer), "{takes}");
        assert!(is_less(fewer, slow), "{takes}");
        if takes > 1 {
            assert!(is_less(slow, enough), "{takes}");
        }
    }
    assert!(
        is_less(load(0, 100, ENOUGH), load(1, 1, ENOUGH)),
        "an idle one"
    );
}

#[test]
fn idle_servers_get_calls_in_proportion_to_their_speed() {
    let (slow, quick, mut rng) = (load(0, 9, ENOUGH), load(0, 1, ENOUGH), Rng::new(3));
    let slow_got = (0..10_000)
        .filter(|_| slow.is_less(quick, &mut rng))
        .count();
    assert!((900..1100).contains(&slow_got), "{slow_got}");
}

#[test]
fn a_server_that_becomes_quick_is_quick_soon() {
    let (mut load, quick) = (load(2, 10, 1000), load(4, 1, ENOUGH));
    let mut answers = 0;
    while !is_less(load, quick) {
        load.pace.on_answer(Nanos::from_millis(1), 1);
        answers += 1;
    }
    assert!((ENOUGH..3 * ENOUGH).contains(&answers), "{answers}");
}

#[test]
fn a_server_that_took_longer_because_it_had_more_calls_is_not_slow() {
    let loaded = |outstanding: u32, takes_ms: u64| {
        let mut pace = Pace::new();
        for _ in 0..ENOUGH {
            pace.on_answer(Nanos::from_millis(takes_ms), outstanding);
        }
        pace
    };
    assert_eq!(loaded(60, 60).times(loaded(10, 10)), 1);
    assert_eq!(loaded(60, 10).times(loaded(10, 10)), 1);
    assert_eq!(loaded(10, 10).times(loaded(60, 10)), 1);
    assert_eq!(loaded(20, 60).times(loaded(10, 10)), 3);
}
