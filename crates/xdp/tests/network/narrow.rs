//! Paths that have no room for long packets: over a route with a limit, over a link whose router
//! advertises one, and through a gateway that refuses longer packets.

use std::net::{SocketAddrV6, UdpSocket};
use std::os::fd::FromRawFd;

use dunlin_testkit::network::Network;
use dunlin_testkit::wait::until;
use dunlin_xdp::Xdp;

use crate::ends::{Echo, End, at};

#[test]
fn long_packets_take_the_kernels_way_where_a_route_has_no_room_for_them() {
    let Some(network) = Network::new() else {
        return;
    };
    network.right.ip("addr add 10.201.0.1/32 dev lo").unwrap();
    let route = format!("10.201.0.0/16 via {}", network.right.address);
    network
        .left
        .ip(&format!("route add {route} mtu 1300"))
        .unwrap();
    let mut far = at(&network.right, false);
    far.udp.ip = [10, 201, 0, 1].into();
    let a = End::<Xdp>::open(&network.left, 1, &at(&network.left, false));
    let b = End::<Xdp>::open(&network.right, 2, &far);
    let mut echo = Echo::new(a, b);
    echo.calls(100, 32);
    let short = echo.near("tx_datagrams");
    assert!(short > 10);
    echo.calls(3, 20_000);
    let long = echo.near("tx_kernel_long");
    assert!(long > 20, "{long}");
    // The limit of a route may change.
    network.left.ip(&format!("route change {route}")).unwrap();
    echo.calls(100, 32);
    let long = echo.near("tx_kernel_long");
    echo.calls(3, 20_000);
    assert_eq!(echo.near("tx_kernel_long"), long);
    assert!(echo.near("tx_datagrams") > short);
}

/// Sends a router's advertisement (RFC 4861) from the right host: packets of IPv6 on this link have
/// up to `mtu` bytes.
fn advertise(network: &Network, mtu: u32) {
    let mut message = [0; 24];
    (message[0], message[16], message[17]) = (134, 5, 1);
    message[20..].copy_from_slice(&mtu.to_be_bytes());
    network.right.run(|| {
        let (v6, raw, icmp) = (libc::AF_INET6, libc::SOCK_RAW, libc::IPPROTO_ICMPV6);
        // SAFETY: numbers only.
        let fd = unsafe { libc::socket(v6, raw | libc::SOCK_CLOEXEC, icmp) };
        assert!(fd >= 0, "{}", std::io::Error::last_os_error());
        // SAFETY: the descriptor is new, and has no other owner. The kernel treats the socket as it
        // treats one of UDP, and writes the checksum.
        let socket = unsafe { UdpSocket::from_raw_fd(fd) };
        let hops: libc::c_int = 255;
        let size = libc::socklen_t::try_from(size_of_val(&hops)).unwrap();
        let at = (&raw const hops).cast();
        let (level, name) = (libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_HOPS);
        // SAFETY: the value is live, and its size is given.
        let done = unsafe { libc::setsockopt(fd, level, name, at, size) };
        assert_eq!(done, 0);
        // SAFETY: the name ends with a zero.
        let index = unsafe { libc::if_nametoindex(c"link0".as_ptr()) };
        let all_hosts = SocketAddrV6::new("ff02::1".parse().unwrap(), 0, 0, index);
        // Until the kernel has checked its own address, it does not send.
        let _ = socket.send_to(&message, all_hosts);
    });
}

#[test]
fn long_packets_of_ipv6_take_the_kernels_way_where_a_router_has_no_room_for_them() {
    let Some(network) = Network::new() else {
        return;
    };
    let open = |host, number| End::<Xdp>::open(host, number, &at(host, true));
    let mut echo = Echo::new(open(&network.left, 1), open(&network.right, 2));
    echo.calls(3, 20_000);
    assert_eq!(echo.near("tx_kernel_long"), 0);
    until(|| {
        advertise(&network, 1300);
        echo.calls(1, 20_000);
        echo.near("tx_kernel_long") > 10
    });
    // Packets that are short enough still leave in frames.
    let before = (echo.near("tx_datagrams"), echo.near("tx_kernel_long"));
    echo.calls(100, 32);
    assert!(echo.near("tx_datagrams") > before.0 + 10);
    assert_eq!(echo.near("tx_kernel_long"), before.1);
}

#[test]
fn long_packets_of_ipv6_leave_in_frames_again_when_the_interface_has_room_for_them() {
    let Some(network) = Network::new() else {
        return;
    };
    let open = |host, number| End::<Xdp>::open(host, number, &at(host, true));
    let mut echo = Echo::new(open(&network.left, 1), open(&network.right, 2));
    echo.calls(3, 20_000);
    assert_eq!(echo.near("tx_kernel_long"), 0);
    // A host does not take packets that are longer than those it may send.
    let set_mtu = |mtu: u32| {
        for host in [&network.left, &network.right] {
            host.ip(&format!("link set link0 mtu {mtu}")).unwrap();
        }
    };
    set_mtu(1400);
    until(|| {
        echo.calls(1, 20_000);
        echo.near("tx_kernel_long") > 10
    });
    set_mtu(1500);
    until(|| {
        let before = echo.near("tx_kernel_long");
        echo.calls(3, 20_000);
        echo.near("tx_kernel_long") == before
    });
}

/// Makes the right host forward packets from the left host to another host, the left one of
/// `other`, over a link `mid`.
fn forward(network: &Network, other: &Network) {
    let (left, gateway, far) = (&network.left, &network.right, &other.left);
    let place = far.place("mid");
    let name = place.split('/').next().unwrap();
    far.ip("addr flush dev link0").unwrap();
    gateway
        .ip(&format!(
            "link add mid type veth peer name mid netns {name}"
        ))
        .unwrap();
    for (host, address) in [(gateway, "10.202.0.1"), (far, "10.202.0.2")] {
        host.ip(&format!("addr add {address}/24 dev mid")).unwrap();
        host.ip("link set mid up").unwrap();
    }
    gateway
        .run(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1"))
        .unwrap();
    let there = format!("route add 10.202.0.0/24 via {}", gateway.address);
    left.ip(&there).unwrap();
    let back = format!("route add {}/32 via 10.202.0.1", left.address);
    far.ip(&back).unwrap();
}

#[test]
fn packets_that_a_gateway_refuses_take_the_kernels_way() {
    let (Some(network), Some(other)) = (Network::new(), Network::new()) else {
        return;
    };
    forward(&network, &other);
    let mut far = at(&other.left, false);
    "mid".clone_into(&mut far.interface);
    far.udp.ip = [10, 202, 0, 2].into();
    let a = End::<Xdp>::open(&network.left, 1, &at(&network.left, false));
    let b = End::<Xdp>::open(&other.left, 2, &far);
    let mut echo = Echo::new(a, b);
    echo.calls(100, 32);
    assert!(echo.near("tx_datagrams") > 10);
    assert_eq!(echo.near("tx_kernel_long"), 0);
    // The link becomes narrower after both sides have agreed about the size of packets.
    for host in [&network.right, &other.left] {
        host.ip("link set mid mtu 1300").unwrap();
    }
    // The endpoint learns of the limit when it next asks for the path.
    until(|| {
        echo.calls(3, 20_000);
        echo.near("tx_kernel_long") > 20
    });
    // Short packets still leave in frames.
    let before = echo.near("tx_datagrams");
    echo.calls(100, 32);
    assert!(echo.near("tx_datagrams") > before + 10);
}
