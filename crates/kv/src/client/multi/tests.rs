//! The keys of a get, by partition.

use dunlin_channel::Failures;
use dunlin_core::Nanos;
use dunlin_store::Mode;

use super::Multi;
use crate::client::Token;
use crate::wire::{MAX_KEYS, Map};

/// A get of this number of keys.
fn get_of(count: u16, routes: Vec<u64>) -> Multi {
    let keys: Vec<Vec<u8>> = (0..count)
        .map(|at| format!("key {at}").into_bytes())
        .collect();
    let mut end = 0;
    let ends = keys.iter().map(|key| {
        end += u32::try_from(key.len()).unwrap();
        end
    });
    Multi {
        token: Token(1),
        ends: ends.collect(),
        keys: keys.concat(),
        items: Vec::new(),
        routes,
        pending: (0..count).collect(),
        calls: 0,
        most_asked: usize::MAX,
        failed: None,
        deadline: Nanos::MAX,
        misses: false,
        not_before: Nanos::ZERO,
        failures: Failures::default(),
    }
}

fn map_of(partitions: u16) -> Map {
    Map::new(1, Mode::Cache, 0..partitions).unwrap()
}

/// Takes all groups, and checks them.
fn take_all(get: &mut Multi, map: &Map) {
    let mut taken = Vec::new();
    while let Some((partition, group)) = get.take_group(map) {
        assert!(!group.is_empty() && group.len() <= MAX_KEYS);
        for index in &group {
            assert_eq!(
                map.place(get.key(*index)).partition,
                partition,
                "key {index}"
            );
        }
        assert!(group.is_sorted(), "keys keep their order: {group:?}");
        taken.extend(group);
    }
    taken.sort_unstable();
    assert!(
        taken.iter().copied().eq(0..get.count()),
        "each key is in one group"
    );
}

#[test]
fn each_key_goes_to_its_partition_under_each_map() {
    for count in [1, 3, 3000] {
        let mut get = get_of(count, Vec::new());
        take_all(&mut get, &map_of(1));
        assert!(get.routes.is_empty(), "one partition needs no hashes");
        // A later map has other partitions.
        for partitions in [5, 64, 1] {
            get.pending = (0..count).collect();
            take_all(&mut get, &map_of(partitions));
        }
    }
}

#[test]
fn keys_are_not_hashed_again() {
    // With these hashes, all keys belong to the last partition.
    let mut get = get_of(100, vec![u64::MAX; 100]);
    let (partition, group) = get.take_group(&map_of(16)).unwrap();
    assert_eq!((partition, group.len()), (15, 100));
}

#[test]
fn a_request_has_one_key_or_at_most_the_bytes_that_the_server_accepts() {
    // A request for one of these keys has 18 bytes, and each further key takes 6.
    for (most, keys) in [(0, 1), (18, 1), (23, 1), (24, 2), (30, 3), (usize::MAX, 9)] {
        let mut get = get_of(9, Vec::new());
        get.most_asked = most;
        let (_, group) = get.take_group(&map_of(1)).unwrap();
        assert_eq!(group.len(), keys, "at most {most} bytes");
        assert_eq!(get.pending.len(), 9 - keys);
    }
}
