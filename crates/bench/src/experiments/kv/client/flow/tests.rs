//! When operations begin.

use super::super::What;
use super::*;

fn step(pace: Pace) -> Step {
    Step {
        what: What::Kv,
        pace,
        keys: 1,
        is_timed: true,
        beside: false,
        span: Duration::ZERO,
    }
}

fn flow() -> Flow {
    Flow::new(
        Items {
            count: 1000,
            value: 32,
        },
        Mix::USUAL,
    )
}

#[test]
fn a_batch_begins_once_there_are_free_slots_for_all_of_it() {
    let mut flow = flow();
    let pace = Pace::Closed {
        window: 60,
        batch: 16,
    };
    flow.begin(&step(pace), 0.0).unwrap();
    assert_eq!(flow.due(), 48);
    let slots: Vec<u32> = (0..48).map(|_| flow.take().unwrap()).collect();
    assert_eq!(flow.due(), 0, "12 slots are too few");
    slots[..4].iter().for_each(|slot| flow.on_end(*slot));
    assert_eq!((flow.due(), flow.ended()), (16, 4));
    flow.stop();
    assert_eq!(flow.due(), 0);
    slots[4..].iter().for_each(|slot| flow.on_end(*slot));
    assert!(flow.is_idle());
}

#[test]
fn random_times_have_the_mean_and_the_spread_of_a_poisson_process() {
    let mut draws = Draws::new(Mix::USUAL, 1, 5);
    let gaps: Vec<u64> = (0..100_000).map(|_| gap(1e6, draws.unit())).collect();
    let count = gaps.len() as f64;
    let mean = gaps.iter().map(|it| *it as f64).sum::<f64>() / count;
    assert!((mean / 1e6 - 1.0).abs() < 0.02, "{mean}");
    // An exponential distribution: a share of 1/e is longer than the mean.
    let longer = gaps.iter().filter(|it| **it > 1_000_000).count() as f64 / count;
    assert!(
        (longer - 1.0 / std::f64::consts::E).abs() < 0.01,
        "{longer}"
    );
}

#[test]
fn a_rate_is_a_part_of_the_largest_one() {
    let mut flow = flow();
    // The longer the clock has run, the better it knows the length of a tick.
    std::thread::sleep(Duration::from_millis(20));
    let open = step(Pace::Open { percent: 50 });
    assert!(flow.begin(&open, 0.0).is_err());
    flow.begin(&open, 2e6).unwrap();
    let Timing::Random { mean, .. } = flow.timing else {
        panic!("the timing is {:?}", flow.timing);
    };
    let ns = mean * flow.clock.ns_per_tick();
    assert!((ns / 1_000.0 - 1.0).abs() < 0.05, "{ns} ns between two");
}

#[test]
fn the_duration_counts_from_the_moment_when_an_operation_was_due() {
    let mut flow = flow();
    flow.begin(&step(Pace::Open { percent: 100 }), 1e6).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    let slot = flow.take().unwrap();
    flow.on_end(slot);
    let outcome = flow.outcome(Duration::from_secs(1));
    assert!(outcome.p50 > 15e6, "{outcome:?}");
}
