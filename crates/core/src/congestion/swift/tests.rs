//! Steps of the window, computed by hand, above one packet and below.

use super::*;

/// A session with an empty round trip of 10 µs, at 1 GB/s, with packets of 1000 bytes.
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
            dither: 0,
        });
        swift.window = window;
        swift.rtt = Nanos::from_micros(20);
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

/// The target delay, in µs, of a window whose last round trip took `micros`.
fn target(window: f64, micros: u64) -> f64 {
    let mut session = Session::new(window);
    session.swift.rtt = Nanos::from_micros(micros);
    session.swift.target() / 1000.0
}

#[test]
fn a_session_with_a_smaller_share_aims_at_a_longer_queue() {
    // A packet takes 1 µs. The link carries 16 packets in 16 µs, so there is one sender, which aims
    // at a queue of 3.2 packets.
    assert_close(target(16.0, 16), 10.0 + 3.2);
    // The session is one of 16 senders: 16^(3/4) = 8.
    assert_close(target(1.0, 16), 10.0 + 3.2 * 8.0);
    assert_close(target(2.0, 32), 10.0 + 3.2 * 8.0);
    // It is one of 38 × 16 senders: 38^(3/4) = 15.3051, and 16^(1/4) = 2.
    assert_close(target(1.0, 608), 10.0 + 3.2 * 15.305_154 * 2.0);
    // Below one packet, the target is longer by 45 × (1/√0.25 − 1).
    assert_close(target(0.25, 16), 10.0 + 3.2 * 8.0 + 45.0);
}

#[test]
fn an_unconfigured_round_trip_may_take_25_microseconds_more() {
    let session = |base_rtt| {
        let mut swift = Swift::new(&Link {
            line_rate: BytesPerSec(1_000_000_000),
            base_rtt,
            packet: 1000,
            credits: 32,
            dither: 0,
        });
        (swift.least, swift.rtt) = (Nanos::from_micros(10), Nanos::from_micros(16));
        swift.target()
    };
    let told = session(Nanos::from_micros(10));
    assert_close(session(Nanos::ZERO), told + 25_000.0);
}

#[test]
fn the_window_moves_four_tenths_of_the_way_in_a_round_trip() {
    // 8 packets in 32 µs are a quarter of the link, so there are four senders. The target is 10 +
    // 3.2 × 4^(3/4) = 19.0510 µs, and the gap 0.595345 − 1. One packet of eight was answered.
    let mut session = Session::new(8.0);
    assert_close(session.sample(32_000), 8.0 - 0.4 * 0.404_656);
    // 4 packets in 16 µs are a quarter of the link again: 19.0510 / 16 − 1.
    let mut session = Session::new(4.0);
    assert_close(session.sample(16_000), 4.0 + 0.4 * 0.190_686);
    // At half of `EAGER_FROM`, the window takes half of the step. A gap counts as at most one half.
    let mut session = Session::new(2.0);
    let step = 0.4 * (target(2.0, 16) / 16.0 - 1.0);
    assert_close(session.sample(16_000), 2.0 + step / 2.0);
    let mut session = Session::new(16.0);
    assert_close(session.sample(10_000_000), 16.0 - 0.4 * 0.5);
}

/// An answer without a round trip: one of several packets that an RFR has asked for.
fn answer_of(packets: u32) -> Sample {
    Sample {
        rtt: None,
        congestion: false,
        packets,
        now: Nanos::from_secs(1),
    }
}

#[test]
fn packets_without_a_round_trip_count_with_the_next_sample() {
    let step = |before: u32| {
        let mut session = Session::new(8.0);
        session.swift.on_answer(answer_of(before));
        8.0 - session.sample(32_000)
    };
    assert_close(step(1), 2.0 * step(0));
    assert_close(step(3), 4.0 * step(0));
    assert_close(step(100), 8.0 * step(0));
    // At the start, each of these packets adds one.
    let mut session = Session::new(4.0);
    session.swift.starts = true;
    session.swift.on_answer(answer_of(3));
    assert_close(session.sample(10_000), 8.0);
    assert_close(session.sample(10_000), 9.0);
}

#[test]
fn an_empty_network_is_filled_faster() {
    // 16 packets in 10.1 µs fill the link, so there is one sender: the target is 13.2 µs, and the
    // queue 0.1 of 3.2.
    let mut session = Session::new(16.0);
    let gap = 13.2 / 10.1 - 1.0;
    assert_close(session.sample(10_100), 16.0 + 0.4 * gap);
    let mut session = Session::new(16.0);
    session.swift.least = Nanos::from_micros(100);
    // The queue is 0.7 of 3.2 µs, and 0.4 × (103.2 / 100.7 − 1) is less than a tenth.
    let next = session.sample(100_700);
    assert_close(next, 16.0 + 0.1);
}

#[test]
fn the_window_doubles_every_round_trip_until_a_queue_is_seen() {
    let mut session = Session::new(8.0);
    session.swift.starts = true;
    assert_close(session.sample(10_500), 9.0);
    assert_close(session.sample(10_500), 10.0);
    // The first sign of a queue ends the start. It does not change the window.
    assert_close(session.sample(100_000), 10.0);
    assert!(session.sample(10_500) < 10.5);
}

#[test]
fn a_first_window_that_is_lost_leaves_one_packet() {
    let mut session = Session::new(8.0);
    session.swift.rtt = Nanos::ZERO;
    session.swift.on_timeout(session.now);
    assert_eq!(session.swift.window(), Some(1));
}

