//! Steps of Algorithm 1, computed by hand, and the mistakes of eRPC's Timely.

use super::*;
use crate::congestion::tests::link_with;

const LINE: f64 = 1e9;

fn link(base: Nanos) -> Link {
    link_with(BytesPerSec(1_000_000_000), base, 1000)
}

/// A session whose round trip through the empty network takes 10 µs: T_low is 50 µs, T_high 500 µs,
/// and the gradient counts from 36 µs on.
struct Session {
    timely: Timely,
    now: Nanos,
}

impl Session {
    fn new() -> Self {
        Self {
            timely: Timely::new(&link(Nanos::from_micros(10)), Law::Gradient, true),
            now: Nanos::ZERO,
        }
    }

    /// Takes a sample of `micros` µs, long enough after the last one.
    fn sample(&mut self, micros: u64) -> f64 {
        self.now += Nanos::from_millis(10);
        self.sample_now(micros)
    }

    fn sample_now(&mut self, micros: u64) -> f64 {
        self.timely.on_answer(Sample {
            rtt: Some(Nanos::from_micros(micros)),
            congestion: false,
            packets: 1,
            now: self.now,
        });
        self.timely.rate / LINE
    }
}

#[track_caller]
fn assert_close(left: f64, right: f64) {
    assert!((left - right).abs() < 1e-9, "{left} is not {right}");
}

#[test]
fn thresholds_follow_the_base_round_trip() {
    let of = |micros| Timely::new(&link(Nanos::from_micros(micros)), Law::Gradient, true).t_low;
    assert_eq!(of(0), Nanos::from_micros(50));
    assert_eq!(of(12), Nanos::from_micros(50));
    assert_eq!(of(13), Nanos::from_micros(52));
    let mut session = Session::new();
    session.timely = Timely::new(&link(Nanos::from_micros(100)), Law::Gradient, true);
    assert_eq!(session.timely.t_low, Nanos::from_micros(400));
    session.sample(20);
    assert_eq!(session.timely.t_low, Nanos::from_micros(80));
}

#[test]
fn a_rising_round_trip_lowers_the_rate_by_its_gradient() {
    let mut session = Session::new();
    // The first sample has no gradient.
    assert_close(session.sample(100), 1.0);
    // +1 µs: 0.875 × 1 µs / 10 µs = 0.0875; the factor is 1 − 0.8 × 0.0875 = 0.93.
    assert_close(session.sample(101), 0.93);
    // +2 µs: 0.875 + 0.875 × (2 − 0.875) = 1.859375 µs: 1 − 0.8 × 0.1859375 = 0.85125.
    assert_close(session.sample(103), 0.93 * 0.85125);
    // −10 µs: the smoothed difference is negative: one step of 1/8000.
    assert_close(session.sample(93), 0.93 * 0.85125 + 0.000_125);
}

#[test]
fn a_gradient_counts_from_36_microseconds_on() {
    let mut session = Session::new();
    session.sample(1000);
    let rate = session.sample(35);
    session.timely.difference = 8_000.0;
    let more = session.sample(35);
    assert!(
        more > rate,
        "the smoothed difference is 1 µs, but does not count yet"
    );
    session.timely.difference = 8_000.0;
    // The smoothed difference is 0.125 × 8 + 0.875 × 1 = 1.875 µs, of 10 µs; the factor is 1 − 0.8
    // × 0.1875 = 0.85.
    assert_close(session.sample(36), more * 0.85);
}

#[test]
fn a_gradient_never_lowers_the_rate_by_more_than_beta() {
    let mut session = Session::new();
    session.sample(60);
    assert_close(session.sample(400), 0.2);
}

#[test]
fn above_t_high_the_gradient_does_not_matter() {
    let mut session = Session::new();
    // The factor is 1 − 0.8 × (1 − 500/1000) = 0.6, twice, although the round trip does not rise.
    assert_close(session.sample(1000), 0.6);
    assert_close(session.sample(1000), 0.36);
}

#[test]
fn the_fifth_good_round_trip_makes_larger_steps() {
    let mut session = Session::new();
    let mut rate = session.sample(1000);
    for _ in 0..4 {
        let next = session.sample(40);
        assert_close(next, rate + 0.000_125);
        rate = next;
    }
    // The fifth sample adds five steps of 1/8000 if there is a queue; without a queue it adds a
    // sixteenth.
    let next = session.sample(40);
    assert_close(next, rate + 0.000_625);
    assert_close(session.sample(19), next + next / 16.0);
    // One bad sample restarts the count.
    let rate = session.sample(1000);
    assert_close(session.sample(19), rate + 0.000_125);
}

