//! Random lines, compared with their numbers; and the count of lines, compared with known paths.

mod agreement;

use gopt_lookups::cuckoo::Cuckoo;
use gopt_lookups::lines::Lines;
use gopt_lookups::mica::Mica;
use gopt_lookups::pointer_chasing::Chain;
use gopt_lookups::random::Random;
use gopt_lookups::touched::{CACHED_BYTES, Touched};
use gopt_lookups::{Lookup, lines};

fn touched<L: Lookup>(table: &L, key: L::Key) -> usize {
    let mut touched = Touched::default();
    table.touch(key, &mut touched);
    touched.take()
}

#[test]
fn all_forms_read_the_line_that_is_asked_for() {
    let lines = Lines::new(1000).unwrap();
    assert_eq!((lines.len(), lines.is_empty()), (1000, false));
    let keys: Vec<u32> = (0..1000).rev().collect();
    agreement::check(&lines, &keys, u64::from);
    assert!(lines::Lines::new(1 << 40).is_err());
}

#[test]
fn lines_that_a_cache_holds_are_not_counted() {
    let small = Lines::new(CACHED_BYTES / 64).unwrap();
    let large = Lines::new(CACHED_BYTES / 64 + 1).unwrap();
    assert_eq!((touched(&small, 7), touched(&large, 7)), (0, 1));
}

#[test]
fn every_step_of_a_chain_is_a_line() {
    let chain = Chain::new(CACHED_BYTES, 10, &mut Random::new(1)).unwrap();
    // Ten random cells out of millions rarely share a line.
    let total: usize = (0..100).map(|at| touched(&chain, at * 999)).sum();
    assert!((990..=1000).contains(&total), "{total}");
}

#[test]
fn a_hit_and_a_miss_of_a_hash_table_read_the_expected_lines() {
    let mut cuckoo = Cuckoo::new(17).unwrap();
    cuckoo.insert(5, 1).unwrap();
    assert_eq!(touched(&cuckoo, 5), 1, "the first bucket has it");
    assert_eq!(touched(&cuckoo, 6), 2, "neither has it");
    let mut mica = Mica::new(17, 18).unwrap();
    mica.set(5, [1; 3]);
    assert_eq!(touched(&mica, 5), 2, "a bucket and an entry");
    assert_eq!(touched(&mica, 6), 1, "a bucket without the tag");
}
