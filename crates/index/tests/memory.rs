//! The memory of deleted items is freed: the test inserts and deletes ten times as many items as
//! the index keeps, and its memory must stay level. It is higher than the memory of a new index,
//! because a node of the tree keeps the places of deleted items until it is split or empty.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::process::Command;

use dunlin_index::{Index, Range};

/// The number of items at any time.
const ITEMS: u64 = 100_000;

/// The lengths of keys, of which items have one in turn, and of a value. Keys of eight bytes are in
/// a tree of their own.
const LENGTHS: [(&[usize], usize); 5] = [
    (&[8], 8),
    (&[8], 64),
    (&[16], 8),
    (&[64], 8),
    (&[8, 16, 24, 64], 64),
];

/// The environment variable with the place of the lengths, for the process that measures its own
/// memory.
const PLACE: &str = "DUNLIN_LENGTHS";

/// Resident memory of this process in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.unwrap().trim().strip_suffix(" kB").unwrap();
    number.trim().parse().unwrap()
}

fn key(number: u64, lengths: &[usize]) -> Vec<u8> {
    // Items that are neighbours in time are not neighbours in the tree.
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    let len = lengths[usize::try_from(number).unwrap() % lengths.len()];
    mixed.iter().copied().cycle().take(len).collect()
}

fn value(number: u64, len: usize) -> Vec<u8> {
    let bytes = number.to_le_bytes();
    bytes.iter().copied().cycle().take(len).collect()
}

#[test]
fn memory_of_deleted_items_comes_back() {
    for (place, lengths) in LENGTHS.iter().enumerate() {
        // A process of its own, because a process that has had an index keeps some memory.
        let program = std::env::current_exe().unwrap();
        let mut child = Command::new(program);
        child.args(["--exact", "items_come_and_go", "--nocapture"]);
        let status = child.env(PLACE, place.to_string()).status().unwrap();
        assert!(
            status.success(),
            "keys and values of {lengths:?} bytes: {status}"
        );
    }
}

/// The process that measures its memory. Without a place of lengths, it measures nothing.
#[test]
fn items_come_and_go() {
    let Ok(place) = std::env::var(PLACE) else {
        return;
    };
    let (keys, len) = LENGTHS[place.parse::<usize>().unwrap()];
    let index = Index::new();
    let before = resident();
    for number in 0..ITEMS {
        index.put(&key(number, keys), &value(number, len));
    }
    let mut taken = vec![resident() - before];
    for round in 0..10 {
        for number in round * ITEMS..(round + 1) * ITEMS {
            assert!(index.delete(&key(number, keys)));
            index.put(&key(number + ITEMS, keys), &value(number, len));
        }
        taken.push(resident() - before);
    }
    assert_eq!(index.total(Range::ALL, u64::MAX).items, ITEMS);
    println!("keys of {keys:?}, values of {len} bytes, KiB after each round: {taken:?}");
    assert!(taken[10] * 10 <= taken[0] * 13, "{taken:?}");
    assert!(taken[10] * 100 <= taken[4] * 105, "{taken:?}");
}
