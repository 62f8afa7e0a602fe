//! RPCs between `dpdk` and the kernel's `udp`, over a device of net_tap, whose other end is an
//! interface of the kernel. Its stack asks and answers as a neighbour does.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::process::Command;

use dunlin_dpdk::Dpdk;
use dunlin_testkit::network::{Host, Network};
use dunlin_testkit::wait::until;
use dunlin_transport::udp::{self, Udp};

use crate::echo::Echo;
use crate::{open, pair};

/// Makes a device whose other end is the interface `tap` of a namespace, and an endpoint of `udp`
/// there. `prefix` is the beginning of both addresses.
fn echo(number: u8, prefix: &str, bits: u8, is_dpdk_client: bool) {
    let Some(network) = Network::new() else {
        return;
    };
    let host = &network.right;
    let interface = format!("tap{number}");
    let device = format!(
        "net_tap{number},iface={interface};ip={prefix}2/{bits};{}",
        pair::ARGUMENTS
    );
    let dpdk = host.run(|| open(&device));
    let address = format!("{prefix}1");
    let nodad = if prefix.contains(':') { " nodad" } else { "" };
    host.ip(&format!("addr add {address}/{bits} dev {interface}{nodad}"))
        .unwrap();
    host.ip(&format!("link set {interface} up")).unwrap();
    let options = udp::Options {
        ip: address.parse().unwrap(),
        allow_peers: "0.0.0.0/0, ::/0".parse().unwrap(),
        ..udp::Options::default()
    };
    let udp = host.run(|| Udp::open(&options)).unwrap();
    if is_dpdk_client {
        Echo::<Dpdk, Udp>::new(dpdk, udp).all_lengths();
    } else {
        Echo::<Udp, Dpdk>::new(udp, dpdk).all_lengths();
    }
    kernel_finds(host, &interface, prefix);
}

/// Makes the kernel forget the device, and waits until it has found it again. There is no endpoint
/// any more, so the thread that keeps the device answers.
fn kernel_finds(host: &Host, interface: &str, prefix: &str) {
    host.ip(&format!("neigh del {prefix}2 dev {interface}"))
        .unwrap();
    host.run(|| {
        let ip: IpAddr = format!("{prefix}2").parse().unwrap();
        let any: IpAddr = match ip {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0)).unwrap();
        socket.send_to(b"?", (ip, 9)).unwrap();
        until(|| {
            let shown = Command::new("ip")
                .args(["neigh", "show", &ip.to_string()])
                .output();
            let shown = String::from_utf8(shown.unwrap().stdout).unwrap();
            shown.contains("REACHABLE")
        });
    });
}

#[test]
#[ignore = "needs DPDK"]
fn dpdk_calls_udp_in_ipv4() {
    echo(1, "10.83.1.", 24, true);
}

#[test]
#[ignore = "needs DPDK"]
fn udp_calls_dpdk_in_ipv4() {
    echo(2, "10.83.2.", 24, false);
}

#[test]
#[ignore = "needs DPDK"]
fn dpdk_calls_udp_in_ipv6() {
    echo(3, "fd83:3::", 64, true);
}

#[test]
#[ignore = "needs DPDK"]
fn udp_calls_dpdk_in_ipv6() {
    echo(4, "fd83:4::", 64, false);
}
