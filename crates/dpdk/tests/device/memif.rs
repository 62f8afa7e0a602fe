//! RPCs between two devices of memif, in both families, with a VLAN, packed and not.

use dunlin_dpdk::Dpdk;

use crate::echo::Echo;
use crate::{options, pair};

fn echo(network: u32, place: impl Fn(u32) -> String, pack: bool) {
    let _sockets = pair::Sockets;
    let [near, far] = pair::devices(network, place).map(|device| {
        let mut options = options(&device);
        options.udp.pack = pack;
        Dpdk::open(&options).unwrap()
    });
    Echo::<Dpdk, Dpdk>::new(near, far).all_lengths();
}

#[test]
fn dpdk_talks_to_dpdk_in_ipv4() {
    echo(1, |number| format!("ip=10.82.1.{number}/24"), true);
}

#[test]
fn dpdk_talks_to_dpdk_in_ipv6_without_packing() {
    echo(2, |number| format!("ip=fd82::{number}/64"), false);
}

#[test]
fn dpdk_talks_to_dpdk_in_a_vlan() {
    let place = |number| format!("ip=10.82.3.{number}/24,vlan=7");
    echo(3, place, true);
}

#[test]
fn endpoints_of_one_device_talk_without_it_in_long_frames() {
    // Drivers of memif have no longer frames than Ethernet's.
    let device = format!("net_ring7;ip=10.82.7.1/24,mtu=9000;{}", pair::ARGUMENTS);
    let mut options = options(&device);
    options.udp.data_size = 8000;
    let [near, far] = [(); 2].map(|()| Dpdk::open(&options).unwrap());
    assert_eq!(near.limits.data_size, 8000);
    Echo::<Dpdk, Dpdk>::new(near, far).all_lengths();
}
