//! Addresses and sizes in memcached's flags.

use super::{check_longest, with_port};

#[test]
fn addresses_may_have_a_port() {
    let with = |address| with_port(address, 11211).map_err(|why| why.0);
    assert_eq!(with("10.0.0.2"), Ok("10.0.0.2:11211".into()));
    assert_eq!(with("cache.local:99"), Ok("cache.local:99".into()));
    assert_eq!(with("::1"), Ok("[::1]:11211".into()));
    assert_eq!(with("[::1]"), Ok("[::1]:11211".into()));
    assert_eq!(with("[::1]:7"), Ok("[::1]:7".into()));
    assert!(with("10.0.0.2:x").is_err());
}

#[test]
fn longer_values_than_the_table_has_are_refused() {
    assert!(check_longest(Some("1m")).is_ok() && check_longest(None).is_ok());
    assert!(check_longest(Some("2m")).is_err() && check_longest(Some("x")).is_err());
}
