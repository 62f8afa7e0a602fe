//! The devices of links.

use dunlin::transport::{DpdkSite, Networks};

use super::*;

fn site(device: Device) -> DpdkSite {
    device.site().parse().unwrap()
}

fn socket(device: Device) -> String {
    let device = site(device).device;
    device.split("socket=").nth(1).unwrap().to_owned()
}

#[test]
fn the_ends_of_a_link_meet_and_those_of_two_links_do_not() {
    let ([near, far], [other, _]) = (pair(), pair());
    assert_eq!(socket(near), socket(far));
    assert_ne!(socket(near), socket(other));
    let (near, far) = (site(near), site(far));
    assert!(near.is_on_link(far.ip), "no gateway is needed");
    assert_ne!(near.ip, far.ip);
    let network: Networks = NETWORK.parse().unwrap();
    assert!(network.contains(near.ip) && network.contains(far.ip));
}
