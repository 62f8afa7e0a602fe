//! The cuckoo table, compared with a map of the standard library.

mod agreement;

use std::collections::HashMap;

use gopt_lookups::cuckoo::{Cuckoo, FREE, InsertError};
use gopt_lookups::random::Random;
use proptest::prelude::*;

#[test]
fn a_table_that_is_nearly_full_finds_everything() {
    let mut table = Cuckoo::new(10).unwrap();
    let mut oracle = HashMap::new();
    let mut random = Random::new(5);
    while oracle.len() < 8192 * 94 / 100 {
        let key = u32::try_from(random.below(1 << 20)).unwrap() + 1;
        let value = u32::try_from(random.below(1 << 32)).unwrap();
        table.insert(key, value).unwrap();
        oracle.insert(key, value);
    }
    let present = oracle.keys().copied();
    let absent = (1 << 21..).take(3000);
    let keys: Vec<u32> = present.chain(absent).chain([FREE]).collect();
    agreement::check_with_c(&table, &keys, |key| oracle.get(&key).copied());
}

#[test]
fn a_full_table_refuses_and_loses_nothing() {
    let mut table = Cuckoo::new(3).unwrap();
    let mut oracle = HashMap::new();
    let mut refused = 0;
    for key in 1..200 {
        match table.insert(key, key * 3) {
            Ok(()) => drop(oracle.insert(key, key * 3)),
            Err(error) => {
                assert_eq!(error, InsertError::Full);
                refused += 1;
            }
        }
    }
    assert!(refused >= 200 - 1 - 64 && oracle.len() > 48);
    let keys: Vec<u32> = (1..200).collect();
    agreement::check_with_c(&table, &keys, |key| oracle.get(&key).copied());
}

#[test]
fn impossible_tables_and_keys_are_refused() {
    assert!(Cuckoo::new(33).is_err());
    assert!(Cuckoo::new(u32::MAX).is_err());
    assert_eq!(
        Cuckoo::new(1).unwrap().insert(FREE, 1),
        Err(InsertError::Reserved)
    );
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_insertions_are_found(
        pairs in prop::collection::vec((1..500_u32, any::<u32>()), 1..400),
    ) {
        let mut table = Cuckoo::new(7).unwrap();
        let mut oracle = HashMap::new();
        for (key, value) in pairs {
            table.insert(key, value).unwrap();
            oracle.insert(key, value);
        }
        let keys: Vec<u32> = (0..600).collect();
        agreement::check_with_c(&table, &keys, |key| oracle.get(&key).copied());
    }
}
