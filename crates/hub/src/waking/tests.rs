//! The steps of bursts, and of tasks that do not wake the others.

use super::*;

fn at(micros: u64) -> Nanos {
    Nanos::from_micros(micros)
}

#[test]
fn a_call_that_is_alone_is_woken_at_once() {
    let mut waking = Waking::default();
    assert_eq!(waking.next(true, false, at(5)), Step::WakeFirst);
    // The next burst does not depend on the one before.
    assert_eq!(waking.next(true, false, at(6)), Step::WakeFirst);
}

#[test]
fn a_burst_is_woken_once_no_more_packets_come() {
    let mut waking = Waking::default();
    assert_eq!(waking.next(true, true, at(1)), Step::Wait);
    assert_eq!(waking.next(true, true, at(2)), Step::Wait);
    assert_eq!(waking.next(true, false, at(3)), Step::WakeFirst);
    assert_eq!(waking.next(false, true, at(4)), Step::Wait);
}

#[test]
fn an_endless_burst_is_woken_in_time() {
    let mut waking = Waking::default();
    assert_eq!(waking.next(true, true, at(1)), Step::Wait);
    assert_eq!(waking.next(true, true, at(20)), Step::Wait);
    assert_eq!(waking.next(true, true, at(21)), Step::WakeFirst);
    // Ends that come now belong to the next burst, which has its own time.
    assert_eq!(waking.next(true, true, at(22)), Step::Wait);
    assert_eq!(waking.next(true, true, at(41)), Step::Wait);
    assert_eq!(waking.next(true, true, at(42)), Step::WakeFirst);
}

#[test]
fn tasks_that_the_first_one_does_not_wake_are_woken_after_a_while() {
    let mut waking = Waking::default();
    assert_eq!(waking.next(true, false, at(1)), Step::WakeFirst);
    assert_eq!(waking.next(false, true, at(2)), Step::Wait);
    assert_eq!(waking.next(false, false, at(3)), Step::GiveWay);
    assert_eq!(waking.next(false, false, at(4)), Step::Wait);
    assert_eq!(waking.next(false, false, at(21)), Step::WakeAll);
    // Another thread had the list: once more.
    assert_eq!(waking.next(false, false, at(22)), Step::Wait);
    assert_eq!(waking.next(false, false, at(41)), Step::WakeAll);
}
