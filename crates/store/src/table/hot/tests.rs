//! Keys that are hot, keys that were hot, and keys that sampling at fixed distances would miss.

use super::{HALVED_AT, HOT_KEYS, Hot, MEAN_GAP};
use crate::hash::Seed;
use crate::table::key::Key;

/// Notes gets of a key, and returns its number of samples.
fn get(hot: &mut Hot, name: &str, gets: u64) {
    let seed = Seed::new([1, 2]);
    let key = Key::new(name.as_bytes(), seed.hash(name.as_bytes()));
    (0..gets).for_each(|_| hot.on_get(&key));
}

fn share(hot: &Hot, name: &str) -> f64 {
    let keys = hot.keys();
    let found = keys.iter().find(|(key, _)| *key == name.as_bytes());
    found.map_or(0.0, |(_, samples)| *samples as f64 / hot.samples() as f64)
}

#[test]
fn keys_that_are_read_often_are_found_among_many_others() {
    let mut hot = Hot::new(Seed::new([3, 4]));
    for round in 0..40_000 {
        get(&mut hot, "hot", 20);
        get(&mut hot, "warm", 10);
        for other in 0..70 {
            get(
                &mut hot,
                &format!("cold-{}", (round * 70 + other) % 100_003),
                1,
            );
        }
    }
    let keys = hot.keys();
    assert_eq!(keys.len(), HOT_KEYS);
    assert_eq!((keys[0].0, keys[1].0), (&b"hot"[..], &b"warm"[..]));
    let (first, second) = (share(&hot, "hot"), share(&hot, "warm"));
    assert!((0.19..0.25).contains(&first), "{first}");
    assert!((0.09..0.15).contains(&second), "{second}");
}

/// A client reads keys in turn. Their number is the mean number of gets between two samples.
#[test]
fn a_fixed_order_hides_no_key() {
    let mut hot = Hot::new(Seed::new([5, 6]));
    for _ in 0..20_000 {
        for place in 0..MEAN_GAP {
            get(
                &mut hot,
                if place % 16 == 0 {
                    "every sixteenth"
                } else {
                    "other"
                },
                1,
            );
        }
    }
    let share = share(&hot, "every sixteenth");
    assert!((0.05..0.08).contains(&share), "{share}");
}

#[test]
fn keys_that_were_hot_are_forgotten() {
    let mut hot = Hot::new(Seed::new([7, 8]));
    get(&mut hot, "before", HALVED_AT * MEAN_GAP);
    get(&mut hot, "after", 2 * HALVED_AT * MEAN_GAP);
    let keys = hot.keys();
    assert_eq!(keys[0].0, b"after");
    assert!(share(&hot, "before") < 0.3);
    assert!(hot.samples() < HALVED_AT);
}
