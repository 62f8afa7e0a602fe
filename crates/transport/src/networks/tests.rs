//! Networks: the addresses in them, and texts that are not lists of networks.

use super::Networks;

fn networks(text: &str) -> Networks {
    text.parse().unwrap()
}

#[test]
fn an_address_is_in_a_network_by_its_first_bits() {
    let allowed = networks("10.1.128.0/17,192.0.2.7,2001:db8:8000::/33");
    for inside in [
        "10.1.128.0",
        "10.1.255.255",
        "192.0.2.7",
        "::ffff:10.1.200.1",
        "2001:db8:8000::1",
    ] {
        assert!(allowed.contains(inside.parse().unwrap()), "{inside}");
    }
    for outside in [
        "10.1.127.255",
        "10.2.128.0",
        "192.0.2.6",
        "2001:db8:7fff::1",
        "::a01:8001",
    ] {
        assert!(!allowed.contains(outside.parse().unwrap()), "{outside}");
    }
}

#[test]
fn a_prefix_of_no_bits_has_all_addresses_of_the_family() {
    assert!(networks("0.0.0.0/0").contains([203, 0, 113, 1].into()));
    assert!(!networks("0.0.0.0/0").contains("2001:db8::1".parse().unwrap()));
    assert!(networks("::/0").contains("2001:db8::1".parse().unwrap()));
    assert!(!Networks::default().contains([127, 0, 0, 1].into()));
}

#[test]
fn a_text_that_is_no_list_of_networks_is_refused() {
    for wrong in [
        "10.0.0.0/33",
        "10.1.0.0/8",
        "::1/129",
        "10.0.0/8",
        "host",
        "10.0.0.0/-1",
    ] {
        let error = wrong.parse::<Networks>().unwrap_err();
        assert!(error.to_string().contains(wrong), "{error}");
    }
    assert!(networks(" , ").is_empty());
}
