//! The index alone, with random hashes, and numbers instead of items.

use dunlin_testkit::random::Random;

use super::{Index, Place};
use crate::config::MOST_SPLITS;
use crate::memory::Region;

fn region(len: usize) -> Region {
    Region::new(len).unwrap()
}

/// Inserts an entry, and lets the index grow as a table does: by at most [`MOST_SPLITS`] buckets
/// for one entry.
fn insert(index: &mut Index, memory: &mut Region, hash: u64, place: usize) {
    for _ in 0..MOST_SPLITS {
        if !index.wants_growth() {
            break;
        }
        if index.needs_group() {
            index.add_group(memory);
        }
        index.split(memory, 0);
    }
    let inserted = index.insert(memory, hash, Place::at(8 * place), false);
    inserted.expect("growth has made room");
}

fn find(index: &Index, memory: &Region, hash: u64, place: usize) -> bool {
    let is_it = |entry: super::IndexEntry| entry.place() == Place::at(8 * place);
    index.find(memory, hash, is_it).is_some()
}

#[test]
fn entries_are_found_after_any_growth_and_nothing_overflows_for_long() {
    let items = if cfg!(miri) { 300 } else { 100_000 };
    let mut memory = region(4 << 20);
    let mut index = Index::new(&mut memory, 8);
    let mut random = Random::new(1);
    let hashes: Vec<u64> = (0..items).map(|_| random.word()).collect();
    let mut most_bytes: f64 = 0.0;
    for (place, hash) in hashes.iter().enumerate() {
        insert(&mut index, &mut memory, *hash, place);
        if place >= 2000 {
            let bytes = u32::try_from(index.bytes()).unwrap();
            most_bytes = most_bytes.max(f64::from(bytes) / (place + 1) as f64);
        }
    }
    for (place, hash) in hashes.iter().enumerate() {
        assert!(find(&index, &memory, *hash, place), "{place}");
        assert!(!find(&index, &memory, *hash, place + items), "{place}");
    }
    // 64 bytes a line, of which an eighth are spare, and five entries a bucket: at best 14.6 bytes
    // an entry.
    assert!(most_bytes < 17.0, "{most_bytes} bytes an entry");
}

#[test]
fn removed_entries_leave_dense_chains_and_no_line_is_lost() {
    let mut memory = region(64 << 10);
    let mut index = Index::new(&mut memory, 3);
    let spares = index.spares;
    // All hashes are in one bucket, so that chains are long: the higher bits select nothing yet.
    let hashes: Vec<u64> = (0..14).map(|at| 5 | at << 40).collect();
    for (place, hash) in hashes.iter().enumerate() {
        let inserted = index.insert(&mut memory, *hash, Place::at(8 * place), false);
        inserted.unwrap();
    }
    assert_eq!(index.spares, spares - 1);
    assert_eq!(index.bucket(hashes[3]), index.bucket(hashes[12]));
    for (place, hash) in hashes.iter().enumerate() {
        let is_it = |entry: super::IndexEntry| entry.place() == Place::at(8 * place);
        let (slot, _) = index
            .find(&memory, *hash, is_it)
            .expect("it is still there");
        index.remove(&mut memory, *hash, slot);
        let left = (0..).map_while(|at| index.entry_of(&memory, 5, at)).count();
        assert_eq!(left, hashes.len() - place - 1);
    }
    assert_eq!(index.spares, spares);
    assert_eq!(index.entries, 0);
}

#[test]
fn a_chain_without_a_spare_line_reports_that_it_is_full() {
    let mut memory = region(64 << 10);
    let mut index = Index::new(&mut memory, 0);
    // One bucket of seven entries, and one spare line of seven.
    for place in 0..14 {
        assert!(index.has_room(&memory, 0));
        index
            .insert(&mut memory, 0, Place::at(8 * place), false)
            .unwrap();
    }
    assert!(!index.has_room(&memory, 0));
    assert!(index.insert(&mut memory, 0, Place::at(800), false).is_err());
    assert!(index.wants_growth());
}
