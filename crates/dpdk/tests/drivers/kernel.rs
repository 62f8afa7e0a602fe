//! RPCs between `dpdk` and the kernel's `udp`, over a device of net_tap, whose other end is an
//! interface of the kernel. Its stack asks and answers as a neighbour does.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::RawFd;
use std::process::Command;
use std::time::Duration;

use dunlin_core::Nanos;
use dunlin_core::transport::{Halves, Rx};
use dunlin_dpdk::{Dpdk, DpdkRx, DpdkTx};
use dunlin_testkit::network::{Host, Network};
use dunlin_testkit::wait::until;
use dunlin_transport::connect::{Arm, Connect};
use dunlin_transport::udp::{self, Udp, UdpRx, UdpTx};

use crate::echo::Echo;
use crate::{open, pair};

/// An endpoint at a device whose other end is the interface `tap` of a namespace, where the kernel
/// has the address that ends in 1. `prefix` is the beginning of both addresses; `options` are
/// further ones of the device.
fn at_tap(
    host: &Host,
    number: u8,
    (prefix, bits): (&str, u8),
    options: &str,
) -> (Halves<DpdkRx, DpdkTx>, String) {
    let interface = format!("tap{number}");
    let device = format!(
        "net_tap{number},iface={interface};ip={prefix}2/{bits}{options};{}",
        pair::ARGUMENTS
    );
    let dpdk = host.run(|| open(&device));
    let nodad = if prefix.contains(':') { " nodad" } else { "" };
    host.ip(&format!("addr add {prefix}1/{bits} dev {interface}{nodad}"))
        .unwrap();
    host.ip(&format!("link set {interface} up")).unwrap();
    (dpdk, interface)
}

/// An endpoint of `udp` at an address of the kernel.
fn at_kernel(host: &Host, ip: &str) -> Halves<UdpRx, UdpTx> {
    let options = udp::Options {
        ip: ip.parse().unwrap(),
        allow_peers: "0.0.0.0/0, ::/0".parse().unwrap(),
        ..udp::Options::default()
    };
    host.run(|| Udp::open(&options)).unwrap()
}

/// Makes calls between an endpoint at a device and one of the kernel.
fn echo(number: u8, prefix: &str, bits: u8, is_dpdk_client: bool) {
    let Some(network) = Network::new() else {
        return;
    };
    let host = &network.right;
    let (dpdk, interface) = at_tap(host, number, (prefix, bits), "");
    let udp = at_kernel(host, &format!("{prefix}1"));
    if is_dpdk_client {
        Echo::<Dpdk, Udp>::new(dpdk, udp).all_lengths();
    } else {
        Echo::<Udp, Dpdk>::new(udp, dpdk).all_lengths();
    }
    kernel_finds(host, &interface, prefix);
}

/// Makes the kernel forget the device, and waits until it has found it again. No endpoint is left,
/// so the thread that keeps the device answers.
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

/// Makes calls between a device at the right host and the kernel's address at the left host. The
/// right host's kernel forwards their packets, and is the device's gateway.
fn echo_through_gateway(number: u8, prefix: &str, bits: u8, is_v6: bool) {
    let Some(network) = Network::new() else {
        return;
    };
    let (left, right) = (&network.left, &network.right);
    let gateway = format!(",gw={prefix}1");
    let (dpdk, _) = at_tap(right, number, (prefix, bits), &gateway);
    let (switch, via, far) = match is_v6 {
        true => ("ipv6/conf/all/forwarding", right.address_6, left.address_6),
        false => ("ipv4/ip_forward", right.address, left.address),
    };
    let switch = format!("/proc/sys/net/{switch}");
    right.run(|| std::fs::write(switch, "1")).unwrap();
    left.ip(&format!("route add {prefix}0/{bits} via {via}"))
        .unwrap();
    let udp = at_kernel(left, far);
    let mut echo = Echo::<Dpdk, Udp>::new(dpdk, udp);
    echo.all_lengths();
    // No question for the far address has stayed without an answer.
    assert_eq!(echo.details("tx_unanswered")[0], 0);
}

#[test]
#[ignore = "needs DPDK"]
fn dpdk_calls_udp_through_a_gateway() {
    echo_through_gateway(9, "10.83.9.", 24, false);
    echo_through_gateway(10, "fd83:10::", 64, true);
}