#[test]
fn one_round_trip_makes_one_step() {
    let mut session = Session::new();
    let rate = session.sample(1000);
    session.now += Nanos::from_micros(999);
    assert_close(session.sample_now(1000), rate);
    session.now += Nanos::from_micros(1);
    assert_close(session.sample_now(1000), rate * 0.6);
}

#[test]
fn the_bypass_does_not_change_a_session_at_line_rate() {
    let mut session = Session::new();
    session.sample(35);
    assert_eq!(session.timely.updated, Nanos::ZERO);
    session.timely.on_bypasses(false);
    session.sample(35);
    assert_ne!(session.timely.updated, Nanos::ZERO);
    assert_eq!(session.timely.rate(), None);
}

/// eRPC's Timely ignores samples below a constant of 2 µs, so a spike on a faster fabric lowers its
/// rate for ever (design §17).
#[test]
fn a_fast_fabric_is_back_at_line_rate_soon_after_a_spike() {
    let rtt = Nanos(470);
    let mut timely = Timely::new(&link(Nanos::ZERO), Law::Gradient, true);
    let mut now = Nanos::from_millis(1);
    let mut sample = |timely: &mut Timely, rtt: Nanos| {
        now += rtt;
        let (congestion, packets) = (false, 1);
        timely.on_answer(Sample {
            rtt: Some(rtt),
            congestion,
            packets,
            now,
        });
    };
    sample(&mut timely, rtt);
    sample(&mut timely, Nanos::from_millis(10));
    assert!(timely.rate < 0.25 * LINE, "{}", timely.rate);
    let mut round_trips = 0;
    while timely.rate().is_some() {
        sample(&mut timely, rtt);
        round_trips += 1;
        assert!(round_trips <= 100, "{}", timely.rate);
    }
    assert!(round_trips > 4, "a spike must have had an effect");
}

/// The same session under Patched Timely.
fn patched() -> Session {
    let mut session = Session::new();
    session.timely = Timely::new(&link(Nanos::from_micros(10)), Law::Patched, true);
    session
}

#[test]
fn the_patch_weighs_a_step_up_against_a_step_down() {
    let mut session = patched();
    // Without a gradient, both steps weigh one half. The round trip is too long by T_low.
    let rate = session.sample(100);
    assert_close(rate, 1.0 - 0.008 * 0.5 + 0.5 * 0.000_125);
    // +1 µs: 0.875 × 1 µs / 10 µs = 0.0875, so the step down weighs 0.675; the error is 1.02.
    let next = session.sample(101);
    let down = 1.0 - 0.008 * 0.675 * 1.02;
    assert_close(next, rate * down + 0.325 * 0.000_125);
    // After a steep fall, only the step up counts; after a steep rise, only the step down. 81 µs
    // are too long by 0.62 of T_low.
    let risen = session.sample(71);
    assert_close(risen, next + 0.000_125);
    session.sample(71);
    let before = session.timely.rate / LINE;
    session.timely.difference = 20_000.0;
    assert_close(session.sample(81), before * (1.0 - 0.008 * 0.62));
}

#[test]
fn the_patch_ignores_the_gradient_outside_of_its_thresholds() {
    let mut session = patched();
    // The factor is 1 − 0.8 × (1 − 500/1000). Below 50 µs the rate grows by 1/8000. Without the
    // patch, the gradient would count from 36 µs on.
    let rate = session.sample(1000);
    assert_close(rate, 0.6);
    session.timely.difference = 8_000.0;
    assert_close(session.sample(49), rate + 0.000_125);
}

/// Two senders share a queue. Timely gives both the same step, so the slower one never catches up.
#[test]
fn the_patch_brings_different_rates_together() {
    let after = |law: Law, rate: f64, samples: u32| {
        let mut session = Session::new();
        session.timely = Timely::new(&link(Nanos::from_micros(10)), law, true);
        session.timely.rate = rate * LINE;
        (0..samples).fold(0.0, |_, _| session.sample(100))
    };
    let [more, less] = [0.5, 0.001].map(|rate| after(Law::Patched, rate, 2000));
    // This is the rate at which δ = β × R: 1/8000 / 0.008.
    assert!((more - 1.0 / 64.0).abs() < 2e-4, "{more}");
    assert!((less - 1.0 / 64.0).abs() < 2e-4, "{less}");
    // Timely adds the same step to both, up to the line rate.
    let [more, less] = [0.4, 0.001].map(|rate| after(Law::Gradient, rate, 100));
    assert_close(more - less, 0.399);
}

#[test]
fn a_timeout_halves_the_rate() {
    let mut session = Session::new();
    session.timely.on_timeout(Nanos::ZERO);
    assert_close(session.timely.rate / LINE, 0.5);
    for _ in 0..100 {
        session.timely.on_timeout(Nanos::ZERO);
    }
    assert_close(session.timely.rate / LINE, 1.0 / 4096.0);
}
