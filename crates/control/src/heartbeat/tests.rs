//! The detector by table, against peers that answer or stop answering, and with clocks that jump.

use proptest::prelude::*;

use super::*;

const CONFIG: HeartbeatConfig = HeartbeatConfig {
    timeout: Nanos::from_secs(1),
    beats: 10,
};

const SECRET: Secret = Secret([3, 5]);

/// Runs a detector, from `start` on, against a peer that acknowledges each heartbeat after `delay`
/// while `answers` returns true. Returns the time at which it declared the peer failed, if that was
/// before `end`.
fn run(
    detector: &mut Detector,
    start: Nanos,
    end: Nanos,
    delay: Nanos,
    answers: impl Fn(Nanos) -> bool,
) -> Option<Nanos> {
    let mut on_the_way: Vec<(Nanos, u64)> = Vec::new();
    let mut now = start;
    while now < end {
        let (due, rest): (Vec<_>, Vec<_>) = on_the_way.into_iter().partition(|(at, _)| *at <= now);
        on_the_way = rest;
        for (_, counter) in due {
            detector.on_ack(counter).unwrap();
        }
        match detector.poll(now) {
            Verdict::Failed => return Some(now),
            Verdict::Send(counter) if answers(now) => on_the_way.push((now + delay, counter)),
            Verdict::Send(_) | Verdict::Quiet => {}
        }
        let next = on_the_way
            .iter()
            .map(|(at, _)| *at)
            .min()
            .unwrap_or(Nanos::MAX);
        now = detector.next_wakeup().min(next).max(now + Nanos(1));
    }
    None
}

#[test]
fn a_peer_that_answers_is_never_declared_failed() {
    let mut detector = Detector::new(&CONFIG, SECRET, Nanos(7));
    let delay = Nanos::from_millis(150);
    assert_eq!(
        run(
            &mut detector,
            Nanos(7),
            Nanos::from_secs(600),
            delay,
            |_| true
        ),
        None
    );
}

#[test]
fn a_peer_that_stops_answering_fails_within_the_timeout() {
    for stop_ms in [0, 1, 99, 100, 101, 5_000, 5_117] {
        let stop = Nanos::from_millis(stop_ms);
        let mut detector = Detector::new(&CONFIG, SECRET, Nanos::ZERO);
        let end = Nanos::from_secs(60);
        let failed = run(
            &mut detector,
            Nanos::ZERO,
            end,
            Nanos::from_micros(50),
            |t| t < stop,
        );
        let took = failed.expect("it must be found").since(stop);
        assert!(took <= CONFIG.timeout, "{took:?} after {stop:?}");
    }
}

#[test]
fn heartbeats_come_once_per_interval() {
    let mut detector = Detector::new(&CONFIG, SECRET, Nanos::ZERO);
    assert_eq!(detector.poll(Nanos::from_millis(99)), Verdict::Quiet);
    assert_eq!(detector.next_wakeup(), Nanos::from_millis(100));
    assert_eq!(
        detector.poll(Nanos::from_millis(100)),
        Verdict::Send(SECRET.counter(1))
    );
    assert_eq!(detector.poll(Nanos::from_millis(100)), Verdict::Quiet);
    assert_eq!(
        detector.poll(Nanos::from_millis(200)),
        Verdict::Send(SECRET.counter(2))
    );
}

#[test]
fn a_heartbeat_proves_only_that_the_peer_lived_at_the_last_poll_before_it() {
    let mut detector = Detector::new(&CONFIG, SECRET, Nanos::ZERO);
    assert_eq!(detector.beat(Nanos::from_millis(99)), None);
    let first = SECRET.counter(1);
    assert_eq!(detector.beat(Nanos::from_millis(100)), Some(first));
    assert_eq!(detector.poll(Nanos::from_millis(150)), Verdict::Quiet);
    let second = SECRET.counter(2);
    assert_eq!(detector.beat(Nanos::from_millis(240)), Some(second));
    assert_eq!(detector.on_ack(second), Ok(()));
    // The heartbeat counts as sent at 150 ms, the time of the last poll.
    let mut failed = None;
    for millis in 241..2_000 {
        let now = Nanos::from_millis(millis);
        if detector.poll(now) == Verdict::Failed && failed.is_none() {
            failed = Some(millis);
        }
    }
    assert_eq!(failed, Some(850));
}

#[test]
fn wrong_acknowledgements_are_errors() {
    let mut detector = Detector::new(&CONFIG, SECRET, Nanos::ZERO);
    let [first, second, third] = [1, 2, 3].map(|n| SECRET.counter(n));
    assert_eq!(detector.on_ack(first), Err(WrongAck));
    assert_eq!(detector.poll(Nanos::from_millis(200)), Verdict::Send(first));
    assert_eq!(
        detector.poll(Nanos::from_millis(300)),
        Verdict::Send(second)
    );
    assert_eq!(detector.on_ack(third), Err(WrongAck));
    assert_eq!(detector.on_ack(second), Ok(()));
    assert_eq!(detector.on_ack(second), Err(WrongAck));
    assert_eq!(
        detector.on_ack(first),
        Err(WrongAck),
        "the acknowledgement is out of order"
    );
}

