//! The tree, compared with the `BTreeMap` of the standard library.

mod agreement;

use std::collections::BTreeMap;

use gopt_lookups::btree::{BTree, RESERVED};
use gopt_lookups::random::Random;

fn check(len: usize) {
    let mut random = Random::new(len as u64);
    let mut oracle = BTreeMap::new();
    while oracle.len() < len {
        oracle.insert(random.below(4 * len as u64), random.bits());
    }
    let pairs = oracle.iter().map(|(&key, &value)| (key, value));
    let table = BTree::new(pairs).expect("keys ascend");
    let ends = [0, RESERVED, RESERVED - 1, 1 << 63];
    let keys: Vec<u64> = (0..4 * len as u64 + 2).chain(ends).collect();
    agreement::check_with_c(&table, &keys, |key| oracle.get(&key).copied());
}

#[test]
fn all_sizes_of_trees_agree() {
    for len in (0..40).chain([255, 256, 257, 271, 272, 273, 288, 4623, 4624, 4625, 5000]) {
        check(len);
    }
}

#[test]
fn keys_above_half_the_range_are_found() {
    let pairs = (0..600_u32).map(|at| (RESERVED - 1200 + 2 * u64::from(at), u64::from(at)));
    let table = BTree::new(pairs).unwrap();
    assert_eq!(table.depth(), 3);
    let keys: Vec<u64> = (RESERVED - 1210..=RESERVED).collect();
    agreement::check_with_c(&table, &keys, |key| {
        let offset = key.wrapping_sub(RESERVED - 1200);
        (offset < 1200 && offset % 2 == 0).then_some(offset / 2)
    });
}

#[test]
fn pairs_out_of_order_are_refused() {
    assert!(BTree::new([(2, 0), (1, 0)].into_iter()).is_err());
    assert!(BTree::new([(2, 0), (2, 0)].into_iter()).is_err());
    assert!(BTree::new([(RESERVED, 0)].into_iter()).is_err());
}