#[test]
#[ignore = "needs DPDK"]
fn calls_survive_a_link_that_is_down_for_a_while() {
    let Some(network) = Network::new() else {
        return;
    };
    let host = &network.right;
    let prefix = "10.83.5.";
    let (dpdk, interface) = at_tap(host, 5, (prefix, 24), "");
    let mut echo = Echo::<Dpdk, Udp>::new(dpdk, at_kernel(host, &format!("{prefix}1")));
    echo.calls(10, 32);
    host.ip(&format!("link set {interface} down")).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Long enough for calls to be sent again.
            std::thread::sleep(Duration::from_millis(300));
            host.ip(&format!("link set {interface} up")).unwrap();
        });
        echo.calls(10, 32);
    });
    echo.calls(3, 200_000);
}

#[test]
#[ignore = "needs DPDK"]
fn a_link_that_stays_down_fails_the_session_and_another_one_works_after_it() {
    let Some(network) = Network::new() else {
        return;
    };
    let host = &network.right;
    let prefix = "10.83.11.";
    let (dpdk, interface) = at_tap(host, 11, (prefix, 24), "");
    let udp = at_kernel(host, &format!("{prefix}1"));
    let mut echo = Echo::<Dpdk, Udp>::with_patience(dpdk, udp, Nanos::from_secs(1));
    for _ in 0..2 {
        echo.calls(10, 32);
        host.ip(&format!("link set {interface} down")).unwrap();
        echo.fail_while(32, || {});
        host.ip(&format!("link set {interface} up")).unwrap();
        echo.open_again();
    }
    echo.calls(10, 32);
}

#[test]
#[ignore = "needs DPDK"]
fn calls_survive_a_black_hole_and_a_neighbour_that_becomes_another() {
    let Some(network) = Network::new() else {
        return;
    };
    let host = &network.right;
    let prefix = "10.83.8.";
    let (dpdk, interface) = at_tap(host, 8, (prefix, 24), "");
    let mut echo = Echo::<Dpdk, Udp>::new(dpdk, at_kernel(host, &format!("{prefix}1")));
    echo.calls(10, 32);
    // The kernel's packets go to an address that no host has.
    let away =
        format!("neigh replace {prefix}2 lladdr 02:00:00:00:00:99 nud permanent dev {interface}");
    host.ip(&away).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Until then the kernel's packets are lost, and the calls below wait.
            std::thread::sleep(Duration::from_millis(100));
            host.ip(&format!("neigh del {prefix}2 dev {interface}"))
                .unwrap();
        });
        echo.calls(10, 32);
    });
    // The kernel's interface has another address from now on, and announces it.
    host.run(|| {
        std::fs::write(
            format!("/proc/sys/net/ipv4/conf/{interface}/arp_notify"),
            "1",
        )
    })
    .unwrap();
    host.ip(&format!("link set {interface} address 02:00:00:00:00:77"))
        .unwrap();
    host.ip(&format!("neigh flush dev {interface}")).unwrap();
    echo.calls(10, 32);
    echo.calls(3, 200_000);
    echo.ends_soon();
}

/// Whether a descriptor becomes readable within this time.
fn is_readable(fd: RawFd, within_ms: i32) -> bool {
    let mut waited = libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one live structure.
    unsafe { libc::poll(&raw mut waited, 1, within_ms) == 1 }
}

#[test]
#[ignore = "needs DPDK"]
fn a_device_with_interrupts_wakes_an_endpoint_without_the_keeper() {
    let Some(network) = Network::new() else {
        return;
    };
    let host = &network.right;
    let (mut dpdk, _) = at_tap(host, 6, ("10.83.6.", 24), "");
    let to = dpdk.rx.local_addr();
    let socket = host.run(|| UdpSocket::bind("10.83.6.1:0")).unwrap();
    let mut fds = Vec::new();
    Dpdk::fds(&dpdk.rx, &dpdk.tx, &mut fds);
    // The first is the keeper's.
    let [_, bell] = fds[..] else {
        panic!("the device has no interrupts: {fds:?}")
    };
    assert_eq!(Dpdk::least_spin(&dpdk.rx), Duration::ZERO);
    let details = dpdk.rx.details();
    assert!(details.contains(&("device_interrupts", 1)), "{details:?}");
    // The keeper may take the packet before `poll` looks, so further packets are sent.
    until(|| {
        until(|| {
            dpdk.rx.burst();
            Dpdk::disarm(&mut dpdk.rx, &mut dpdk.tx);
            Dpdk::arm(&mut dpdk.rx, &mut dpdk.tx) == Arm::Wait
        });
        socket.send_to(b"a packet", to).unwrap();
        is_readable(bell, 1000)
    });
    Dpdk::disarm(&mut dpdk.rx, &mut dpdk.tx);
    assert!(!is_readable(bell, 0), "it was emptied");
}
