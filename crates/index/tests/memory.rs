//! The memory of deleted items is freed: the test inserts and deletes ten times as many items as
//! the index keeps, and its memory must stay level. It is higher than the memory of a new index,
//! because a node of the tree keeps the places of deleted items until it is split or empty.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::process::Command;

use dunlin_index::{Index, Range};

/// The number of items at any time.
const ITEMS: u64 = 100_000;

/// The environment variable with the length of a value, for the process that measures its own
/// memory.
const VALUE: &str = "DUNLIN_VALUE";

/// Resident memory of this process in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.unwrap().trim().strip_suffix(" kB").unwrap();
    number.trim().parse().unwrap()
}

fn key(number: u64) -> [u8; 8] {
    // Items that are neighbours in time are not neighbours in the tree.
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

fn value(number: u64, len: usize) -> Vec<u8> {
    let bytes = number.to_le_bytes();
    bytes.iter().copied().cycle().take(len).collect()
}

#[test]
fn memory_of_deleted_items_comes_back() {
    for len in ["8", "64"] {
        // A process of its own, because a process that has had an index keeps some memory.
        let program = std::env::current_exe().unwrap();
        let mut child = Command::new(program);
        child.args(["--exact", "items_come_and_go", "--nocapture"]);
        let status = child.env(VALUE, len).status().unwrap();
        assert!(status.success(), "values of {len} bytes: {status}");
    }
}

/// The process that measures its memory. Without a length of values, it measures nothing.
#[test]
fn items_come_and_go() {
    let Ok(len) = std::env::var(VALUE) else {
        return;
    };
    let len = len.parse().unwrap();
    let index = Index::new();
    let before = resident();
    for number in 0..ITEMS {
        index.put(&key(number), &value(number, len));
    }
    let mut taken = vec![resident() - before];
    for round in 0..10 {
        for number in round * ITEMS..(round + 1) * ITEMS {
            assert!(index.delete(&key(number)));
            index.put(&key(number + ITEMS), &value(number, len));
        }
        taken.push(resident() - before);
    }
    assert_eq!(index.total(Range::ALL, u64::MAX).items, ITEMS);
    println!("values of {len} bytes, KiB after each round: {taken:?}");
    assert!(taken[10] * 10 <= taken[0] * 13, "{taken:?}");
    assert!(taken[10] * 100 <= taken[4] * 105, "{taken:?}");
}
