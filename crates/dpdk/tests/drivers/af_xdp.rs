//! RPCs between two devices of net_af_xdp, the driver of DPDK for AF_XDP, at the two ends of a link
//! of the kernel. The kernel has no address there.

use dunlin_dpdk::Dpdk;
use dunlin_testkit::network::Network;

use crate::echo::Echo;
use crate::{link, open, options};

#[test]
#[ignore = "needs DPDK"]
fn dpdk_talks_to_dpdk_over_the_driver_of_af_xdp() {
    let Some(network) = Network::new() else {
        return;
    };
    let ends = [(&network.left, 1), (&network.right, 2)];
    let [near, far] = ends.map(|(host, number)| {
        // With fewer packets, each of them is used sooner.
        let device = link::device(host, number, 1500, ",packets=4095");
        host.run(|| open(&device))
    });
    let mut echo = Echo::<Dpdk, Dpdk>::new(near, far);
    // On a busy machine, the driver may have no room for a packet, which is then sent again.
    for len in [8, 32, 1000, 1441, 20_000, 200_000] {
        echo.calls(if len > 10_000 { 3 } else { 40 }, len);
    }
    echo.calls(30, 1_000_000);
    echo.ends_soon();
    // Nothing is lent unless the option asks for it.
    let sent = echo.counters().map(|it| it.tx_packets);
    assert_eq!(echo.details("tx_copied_off"), sent);
}

#[test]
#[ignore = "needs DPDK"]
fn packets_that_would_exceed_a_page_are_refused_with_the_limit() {
    let Some(network) = Network::new() else {
        return;
    };
    let device = link::device(&network.left, 3, 1500, ",mtu=3503");
    let refused = network
        .left
        .run(|| Dpdk::open(&options(&device)).unwrap_err());
    let why = refused.to_string();
    assert!(why.contains("has packets of up to 3502 bytes"), "{why}");
}
