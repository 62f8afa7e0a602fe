//! The order of planned events.

use super::*;

#[test]
fn events_come_in_the_order_of_their_times_and_then_of_their_addition() {
    let mut schedule = Schedule::default();
    for (at, event) in [(5, 'c'), (3, 'a'), (5, 'd'), (3, 'b'), (9, 'e')] {
        schedule.add(Nanos(at), event);
    }
    assert_eq!(schedule.next_at(), Some(Nanos(3)));
    assert_eq!(schedule.take_due(Nanos(2)), None);
    let due: String = std::iter::from_fn(|| schedule.take_due(Nanos(5))).collect();
    assert_eq!(due, "abcd");
    assert_eq!(schedule.next_at(), Some(Nanos(9)));
}
