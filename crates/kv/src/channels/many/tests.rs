//! The keys of a get, by endpoint.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use dunlin_store::Mode;

use super::groups;
use crate::wire::Map;

#[test]
fn a_request_has_one_key_or_at_most_the_bytes_that_the_server_accepts() {
    let keys: Vec<Vec<u8>> = (0..9).map(|at| format!("key {at}").into_bytes()).collect();
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let all: Vec<usize> = (0..9).collect();
    let map = Map::new(1, Mode::Cache, [0]).unwrap();
    // A request for one of these keys has 18 bytes, and each further key takes 6.
    for (most, count) in [(0, 1), (18, 1), (23, 1), (24, 2), (30, 3), (usize::MAX, 9)] {
        let groups = groups(&map, &keys, &all, most);
        let grouped: Vec<usize> = groups
            .iter()
            .flat_map(|(_, group)| group)
            .copied()
            .collect();
        assert_eq!(grouped, all, "at most {most} bytes");
        assert_eq!(groups[0].1.len(), count, "at most {most} bytes");
    }
}
