//! Order of the event queue.

use dunlin_core::Nanos;

use super::EventQueue;

#[test]
fn events_come_by_time_and_then_by_insertion() {
    let mut queue = EventQueue::default();
    for (at, name) in [(5, "c"), (1, "a"), (5, "d"), (3, "b"), (5, "e")] {
        queue.push(Nanos(at), name);
    }
    assert_eq!(queue.next_at(), Some(Nanos(1)));
    let order: String = std::iter::from_fn(|| queue.pop())
        .map(|(_, name)| name)
        .collect();
    assert_eq!(order, "abcde");
    assert!(queue.is_empty());
}
