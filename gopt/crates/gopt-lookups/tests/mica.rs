//! The MICA table, compared with a map of the standard library.

mod agreement;

use std::collections::HashMap;

use gopt_lookups::Lookup;
use gopt_lookups::mica::Mica;
use gopt_lookups::random::Random;

#[test]
fn a_table_with_room_forgets_nothing() {
    let mut table = Mica::new(12, 14).unwrap();
    let mut oracle = HashMap::new();
    let mut random = Random::new(2);
    for step in 0..12_000 {
        let key = random.below(4000);
        let value = [key, step, random.bits()];
        table.set(key, value);
        oracle.insert(key, value);
    }
    let keys: Vec<u64> = (0..5000).collect();
    agreement::check_with_c(&table, &keys, |key| oracle.get(&key).copied());
}

#[test]
fn a_table_that_overflows_gives_the_newest_value_or_nothing() {
    let mut table = Mica::new(5, 7).unwrap();
    let mut oracle = HashMap::new();
    let mut random = Random::new(4);
    let mut found = 0;
    for step in 0..20_000 {
        let key = random.below(300);
        let value = [key, step, !key];
        table.set(key, value);
        oracle.insert(key, value);
        assert_eq!(
            table.find(key),
            Some(value),
            "what was just written is there"
        );
        let other = random.below(300);
        if let Some(value) = table.find(other) {
            assert_eq!(oracle.get(&other), Some(&value));
            found += 1;
        }
    }
    // The log holds 127 entries; some of them have the same key.
    assert!((2000..10_000).contains(&found), "{found}");
    let keys: Vec<u64> = (0..400).collect();
    agreement::check_with_c(&table, &keys, |key| table.find(key));
}

#[test]
fn the_latest_keys_survive() {
    let mut table = Mica::new(6, 6).unwrap();
    for key in 0..1000 {
        table.set(key, [key; 3]);
    }
    let kept = (0..1000).filter(|&key| table.find(key).is_some());
    assert!(kept.clone().all(|key| key > 1000 - 64));
    assert!(kept.count() > 55);
}

#[test]
fn absurd_sizes_are_refused() {
    assert!(Mica::new(41, 1).is_err());
    assert!(Mica::new(1, u32::MAX).is_err());
}
