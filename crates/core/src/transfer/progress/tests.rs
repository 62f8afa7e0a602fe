//! A message stands if no packet has arrived for long enough while some were in flight.

use super::*;

#[test]
fn a_message_stands_still_since_the_look_that_saw_its_last_arrival() {
    let mut progress = Progress::default();
    assert!(!progress.stands(0, Nanos(900), Nanos(0)), "no look yet");
    progress.look(5, 2, Nanos(100));
    progress.look(5, 2, Nanos(150));
    assert!(progress.stands(5, Nanos(200), Nanos(100)));
    assert!(!progress.stands(5, Nanos(199), Nanos(100)));
    assert!(!progress.stands(6, Nanos(200), Nanos(100)));
    progress.look(6, 1, Nanos(200));
    assert!(!progress.stands(6, Nanos(250), Nanos(100)));
}

#[test]
fn a_message_without_packets_in_flight_waits_for_this_side() {
    let mut progress = Progress::default();
    progress.look(5, 2, Nanos(100));
    progress.look(5, 0, Nanos(190));
    assert!(!progress.stands(5, Nanos(200), Nanos(100)));
    assert!(progress.stands(5, Nanos(290), Nanos(100)));
}
