//! Compares the bounds with a list of expiries, one for each bucket.

use super::{Due, FIRST_BUCKETS};
use crate::item::Seconds;

/// The bounds of a table that begins with 8 parts, and the state of a random generator.
fn due() -> (Due, u64) {
    (Due::new(8 * FIRST_BUCKETS), 1)
}

fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
    *state >> 33
}

/// Visits buckets until none is due, and removes expired items. Returns the number of visits.
fn walk(due: &mut Due, items: &mut [Option<u32>], now: u32) -> usize {
    let mut visits = 0;
    while let Some(bucket) = due.next(items.len() as u64, Seconds(now)) {
        let item = &mut items[usize::try_from(bucket).unwrap()];
        *item = item.filter(|expiry| *expiry > now);
        due.on_visited(*item);
        visits += 1;
    }
    visits
}

#[test]
fn walks_find_all_expired_items_and_end() {
    let (mut due, mut state) = due();
    let mut items = vec![None; 8 * 16];
    for now in 1..2000 {
        for _ in 0..draw(&mut state) % 4 {
            let at = usize::try_from(draw(&mut state)).unwrap() % items.len();
            let expiry = now + 1 + u32::try_from(draw(&mut state) % 50).unwrap();
            items[at] = Some(expiry);
            due.note(at as u64, expiry);
        }
        // Some walks are interrupted, and the index grows between their steps.
        for _ in 0..draw(&mut state) % 20 {
            if let Some(bucket) = due.next(items.len() as u64, Seconds(now)) {
                due.on_visited(items[usize::try_from(bucket).unwrap()]);
            }
            let old = items.len() - (1 << items.len().ilog2());
            if draw(&mut state).is_multiple_of(16) && items.len() < 1000 {
                let moved = draw(&mut state)
                    .is_multiple_of(2)
                    .then(|| items[old].take());
                items.push(moved.flatten());
            }
        }
        for (bucket, item) in items.iter().enumerate() {
            let is_covered = item.is_none_or(|expiry| due.covers(bucket as u64, expiry));
            assert!(is_covered, "{now}: {bucket} has {item:?}");
        }
        if now.is_multiple_of(7) {
            walk(&mut due, &mut items, now);
            assert!(items.iter().flatten().all(|expiry| *expiry > now), "{now}");
        }
    }
    assert!(items.len() > 900, "the index grew to {}", items.len());
}

#[test]
fn only_parts_whose_bound_is_past_are_walked() {
    let (mut due, _) = due();
    let mut items = vec![None; 8 * 16];
    for (bucket, expiry) in [(3, 10), (3 + 8, 20), (6, 30)] {
        items[bucket] = Some(expiry);
        due.note(bucket as u64, expiry);
    }
    assert_eq!(walk(&mut due, &mut items, 9), 0);
    assert_eq!(walk(&mut due, &mut items, 10), 16);
    assert_eq!(walk(&mut due, &mut items, 19), 0);
    assert_eq!(walk(&mut due, &mut items, 40), 32);
    assert_eq!(walk(&mut due, &mut items, 1000), 0);
    due.note_all();
    assert_eq!(walk(&mut due, &mut items, 1000), 128);
    assert_eq!(walk(&mut due, &mut items, 1001), 0);
}
