//! Addresses and sizes in memcached's flags.

use super::{most_value, with_port};

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
fn the_limit_of_values_is_between_memcacheds_least_and_the_tables() {
    let most = |text| most_value(Some(text)).map_err(|why| why.0);
    assert_eq!(most("1m"), Ok(None));
    assert_eq!(most("512k"), Ok(Some(512 << 10)));
    assert_eq!(most("1k"), Ok(Some(1024)));
    assert!(most("2m").is_err() && most("x").is_err() && most("1023").is_err());
}
