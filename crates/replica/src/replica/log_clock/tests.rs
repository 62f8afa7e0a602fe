//! The log's time over several terms, and the times that remove items.

use super::*;

#[test]
fn time_goes_on_from_the_log_and_stands_still_without_a_leader() {
    let mut clock = LogClock::default();
    let at = Nanos::from_millis;
    assert_eq!(clock.read(3, 500, at(1_000)), 500);
    assert_eq!(clock.read(3, 500, at(1_250)), 750);
    // Meanwhile, another replica has led.
    assert_eq!(clock.read(5, 900, at(9_000)), 900);
    assert_eq!(clock.read(5, 900, at(9_001)), 901);
}

#[test]
fn a_time_that_removes_an_item_is_proposed_again_after_a_while() {
    let mut clock = LogClock::default();
    assert!(!clock.removes(99, 100));
    assert!(clock.removes(100, 100));
    assert!(!clock.removes(110, 100));
    assert!(clock.removes(120, 100));
}
