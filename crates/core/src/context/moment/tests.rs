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
    assert_eq!((moment.away(), moment.is_at_burst()), (Nanos(80), true));
    assert!(!moment.is_between_iterations());
    moment.advance(Nanos(260));
    assert_eq!(moment.burst_time(), Nanos(200));
    assert!(!moment.is_at_burst());
}
