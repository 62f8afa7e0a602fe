//! The estimate, compared with its samples.

use super::*;

const FLOOR: Nanos = Nanos::from_millis(1);
const INITIAL: Nanos = Nanos::from_millis(20);

#[test]
fn the_timeout_is_the_initial_one_before_any_sample_and_the_floor_after_fast_samples() {
    let mut rtt = Rtt::default();
    assert_eq!(rtt.timeout(FLOOR, INITIAL), INITIAL);
    for _ in 0..100 {
        rtt.on_sample(Nanos(400));
    }
    assert_eq!(rtt.timeout(FLOOR, INITIAL), FLOOR);
    assert!(rtt.smoothed().unwrap().0.abs_diff(400) < 10);
}

#[test]
fn the_timeout_follows_slow_and_varying_samples() {
    let mut rtt = Rtt::default();
    for i in 0..1000 {
        rtt.on_sample(Nanos::from_millis(if i % 2 == 0 { 10 } else { 20 }));
    }
    let timeout = rtt.timeout(FLOOR, INITIAL);
    assert!(timeout > Nanos::from_millis(20), "{timeout:?}");
    assert!(timeout < Nanos::from_millis(60), "{timeout:?}");
}

#[test]
fn a_slow_handler_raises_the_timeout_and_is_forgotten() {
    let mut rtt = Rtt::default();
    rtt.on_sample(Nanos(1000));
    rtt.on_residence(10_000_000);
    assert!(rtt.timeout(FLOOR, INITIAL) >= Nanos::from_millis(11));
    for _ in 0..100 {
        rtt.on_residence(0);
    }
    assert!(rtt.timeout(FLOOR, INITIAL) < Nanos(FLOOR.0 + 1000));
}

#[test]
fn absurd_samples_do_not_overflow() {
    let mut rtt = Rtt::default();
    for _ in 0..100 {
        rtt.on_sample(Nanos::MAX);
        rtt.on_residence(u64::MAX);
    }
    assert!(rtt.timeout(FLOOR, INITIAL) < Nanos::from_secs(60));
}

/// When the network has become slower, a probe after two round trips comes too early. From then on
/// every packet leaves twice and gives no sample. Only the answers to two copies can raise the
/// estimate.
#[test]
fn an_answer_to_two_copies_raises_the_estimate() {
    let mut rtt = Rtt::default();
    rtt.on_bound(Nanos::from_micros(9));
    assert_eq!(rtt.patience(), None, "no round trip was measured");
    for _ in 0..50 {
        rtt.on_sample(Nanos::from_micros(10));
    }
    let mut probes = 0;
    while rtt.patience().unwrap() < Nanos::from_micros(100) {
        rtt.on_bound(Nanos::from_micros(100));
        probes += 1;
        assert!(probes < 20, "{rtt:?}");
    }
    let before = rtt.smoothed();
    rtt.on_bound(Nanos::from_micros(1));
    assert_eq!(rtt.smoothed(), before, "a bound never lowers the estimate");
}

#[test]
fn a_wait_for_a_thread_counts_for_timeouts_until_a_round_trip_is_measured() {
    let (floor, initial) = (Nanos(1), Nanos::from_micros(7));
    let mut rtt = Rtt::default();
    rtt.on_wait(Nanos::from_millis(4));
    assert_eq!(rtt.timeout(floor, initial), Nanos::from_millis(12));
    assert_eq!(
        (rtt.patience(), rtt.minimum()),
        (Some(Nanos::from_millis(12)), None)
    );
    rtt.on_sample(Nanos::from_micros(10));
    assert_eq!(rtt.smoothed(), Some(Nanos::from_micros(10)));
    assert_eq!(rtt.minimum(), Some(Nanos::from_micros(10)));
    // Later waits raise the timeout, but do not change the smallest round trip.
    rtt.on_wait(Nanos::from_millis(4));
    assert!(rtt.timeout(floor, initial) > Nanos::from_millis(4));
    assert_eq!(rtt.minimum(), Some(Nanos::from_micros(10)));
}
