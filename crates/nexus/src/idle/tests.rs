//! When a thread blocks, and all events that end a block.

use std::time::Instant;

use super::*;
use crate::ffi::EventFd;

#[test]
fn a_transport_that_wakes_late_makes_the_thread_spin_longer() {
    let spins = |micros| Idle::Adaptive {
        spin: Duration::from_micros(micros),
    };
    let least = Duration::from_micros(2000);
    assert_eq!(spins(50).at_least(least), spins(2000));
    assert_eq!(spins(5000).at_least(least), spins(5000));
    assert_eq!(Idle::Spin.at_least(least), Idle::Spin);
}

/// The state of an endpoint that has sent no request.
fn at(micros: u64) -> Look {
    Look {
        now: Nanos::from_micros(micros),
        requests: 0,
    }
}

fn sleeper(idle: Idle, fds: &[RawFd]) -> (Sleeper, Arc<Doorbell>) {
    let doorbell = Arc::new(Doorbell::new().unwrap());
    (
        Sleeper::new(idle, Arc::clone(&doorbell), fds).unwrap(),
        doorbell,
    )
}

/// The number of quiet iterations of 1 µs each before the thread blocks.
fn iterations(sleeper: &mut Sleeper) -> Option<u64> {
    (1..100_000).find(|micros| sleeper.on_quiet(|| at(*micros)))
}

#[test]
fn a_thread_blocks_after_its_spin_and_again_after_activity() {
    let (mut sleeper, _) = sleeper(
        Idle::Adaptive {
            spin: Duration::from_micros(500),
        },
        &[],
    );
    let first = iterations(&mut sleeper).unwrap();
    assert!(
        (500..=500 + 2 * u64::from(LOOK_EVERY)).contains(&first),
        "{first}"
    );
    sleeper.on_activity();
    let again = iterations(&mut sleeper).unwrap();
    assert!(again >= 500, "{again}");
}

#[test]
fn a_thread_that_must_spin_never_blocks() {
    let (mut sleeper, _) = sleeper(Idle::Spin, &[]);
    assert_eq!(iterations(&mut sleeper), None);
}

#[test]
fn activity_starts_the_time_anew() {
    let (mut sleeper, _) = sleeper(
        Idle::Adaptive {
            spin: Duration::from_micros(500),
        },
        &[],
    );
    for micros in 1..10_000 {
        assert!(!sleeper.on_quiet(|| at(micros)));
        if micros % 300 == 0 {
            sleeper.on_activity();
        }
    }
}

#[test]
fn a_thread_that_has_sent_a_request_spins_for_the_answer() {
    let spin = Duration::from_micros(500);
    let (mut sleeper, _) = sleeper(Idle::Adaptive { spin }, &[]);
    iterations(&mut sleeper).unwrap();
    // The program calls after the thread has slept for a long time.
    let sent = |micros| Look {
        requests: 1,
        ..at(micros)
    };
    let blocks = (200_000..300_000).find(|micros| sleeper.on_quiet(|| sent(*micros)));
    let spun = blocks.unwrap() - 200_000;
    assert!(
        (500..=500 + 2 * u64::from(LOOK_EVERY)).contains(&spun),
        "{spun}"
    );
}

/// The microseconds for which a thread spins for an answer, if it sends the request after a block.
fn patience(micros: u64, is_rung: bool) -> u64 {
    let spin = Duration::from_micros(micros);
    let (mut sleeper, _) = sleeper(Idle::Adaptive { spin }, &[]);
    sleeper.block(Nanos::from_micros(10));
    if is_rung {
        // Another thread has left a call and has rung the doorbell.
        sleeper.on_bell();
    }
    let sent = |micros| Look {
        requests: 1,
        ..at(micros)
    };
    let blocks = (200_000..300_000).find(|micros| sleeper.on_quiet(|| sent(*micros)));
    blocks.unwrap() - 200_000
}

