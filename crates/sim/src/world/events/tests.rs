//! Order of the event queue, against a sorted list.

use dunlin_core::Nanos;

use super::EventQueue;
use crate::world::rng::Rng;

#[test]
fn events_come_by_time_and_then_by_insertion() {
    let mut queue = EventQueue::default();
    for (at, name) in [(5, "c"), (1, "a"), (5, "d"), (3, "b"), (5, "e")] {
        queue.push(Nanos(at), name);
    }
    assert_eq!(queue.pop_until(Nanos(0), |_| ()), None);
    assert_eq!(queue.pop_until(Nanos(1), |_| ()), Some((Nanos(1), "a")));
    assert_eq!(queue.pop_until(Nanos(2), |_| ()), None);
    let rest = std::iter::from_fn(|| queue.pop_until(Nanos::MAX, |_| ()));
    assert_eq!(rest.map(|(_, name)| name).collect::<String>(), "bcde");
    assert!(queue.is_empty());
}

#[test]
fn it_agrees_with_a_sorted_list() {
    let mut rng = Rng::new(7);
    let mut queue = EventQueue::default();
    let mut list: Vec<(u64, u64)> = Vec::new();
    let mut now = 0;
    for number in 0..40_000_u64 {
        if rng.below(100) < 55 {
            // Any time from the present moment to the end of time; sometimes one that another event
            // has.
            let at = match rng.below(20) {
                0 => u64::MAX - rng.below(3),
                1..6 if !list.is_empty() => list[rng.index(list.len())].0,
                _ => now + rng.log_between(1, 1 << 40) - 1,
            };
            queue.push(Nanos(at), number);
            list.push((at.max(now), number));
            continue;
        }
        let end = now + rng.log_between(1, 1 << 38) - 1;
        let first = list.iter().min().copied().filter(|(at, _)| *at <= end);
        assert_eq!(
            queue.pop_until(Nanos(end), |_| ()),
            first.map(|(at, it)| (Nanos(at), it))
        );
        list.retain(|entry| Some(*entry) != first);
        now = first.map_or(end, |(at, _)| at);
        assert_eq!(queue.len(), list.len());
    }
}
