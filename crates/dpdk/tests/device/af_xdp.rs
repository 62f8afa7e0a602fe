//! RPCs between two devices of net_af_xdp, the driver of DPDK for AF_XDP, at the two ends of a link
//! of the kernel. The kernel has no address there.

use dunlin_dpdk::Dpdk;
use dunlin_testkit::network::{Host, Network};

use crate::echo::Echo;
use crate::{open, pair};

/// A device at the end of the link, which gets this name and loses its addresses.
fn device(host: &Host, number: u8) -> String {
    let name = format!("xsk{number}");
    for command in [
        "addr flush dev link0".to_owned(),
        "link set link0 down".to_owned(),
        format!("link set link0 name {name} addrgenmode none"),
        format!("link set {name} up"),
    ] {
        host.ip(&command).unwrap();
    }
    let arguments = pair::ARGUMENTS;
    format!("net_af_xdp{number},iface={name};ip=10.88.0.{number}/24;{arguments}")
}

#[test]
#[ignore = "needs DPDK"]
fn dpdk_talks_to_dpdk_over_the_driver_of_af_xdp() {
    let Some(network) = Network::new() else {
        return;
    };
    let ends = [(&network.left, 1), (&network.right, 2)];
    let [near, far] = ends.map(|(host, number)| {
        let device = device(host, number);
        host.run(|| open(&device))
    });
    let mut echo = Echo::<Dpdk, Dpdk>::new(near, far);
    // On a busy machine, the driver may have no room for a packet, which is then sent again.
    for len in [8, 32, 1000, 1441, 20_000, 200_000] {
        echo.calls(if len > 10_000 { 3 } else { 40 }, len);
    }
}