#[test]
fn a_thread_spins_longer_for_the_first_answer_after_a_block() {
    for (spin, longest) in [(0, 0), (20, 80), (50, 200), (100, 200), (2000, 2000)] {
        for is_rung in [false, true] {
            let spun = patience(spin, is_rung);
            let most = longest + 2 * u64::from(LOOK_EVERY);
            assert!(
                (longest..=most).contains(&spun),
                "{spin}, {is_rung}: {spun}"
            );
        }
    }
}

#[test]
fn a_packet_ends_the_longer_spin() {
    let (mut sleeper, _) = sleeper(Idle::default(), &[]);
    let sent = |requests, micros| Look {
        requests,
        ..at(micros)
    };
    sleeper.block(Nanos::from_micros(10));
    // A second request follows before the first answer.
    let quiet = |sleeper: &mut Sleeper, span: std::ops::Range<u64>, requests| {
        span.into_iter()
            .find(|micros| sleeper.on_quiet(|| sent(requests, *micros)))
    };
    assert_eq!(quiet(&mut sleeper, 1000..1100, 1), None);
    assert_eq!(quiet(&mut sleeper, 1100..1250, 2), None);
    // The answer comes, and the thread has nothing to do.
    sleeper.on_activity();
    let blocks = quiet(&mut sleeper, 2000..9000, 2).unwrap() - 2000;
    assert!((50..50 + 2 * 64).contains(&blocks), "{blocks}");
}

#[test]
fn a_thread_gives_way_once_after_a_block() {
    let (mut sleeper, _) = sleeper(Idle::default(), &[]);
    let gives_way = |sleeper: &Sleeper| sleeper.first != 0;
    let looks = |sleeper: &mut Sleeper| {
        let mut has_looked = false;
        sleeper.on_quiet(|| {
            has_looked = true;
            at(0)
        });
        has_looked
    };
    assert!(!gives_way(&sleeper));
    // A packet has ended the block, and its peer spins: the thread gives way after that burst.
    sleeper.block(Nanos::from_micros(10));
    sleeper.on_activity();
    assert!(gives_way(&sleeper));
    assert!(looks(&mut sleeper) && !gives_way(&sleeper));
    sleeper.on_activity();
    assert!(!looks(&mut sleeper));
    // The program calls after a silence: the thread gives way once it has polled for the answer.
    sleeper.block(Nanos::from_micros(10));
    assert!(!looks(&mut sleeper));
    let sent = Look {
        requests: 1,
        ..at(1)
    };
    assert!(gives_way(&sleeper));
    sleeper.on_quiet(|| sent);
    assert!(!gives_way(&sleeper));
    // Only a timer has ended the block: the thread blocks again.
    sleeper.block(Nanos::from_micros(10));
    let after = |micros| Look {
        requests: 1,
        ..at(micros)
    };
    assert!(!sleeper.on_quiet(|| after(1000)));
    assert!(sleeper.on_quiet(|| after(1000)) && gives_way(&sleeper));
}

#[test]
fn each_kind_of_event_ends_a_block() {
    let event = EventFd::new().unwrap();
    let (mut sleeper, doorbell) = sleeper(Idle::default(), &[event.as_raw_fd()]);
    let span = Nanos::from_millis(5);
    let start = Instant::now();
    sleeper.block(span);
    assert!(start.elapsed() >= Duration::from_millis(5), "time");

    // If the event did not end the block, every block would last its longest time in every round.
    // In some rounds the scheduler may delay the thread.
    let rounds = (0..5).map(|_| {
        let start = Instant::now();
        doorbell.ring();
        sleeper.block(Nanos::MAX);
        assert!(doorbell.take());
        event.signal();
        sleeper.block(Nanos::MAX);
        event.clear();
        start.elapsed()
    });
    let shortest = rounds.min().unwrap();
    assert!(shortest < Duration::from_millis(40), "{shortest:?}");

    let ringer = Arc::clone(&doorbell);
    let thread = std::thread::spawn(move || ringer.ring());
    while !doorbell.take() {
        sleeper.block(Nanos::MAX);
    }
    thread.join().unwrap();
}
