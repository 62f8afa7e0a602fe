//! Steps of Swift's Algorithm 1, computed by hand, and what is different below one packet.

use super::*;

/// On an empty round trip of 10 µs, at 1 GB/s, with packets of 1000 bytes.
struct Session {
    swift: Swift,
    now: Nanos,
}

impl Session {
    fn new(window: f64) -> Self {
        let mut swift = Swift::new(&Link {
            line_rate: BytesPerSec(1_000_000_000),
            base_rtt: Nanos::from_micros(10),
            packet: 1000,
            credits: 32,
        });
        swift.window = window;
        swift.starts = false;
        Self {
            swift,
            now: Nanos::from_secs(1),
        }
    }

    fn sample(&mut self, nanos: u64) -> f64 {
        self.now += Nanos::from_millis(10);
        self.sample_now(nanos)
    }

    fn sample_now(&mut self, nanos: u64) -> f64 {
        self.swift.on_answer(Sample {
            rtt: Some(Nanos(nanos)),
            congestion: false,
            packets: 1,
            now: self.now,
        });
        self.swift.window
    }
}

#[track_caller]
fn assert_close(left: f64, right: f64) {
    assert!(
        (left - right).abs() < 1e-5 * right.abs(),
        "{left} is not {right}"
    );
}

#[test]
fn small_windows_aim_at_a_larger_delay() {
    let target = |window| Session::new(window).swift.target();
    // 10 + 25 µs from 100 packets on; 100 more up to 0.1 packet.
    assert_close(target(100.0), 35_000.0);
    assert_close(target(400.0), 35_000.0);
    assert_close(target(0.1), 135_000.0);
    assert_close(target(1.0 / 64.0), 135_000.0);
    // α = 100 µs / (√10 − 1/10) = 32.6554 µs; at one packet α × (1 − 1/10).
    assert_close(target(1.0), 35_000.0 + 29_389.89);
    assert_close(target(4.0), 35_000.0 + 13_062.17);
}

#[test]
fn above_the_target_the_window_falls_by_the_excess() {
    let mut session = Session::new(4.0);
    // Twice the target of 48.0622 µs: 1 − 0.8 × 1/2.
    assert_close(session.sample(96_124), 2.4);
    // The window of 2.4 aims at 35 + 32.6554 × (1/√2.4 − 0.1) = 52.8135 µs. No second decrease
    // within a round trip, one after it: 1 − 0.8 × (1 − 52.8134/96.124).
    session.now += Nanos(96_123);
    assert_close(session.sample_now(96_124), 2.4);
    session.now += Nanos(1);
    assert_close(
        session.sample_now(96_124),
        2.4 * (1.0 - 0.8 * (1.0 - 52_813.5 / 96_124.0)),
    );
}

#[test]
fn the_window_doubles_every_round_trip_until_the_first_decrease() {
    let mut session = Session::new(8.0);
    session.swift.starts = true;
    assert_close(session.sample(20_000), 9.0);
    assert_close(session.sample(20_000), 10.0);
    assert_close(session.sample(1_000_000), 5.0);
    assert!(session.sample(20_000) < 5.2);
}

#[test]
fn a_first_window_that_is_lost_leaves_one_packet() {
    let mut session = Session::new(8.0);
    session.swift.on_timeout(session.now);
    assert_eq!(session.swift.window(), Some(1));
}

#[test]
fn one_decrease_takes_half_at_most() {
    let mut session = Session::new(16.0);
    assert_close(session.sample(10_000_000), 8.0);
}

#[test]
fn below_the_target_the_time_of_the_target_adds_a_packet() {
    let mut session = Session::new(4.0);
    // At an empty network 1/4 for one of four packets, less as the round trip of 10 µs is less than
    // the target of 48.0622 µs.
    assert_close(session.sample(10_000), 4.0 + 0.25 * 10.0 / 48.0622);
    // Half way to the target half of 1/4, and 29.031 of 48.0622 µs.
    let mut session = Session::new(4.0);
    assert_close(
        session.sample(10_000 + 19_031),
        4.0 + 0.125 * 29.031 / 48.0622,
    );
}

#[test]
fn a_small_window_takes_small_steps() {
    let mut session = Session::new(0.25);
    // 35 + 32.6554 × (2 − 0.1) = 97.0453 µs. At twice that a quarter of what a large window gives.
    assert_close(session.sample(194_091), 0.25 * (1.0 - 0.25 * 0.8 * 0.5));
    let mut session = Session::new(0.25);
    assert_close(session.sample(10_000), 0.25 * 1.3);
}

#[test]
fn a_small_window_looks_ahead() {
    // The queue is long but falls so fast that it will be empty: 90 − 2 × 60 µs.
    let mut session = Session::new(0.25);
    session.swift.rtt = Nanos::from_micros(160);
    assert_close(session.sample(100_000), 0.25 * 1.3);
    // The same delay after none: it is above the target, and stays so.
    let mut session = Session::new(0.25);
    session.swift.rtt = Nanos::from_micros(100);
    assert!(session.sample(100_000) < 0.25);
    // A large window counts what is.
    let mut session = Session::new(4.0);
    session.swift.rtt = Nanos::from_micros(160);
    assert!(session.sample(100_000) < 4.0);
}

#[test]
fn below_one_packet_the_window_is_a_rate() {
    let mut session = Session::new(1.5);
    session.sample(40_000);
    assert_eq!(session.swift.window(), Some(1));
    let mut session = Session::new(0.5);
    session.swift.set_rate();
    assert_eq!(session.swift.window(), None);
    // Half a packet in 35 + 32.6554 × (√2 − 0.1) = 77.9162 µs.
    let rate = session.swift.rate().unwrap();
    assert_close(rate.as_f64(), 0.5 * 1000.0 / 77.9162e-6);
}

#[test]
fn losses_and_timeouts_halve_the_window_once_a_round_trip() {
    let mut session = Session::new(8.0);
    session.sample(10_000);
    session.swift.window = 8.0;
    session.swift.on_loss(session.now);
    session.swift.on_loss(session.now);
    assert_close(session.swift.window, 4.0);
    session.swift.on_timeout(session.now + Nanos(20_000));
    assert_close(session.swift.window, 2.0);
    for _ in 0..3 {
        session.swift.on_timeout(session.now + Nanos(20_000));
    }
    assert_close(session.swift.window, 2.0);
    session.swift.on_timeout(session.now + Nanos(20_000));
    assert_close(session.swift.window, 1.0 / 64.0);
}
