//! The moment alone: times of an iteration, and absence.

use super::*;

#[test]
fn silence_is_not_counted_while_the_endpoint_is_absent() {
    let mut moment = Moment::new(Nanos(1_000));
    let heard = moment.present_now();
    moment.on_absence(Nanos(500));
    moment.advance(Nanos(1_700));
    assert_eq!(moment.present_now().since(heard), Nanos(200));
}

#[test]
fn an_iteration_knows_how_long_the_queue_was_not_looked_at() {
    let mut moment = Moment::new(Nanos(100));
    moment.leave_iteration(Nanos(150));
    assert!(moment.is_between_iterations());
    moment.begin_iteration(Nanos(200));
    moment.set_before(Nanos(120));
    assert_eq!((moment.waited(), moment.is_at_burst()), (Nanos(80), true));
    assert!(!moment.is_between_iterations());
    moment.advance(Nanos(260));
    assert_eq!(moment.burst_time(), Nanos(200));
    assert!(!moment.is_at_burst());
}

/// Takes a burst at `now`, after the one at `before`; `received`: the number of frames so far,
/// including this burst.
fn burst(moment: &mut Moment, [before, now]: [u64; 2], received: u64) -> (bool, Nanos) {
    moment.begin_iteration(Nanos(now));
    moment.set_before(Nanos(before));
    moment.look_for_backlog(received);
    moment.look_for_backlog(received);
    (moment.has_waited(Nanos(now)), moment.waited())
}

#[test]
fn packets_count_as_delayed_until_a_burst_has_found_a_short_queue() {
    let mut moment = Moment::new(Nanos(100));
    let long = LONGEST_TURN.0;
    let began = 1_000;
    let now = began + long;
    assert_eq!(burst(&mut moment, [began, now], 10), (false, Nanos(long)));
    // The thread did not run.
    let (before, now) = (now, now + long + 1);
    let waited = |at: u64| (true, Nanos(at - before));
    assert_eq!(burst(&mut moment, [before, now], 11), waited(now));
    // The transport begins with short bursts; then two are full, and the third is not.
    let frames = [1, 30, 32, 32, 31];
    let mut received = 11;
    for (at, frames) in (now..).zip(frames) {
        received += frames;
        assert_eq!(burst(&mut moment, [at, at + 1], received), waited(at + 1));
    }
    let last = now + 5;
    assert_eq!(
        burst(&mut moment, [last, last + 1], received + 32),
        (false, Nanos(1))
    );
    // The earlier bursts are still known.
    assert!(moment.has_waited(Nanos(now)) && moment.has_waited(Nanos(last)));
    assert!(!moment.has_waited(Nanos(now - 1)));
}

#[test]
fn packets_have_not_waited_after_an_iteration_without_packets() {
    let mut moment = Moment::new(Nanos(100));
    let now = LONGEST_TURN.0 * 2;
    assert!(burst(&mut moment, [100, now], 32).0);
    // An idle iteration has read the clock, 5 ns after that burst.
    assert_eq!(
        burst(&mut moment, [now + 5, now + 9], 64),
        (false, Nanos(4))
    );
}

#[test]
fn packets_have_not_waited_for_a_thread_that_they_have_woken() {
    let mut moment = Moment::new(Nanos(100));
    let woke = LONGEST_TURN.0 * 9;
    moment.wake_up(Nanos(woke));
    let now = woke + LONGEST_TURN.0;
    assert_eq!(burst(&mut moment, [100, now], 1), (false, Nanos(now - 100)));
    assert!(burst(&mut moment, [100, now + 1], 2).0);
}