/// The peer counts up from 0 or from the first counter, or repeats a step that it has seen.
#[test]
fn a_peer_that_guesses_counters_is_wrong() {
    let mut detector = Detector::new(&CONFIG, SECRET, Nanos::ZERO);
    let mut seen = Vec::new();
    for beat in 1..=6 {
        let Verdict::Send(counter) = detector.poll(Nanos::from_millis(100 * beat)) else {
            panic!("no heartbeat")
        };
        let mut guesses = vec![0, beat, beat + 1];
        if let [.., before, last] = seen[..] {
            let step = u64::wrapping_sub(last, before);
            guesses.extend([last.wrapping_add(1), last.wrapping_add(step)]);
        }
        for guess in guesses {
            assert_eq!(detector.clone().on_ack(guess), Err(WrongAck));
        }
        seen.push(counter);
    }
}

#[test]
fn after_a_stop_the_process_gives_its_peer_a_full_round() {
    // The last acknowledgement is as old as allowed when this process stops.
    let mut detector = Detector::new(&CONFIG, SECRET, Nanos::ZERO);
    let failed = run(
        &mut detector,
        Nanos::ZERO,
        Nanos::from_millis(699),
        Nanos(1),
        |_| false,
    );
    assert_eq!(failed, None);
    let back = Nanos::from_secs(60);
    let verdict = detector.poll(back);
    assert!(matches!(verdict, Verdict::Send(_)), "{verdict:?}");
    assert_eq!(
        detector.poll(back + CONFIG.interval()),
        Verdict::Send(SECRET.counter(8))
    );
    // An answer to the first heartbeat that this process sends afterwards is proof enough.
    let Verdict::Send(counter) = verdict else {
        unreachable!()
    };
    detector.on_ack(counter).unwrap();
    let end = back + Nanos::from_secs(10);
    let start = back + CONFIG.interval();
    let answered = run(&mut detector, start, end, Nanos::from_millis(1), |_| true);
    assert_eq!(answered, None);
}

#[test]
fn after_a_stop_the_process_still_finds_a_dead_peer_soon() {
    let mut detector = Detector::new(&CONFIG, SECRET, Nanos::ZERO);
    let back = Nanos::from_secs(60);
    let failed = run(&mut detector, back, Nanos::from_secs(90), Nanos(1), |_| {
        false
    });
    assert!(failed.expect("it must be found").since(back) <= CONFIG.timeout);
}

#[test]
fn a_process_that_is_always_late_still_finds_a_dead_peer() {
    let mut detector = Detector::new(&CONFIG, SECRET, Nanos::ZERO);
    let mut polls = 0;
    let mut now = Nanos::ZERO;
    loop {
        now += Nanos::from_secs(3);
        polls += 1;
        if detector.poll(now) == Verdict::Failed {
            break;
        }
        assert!(polls < 10, "the detector never finds the dead peer");
    }
    assert!(polls >= 3, "the peer had no full round for an answer");
}

#[test]
fn a_time_that_goes_back_changes_nothing() {
    let mut detector = Detector::new(&CONFIG, SECRET, Nanos::from_secs(5));
    assert_eq!(detector.poll(Nanos::from_secs(1)), Verdict::Quiet);
    assert_eq!(
        detector.poll(Nanos::from_millis(5_200)),
        Verdict::Send(SECRET.counter(1))
    );
}

#[test]
fn extreme_settings_still_give_a_working_detector() {
    for (timeout, beats) in [(0, 0), (1, 1), (1_000, 2), (u64::MAX, 3), (10, u32::MAX)] {
        let config = HeartbeatConfig {
            timeout: Nanos(timeout),
            beats,
        };
        let mut detector = Detector::new(&config, SECRET, Nanos::ZERO);
        let at = detector.next_wakeup();
        assert!(at > Nanos::ZERO);
        assert_eq!(detector.poll(at), Verdict::Send(SECRET.counter(1)));
    }
}

proptest! {
    /// Whatever the times of the polls: no failure while every heartbeat is answered before the
    /// next poll, and a failure within a bounded number of polls once answers end.
    #[test]
    fn verdicts_follow_the_answers(steps in prop::collection::vec(0_u64..1_500, 1..80)) {
        let mut detector = Detector::new(&CONFIG, SECRET, Nanos::ZERO);
        let mut now = Nanos::ZERO;
        for millis in &steps {
            now += Nanos::from_millis(*millis);
            let verdict = detector.poll(now);
            prop_assert_ne!(verdict, Verdict::Failed);
            if let Verdict::Send(counter) = verdict {
                prop_assert_eq!(detector.on_ack(counter), Ok(()));
            }
        }
        let mut unanswered = Nanos::ZERO;
        for _ in 0..40 {
            let step = detector.next_wakeup().since(now).max(Nanos(1));
            now += step;
            unanswered += step;
            if detector.poll(now) == Verdict::Failed {
                prop_assert!(unanswered <= CONFIG.timeout);
                return Ok(());
            }
        }
        prop_assert!(false, "no failure after {:?}", unanswered);
    }
}
