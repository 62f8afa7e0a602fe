//! Steps of DCQCN §3.1, computed by hand.

use super::*;

const LINE: f64 = 1e9;

struct Session {
    dcqcn: Dcqcn,
    now: Nanos,
}

impl Session {
    fn new() -> Self {
        let link = Link {
            line_rate: BytesPerSec(1_000_000_000),
            base_rtt: Nanos::ZERO,
            packet: 1000,
            credits: 32,
            dither: 0,
        };
        Self {
            dcqcn: Dcqcn::new(&link),
            now: Nanos::from_micros(1),
        }
    }

    /// Takes an answer for `packets` packets, `micros` µs after the last one; returns the rate, as
    /// a share of the line rate.
    fn answer(&mut self, micros: u64, congestion: bool, packets: u32) -> f64 {
        self.now += Nanos::from_micros(micros);
        self.dcqcn.on_answer(Sample {
            rtt: None,
            congestion,
            packets,
            now: self.now,
        });
        self.dcqcn.rate / LINE
    }
}

#[track_caller]
fn assert_close(left: f64, right: f64) {
    assert!((left - right).abs() < 1e-12, "{left} is not {right}");
}

#[test]
fn a_mark_lowers_the_rate_by_half_of_alpha_and_raises_alpha() {
    let mut session = Session::new();
    // α is 1 at the beginning, so the mark halves the rate.
    assert_close(session.answer(0, true, 1), 0.5);
    assert_close(session.dcqcn.target / LINE, 1.0);
    assert_close(session.dcqcn.alpha, 1.0);
    // 55 µs later α has fallen once, to 255/256, so a mark lowers the rate by 255/512 of it.
    assert_close(session.answer(55, true, 1), 0.5 * (1.0 - 255.0 / 512.0));
    assert_close(session.dcqcn.target / LINE, 0.5);
    // α = (1 − 1/256) × 255/256 + 1/256.
    assert_close(
        session.dcqcn.alpha,
        255.0 / 256.0 * 255.0 / 256.0 + 1.0 / 256.0,
    );
}

#[test]
fn marks_within_the_interval_count_once() {
    let mut session = Session::new();
    session.answer(0, true, 1);
    assert_close(session.answer(49, true, 1), 0.5);
    assert!(session.answer(1, true, 1) < 0.5);
}

#[test]
fn marks_of_the_rate_before_a_decrease_count_only_for_alpha() {
    let mut session = Session::new();
    session.answer(0, true, 1);
    session.dcqcn.rtt = Nanos::from_micros(400);
    // Without marks α would fall by 1/256 every 55 µs; a mark every 50 µs prevents it.
    for _ in 0..7 {
        assert_close(session.answer(50, true, 1), 0.5);
        assert_close(session.dcqcn.alpha, 1.0);
    }
    assert_close(session.answer(50, true, 1), 0.25);
    // The queue is gone. An answer without a mark permits a step once the timer has expired.
    session.answer(1, false, 1);
    assert_close(session.answer(53, false, 1), 0.25);
    assert_close(session.answer(1, false, 1), 0.375);
    // After a mark within the round trip, the next step needs one more answer without a mark.
    assert_close(session.answer(50, true, 1), 0.375);
    assert_close(session.answer(54, false, 1), 0.375);
    assert_close(session.answer(1, false, 1), 0.4375);
}

#[test]
fn fast_recovery_halves_the_way_to_the_target() {
    let mut session = Session::new();
    session.answer(0, true, 1);
    // An answer without a mark lets the timer step once it has expired.
    assert_close(session.answer(54, false, 1), 0.5);
    assert_close(session.answer(1, false, 1), 0.75);
    for rate in [0.875, 0.9375, 0.96875, 0.984_375] {
        assert_close(session.answer(55, false, 1), rate);
    }
}

#[test]
fn additive_and_then_hyper_increase_follow_fast_recovery() {
    let mut session = Session::new();
    session.answer(0, true, 1);
    let low = session.answer(60, true, 1);
    for _ in 0..6 {
        session.answer(55, false, 1);
    }
    // The first of these six answers only permitted a step; each later one made a step of fast
    // recovery.
    assert_close(session.dcqcn.target / LINE, 0.5);
    assert_close(session.dcqcn.rate / LINE, 0.5 - (0.5 - low) / 32.0);
    // Then each step adds 1/2500 of the line rate to the target.
    session.answer(55, false, 1);
    assert_close(session.dcqcn.target / LINE, 0.5004);
    // After six steps of the byte counter as well (10 MB each), hyper increase adds ten ordinary
    // steps, then twenty.
    for _ in 0..5 {
        session.answer(0, false, 10_000);
    }
    let target = session.dcqcn.target / LINE;
    session.answer(0, false, 10_000);
    assert_close(session.dcqcn.target / LINE, target + 0.004);
}

#[test]
fn a_sender_at_the_least_rate_doubles_it_with_each_answer() {
    let mut session = Session::new();
    let mut rate = 1.0;
    while rate > 1.0 / LEAST_RATE_DIVISOR {
        rate = session.answer(55, true, 1);
    }
    // A packet leaves every 4 ms: the answer to the first permits steps, and the answer to the
    // second makes them.
    session.answer(4096, false, 1);
    let after = session.answer(4096, false, 1);
    assert!((2.0..2.9).contains(&(after / rate)), "{rate} and {after}");
}

#[test]
fn nothing_grows_without_answers() {
    let mut session = Session::new();
    session.answer(0, true, 1);
    session.dcqcn.on_time(Nanos::from_secs(1));
    session.dcqcn.on_time(Nanos::from_secs(2));
    assert_close(session.dcqcn.rate / LINE, 0.5);
    assert!(
        session.dcqcn.alpha < 1e-6,
        "α must fall by itself: {}",
        session.dcqcn.alpha
    );
}

#[test]
fn a_round_trip_alone_changes_no_rate() {
    let mut session = Session::new();
    session.dcqcn.on_answer(Sample {
        rtt: Some(Nanos::from_secs(1)),
        congestion: false,
        packets: 1,
        now: Nanos::from_secs(2),
    });
    assert_eq!(session.dcqcn.rate(), None);
}