#[test]
fn a_window_between_two_numbers_is_each_of_them_in_turn() {
    let mut session = Session::new(2.25);
    let mut packets = 0;
    for _ in 0..1000 {
        session.sample(16_000);
        session.swift.window = 2.25;
        packets += session.swift.window().unwrap();
    }
    assert!((2245..=2255).contains(&packets), "{packets}");
}

#[test]
fn a_small_window_takes_small_steps() {
    // At its target the window stays; above, it falls by 0.03 / √0.25 of the gap with each answer.
    let mut session = Session::new(0.25);
    session.swift.rtt = Nanos::from_micros(160);
    let aim = target(0.25, 160);
    let delay = 160.0;
    assert_close(
        session.sample(160_000),
        0.25 * (1.0 + 0.06 * (aim / delay - 1.0)),
    );
    // Far above the target, the decrease is as in the paper: 0.8 × the excess, but at most 0.3.
    let mut session = Session::new(0.25);
    assert_close(session.sample(100_000_000), 0.25 * 0.7);
}

#[test]
fn a_small_window_follows_the_expected_delay() {
    // The queue is long but falls so fast that it will be empty.
    let mut session = Session::new(0.25);
    session.swift.rtt = Nanos::from_micros(260);
    assert!(session.sample(200_000) > 0.25);
    // The delay is the same as the last time: it is above the target, and stays there.
    let mut session = Session::new(0.25);
    session.swift.rtt = Nanos::from_micros(200);
    assert!(session.sample(200_000) < 0.25);
    // A large window uses the present delay.
    let mut session = Session::new(4.0);
    session.swift.rtt = Nanos::from_micros(260);
    assert!(session.sample(200_000) < 4.0);
}

#[test]
fn below_one_packet_the_window_is_a_rate() {
    let mut session = Session::new(1.5);
    session.sample(40_000);
    assert!(session.swift.window().is_some_and(|window| window >= 1));
    let mut session = Session::new(0.25);
    session.swift.rtt = Nanos::from_micros(16);
    session.swift.set_rate();
    assert_eq!(session.swift.window(), Some(0));
    // The rate is a quarter of a packet in 80.6 µs.
    let rate = session.swift.rate().unwrap();
    assert_close(rate.as_f64(), 0.25 * 1000.0 / 80.6e-6);
}

#[test]
fn a_loss_without_a_queue_costs_little() {
    let mut session = Session::new(8.0);
    session.swift.rtt = Nanos::from_micros(10);
    session.swift.on_loss(session.now);
    assert_close(session.swift.window, 8.0 * 0.97);
}

#[test]
fn losses_and_timeouts_narrow_the_window_once_a_round_trip() {
    let mut session = Session::new(8.0);
    session.sample(20_000);
    // The queue is longer than the target.
    session.swift.window = 8.0;
    session.swift.rtt = Nanos::from_micros(40);
    session.swift.on_loss(session.now);
    session.swift.on_loss(session.now);
    assert_close(session.swift.window, 8.0 * 0.7);
    session.swift.on_timeout(session.now + Nanos(40_000));
    assert_close(session.swift.window, 8.0 * 0.7 * 0.7);
    for _ in 0..3 {
        session.swift.on_timeout(session.now + Nanos(40_000));
    }
    assert_close(session.swift.window, 8.0 * 0.7 * 0.7);
    session.swift.on_timeout(session.now + Nanos(40_000));
    assert_close(session.swift.window, 1.0 / 64.0);
}

#[test]
fn silence_before_packets_that_have_waited_costs_nothing() {
    let mut session = Session::new(8.0);
    for _ in 0..7 {
        session.now += Nanos::from_millis(10);
        session.swift.on_timeout(session.now);
    }
    assert_close(session.swift.window, LEAST_WINDOW);
    session.swift.on_wait(1);
    assert_close(session.swift.window, 8.0);
    // An answer that has not waited makes the cost of silence final.
    session.swift.on_timeout(session.now);
    session.swift.on_answer(answer_of(1));
    session.swift.on_wait(1);
    assert_close(session.swift.window, 8.0 * (1.0 - MOST_CUT));
    // This loss is real, because later packets have shown it.
    session.now += Nanos::from_millis(10);
    session.swift.on_loss(session.now);
    let window = session.swift.window;
    session.swift.on_wait(1);
    assert_close(session.swift.window, window);
}

#[test]
fn windows_below_one_packet_grow_with_packets_that_have_waited() {
    let mut session = Session::new(LEAST_WINDOW);
    for _ in 0..120 {
        session.swift.on_wait(1);
    }
    assert!(
        (0.9..1.1).contains(&session.swift.window),
        "{}",
        session.swift.window
    );
    let window = session.swift.window.max(1.0);
    session.swift.window = window;
    session.swift.on_wait(1);
    assert_close(session.swift.window, window);
    // The packet in flight is probed. The probe counts as a loss until the thread runs again.
    session.swift.window = 0.5;
    session.swift.on_loss(session.now);
    assert!(session.swift.window < 0.5);
    session.swift.on_wait(1);
    assert!(session.swift.window > 0.5);
}

#[test]
fn a_session_starts_while_all_of_its_packets_wait() {
    let mut session = Session::new(1.0);
    session.swift.starts = true;
    for packets in [1, 2, 4] {
        session.swift.on_wait(packets);
        session.swift.on_answer(Sample {
            rtt: None,
            ..answer_of(packets)
        });
    }
    assert_close(session.swift.window, 8.0);
    session.swift.on_wait(100);
    assert_close(session.swift.window, 32.0);
}
