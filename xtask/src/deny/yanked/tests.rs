//! A withdrawn version is found in cargo's list.

use super::*;

#[test]
fn only_the_version_in_use_counts() {
    let list = b"\x03\x02\x00\x00\x00etag\x001.0.0\x00{\"vers\": \"1.0.0\", \"yanked\": false}\x00\
                 1.0.1\x00{\"vers\": \"1.0.1\", \"yanked\": true}\x00";
    assert!(is_withdrawn(list, "1.0.1"));
    assert!(!is_withdrawn(list, "1.0.0"));
    assert!(!is_withdrawn(list, "1.0.2"));
}

#[test]
fn lists_lie_where_cargo_puts_them() {
    let places = ["a", "ab", "Abc", "serde_json"].map(place);
    assert_eq!(places, ["1/a", "2/ab", "3/a/abc", "se/rd/serde_json"]);
}
