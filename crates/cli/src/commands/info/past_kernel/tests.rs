//! The reading of releases and of capabilities.

use super::{locks_fill_ring, missing, version};

#[test]
fn a_release_has_two_numbers_in_front() {
    assert_eq!(version("6.18.44-custom"), Some((6, 18)));
    assert_eq!(version("5.4.0"), Some((5, 4)));
    assert_eq!(version("unknown"), None);
}

#[test]
fn a_fix_is_in_its_release_and_in_later_ones_of_its_series() {
    for release in [
        "6.6.123",
        "6.12.28+deb13",
        "6.12.107",
        "6.14.6",
        "6.15.0",
        "6.15",
        "7.0",
    ] {
        assert!(locks_fill_ring(release), "{release}");
    }
    for release in [
        "6.6.122",
        "6.6",
        "6.8.0-31-generic",
        "6.12.27",
        "6.13.9",
        "6.14.5",
        "5.15.200",
        "?",
    ] {
        assert!(!locks_fill_ring(release), "{release}");
    }
}

#[test]
fn the_capabilities_that_are_missing_are_named() {
    assert!(missing(u64::MAX).is_empty());
    assert_eq!(missing(0), ["cap_net_admin", "cap_net_raw", "cap_bpf"]);
    assert_eq!(missing(1 << 12), ["cap_net_raw", "cap_bpf"]);
    assert_eq!(missing(1 << 13), ["cap_net_admin", "cap_bpf"]);
    assert_eq!(missing(1 << 39), ["cap_net_admin", "cap_net_raw"]);
}
