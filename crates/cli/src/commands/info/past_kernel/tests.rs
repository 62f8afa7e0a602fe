//! The reading of releases and of capabilities.

use super::{missing, version};

#[test]
fn a_release_has_two_numbers_in_front() {
    assert_eq!(version("6.18.44-custom"), Some((6, 18)));
    assert_eq!(version("5.4.0"), Some((5, 4)));
    assert_eq!(version("unknown"), None);
}

#[test]
fn the_capabilities_that_are_missing_are_named() {
    assert!(missing(u64::MAX).is_empty());
    assert_eq!(missing(0), ["cap_net_admin", "cap_net_raw", "cap_bpf"]);
    assert_eq!(missing(1 << 12), ["cap_net_raw", "cap_bpf"]);
    assert_eq!(missing(1 << 13), ["cap_net_admin", "cap_bpf"]);
    assert_eq!(missing(1 << 39), ["cap_net_admin", "cap_net_raw"]);
}
