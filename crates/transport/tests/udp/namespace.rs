//! A network of our own: two namespaces and a link between them. It has features that loopback
//! lacks: a real MTU, segments that are split, a link that goes down, a host that does not exist.
//!
//! Needs root and `ip`. Without them, these tests print that and pass; with `DUNLIN_NO_SKIP=1` they
//! fail instead.

use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::FromRawFd;
use std::time::{Duration, Instant};

use dunlin_testkit::network::{Host, Network};
use dunlin_transport::connect::{PeerInfo, meet};
use dunlin_transport::udp::{Options, Udp};

use crate::endpoint::{Endpoint, connect, packets};

/// An address of the link that no host has.
const NOBODY: &str = "10.79.0.99";

/// Opens an endpoint whose socket is in the namespace of `host`, at one of its addresses. The
/// socket stays in that namespace wherever it is used.
fn open_at(host: &Host, address: &str, options: &Options) -> Endpoint {
    let ip = address.parse().unwrap();
    let options = Options {
        ip,
        ..options.clone()
    };
    host.run(|| Endpoint::new(&options))
}

fn open(host: &Host, options: &Options) -> Endpoint {
    open_at(host, host.address, options)
}

#[test]
fn segments_are_cut_up_on_a_link_of_mtu_1500() {
    let Some(network) = Network::new() else {
        return;
    };
    // With this setting, the link takes single packets only, so the kernel must cut the messages.
    network.left.ip("link set link0 gso_max_segs 1").unwrap();
    let (mut a, mut b) = (
        open(&network.left, &Options::default()),
        open(&network.right, &Options::default()),
    );
    let (to_b, _) = connect(&mut a, &mut b);
    a.send(&packets(to_b, 1, 56));
    b.take_packets(1);
    let before = network.left.sent_packets();
    for _ in 0..50 {
        a.send(&packets(to_b, 44, 1464));
        let got = b.take_packets(44);
        assert!(got.iter().map(|(number, _)| *number).eq(0..44));
    }
    assert_eq!(a.counters().syscalls, 51, "each burst takes one call");
    assert!(
        network.left.sent_packets() - before >= 50 * 44,
        "each segment crossed the link"
    );
}

/// Sends, from the host of `to`, the ICMP message of a router that has refused a long datagram from
/// `from` to `to`.
fn refuse_long(host: &Host, from: SocketAddrV4, to: SocketAddrV4) {
    let mut refused = vec![3, 4, 0, 0, 0, 0];
    // A limit that changes nothing here.
    refused.extend(1500_u16.to_be_bytes());
    // The headers of the refused datagram.
    refused.extend([0x45, 0, 5, 0xDC, 0, 0, 0x40, 0, 64, 17, 0, 0]);
    refused.extend(from.ip().octets().into_iter().chain(to.ip().octets()));
    let ports = [from.port(), to.port(), 1480, 0].map(u16::to_be_bytes);
    refused.extend(ports.concat());
    let sum: u32 = refused
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]))
        .sum();
    let fold = |sum: u32| (sum & 0xFFFF) + (sum >> 16);
    let sum = !u16::try_from(fold(fold(sum))).unwrap();
    refused[2..4].copy_from_slice(&sum.to_be_bytes());
    let [family, raw, icmp] = [libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP];
    // SAFETY: the call reads numbers, and the descriptor that it returns has no other owner.
    let socket = host.run(|| unsafe { UdpSocket::from_raw_fd(libc::socket(family, raw, icmp)) });
    socket.send_to(&refused, from).unwrap();
}

/// The kernel reports to a tied socket that a router has refused a long datagram, which another
/// socket may have sent from the same address. No later datagram may be lost because of that.
#[test]
fn a_refused_long_datagram_loses_no_later_one_and_counts_no_corrupt_one() {
    let Some(network) = Network::new() else {
        return;
    };
    let (mut a, mut b) = (
        open(&network.left, &Options::default()),
        open(&network.right, &Options::default()),
    );
    // The addresses of a control connection between the hosts: a socket is tied to a peer only if
    // the peer offers the address of its connection.
    let info = |peer: &Endpoint, at: &Host, from: &Host| PeerInfo {
        same_host: false,
        same_process: false,
        local: Some(SocketAddr::new(from.address.parse().unwrap(), 1)),
        remote: Some(at.address.parse().unwrap()),
        ..peer.info()
    };
    let infos = [
        info(&a, &network.left, &network.right),
        info(&b, &network.right, &network.left),
    ];
    let met = meet::<Udp>([&mut a.halves, &mut b.halves], &infos);
    let [to_b, to_a] = met.unwrap();
    b.send(&packets(to_a, 1, 56));
    a.take_packets(1);
    let address = |host: &Host, endpoint: &Endpoint| {
        let port = endpoint.halves.rx.local_addr().port();
        SocketAddrV4::new(host.address.parse().unwrap(), port)
    };
    let (from, to) = (address(&network.left, &a), address(&network.right, &b));
    for count in [1, 40] {
        refuse_long(&network.right, from, to);
        std::thread::sleep(Duration::from_millis(50));
        let before = a.counters().syscalls;
        a.send(&packets(to_b, count, 56));
        assert_eq!(a.counters().syscalls, before + 2, "the first call fails");
        assert_eq!(b.take_packets(count as usize).len(), count as usize);
    }
    refuse_long(&network.right, from, to);
    a.assert_silent();
    let counters = a.counters();
    assert_eq!((counters.rx_corrupt, counters.tx_dropped_error), (0, 0));
}

#[test]
fn both_families_cross_a_link() {
    let Some(network) = Network::new() else {
        return;
    };
    let mut a = open_at(&network.left, network.left.address_6, &Options::default());
    let mut b = open_at(&network.right, network.right.address_6, &Options::default());
    let (to_b, to_a) = connect(&mut a, &mut b);
    for len in [8, 56, 1400, 1452, 1453, 9000] {
        a.send(&packets(to_b, 30, len));
        assert_eq!(b.take_packets(30).len(), 30);
        b.send(&packets(to_a, 30, len));
        assert_eq!(a.take_packets(30).len(), 30);
    }
    assert_eq!(
        a.counters().tx_dropped_error + b.counters().tx_dropped_error,
        0
    );
}

#[test]
fn segments_beyond_the_mtu_are_sent_one_by_one_from_then_on() {
    let Some(network) = Network::new() else {
        return;
    };
    for host in [&network.left, &network.right] {
        host.ip("link set link0 mtu 1300").unwrap();
    }
    let (mut a, mut b) = (
        open(&network.left, &Options::default()),
        open(&network.right, &Options::default()),
    );
    let (to_b, _) = connect(&mut a, &mut b);
    let calls = [1, 2].map(|_| {
        let before = a.counters().syscalls;
        // Some packets are copied and some gathered, so that pieces are cut at segments.
        a.send(&[packets(to_b, 9, 400), packets(to_b, 10, 1464)].concat());
        let got = b.take_packets(19);
        assert!(
            got.iter()
                .map(|(number, _)| *number)
                .eq((0..9).chain(0..10))
        );
        a.counters().syscalls - before
    });
    assert!(
        calls[0] > 10,
        "the message is refused, then sent one by one: {calls:?}"
    );
    assert_eq!(calls[1], 1, "the endpoint does not try segments again");
    assert_eq!(a.counters().tx_packets, 38);
    assert_eq!(a.counters().tx_dropped_error, 0);
}

#[test]
fn packets_are_dropped_while_the_link_is_down() {
    let Some(network) = Network::new() else {
        return;
    };
    let (mut a, mut b) = (
        open(&network.left, &Options::default()),
        open(&network.right, &Options::default()),
    );
    let (to_b, _) = connect(&mut a, &mut b);
    a.send(&packets(to_b, 3, 1464));
    b.take_packets(3);
    network.left.ip("link set link0 down").unwrap();
    let start = Instant::now();
    for _ in 0..200 {
        a.send(&packets(to_b, 64, 56));
        a.send(&packets(to_b, 64, 1464));
        a.assert_silent();
    }
    assert!(start.elapsed() < Duration::from_secs(5));
    let counters = a.counters();
    assert_eq!(counters.tx_packets, 3);
    assert_eq!(counters.tx_dropped_error, 200 * 128);
    b.assert_silent();
    network.left.ip("link set link0 up").unwrap();
    until_it_arrives(|| a.send(&packets(to_b, 1, 56)).0, &mut b);
}

#[test]
fn packets_to_a_host_that_does_not_exist_fill_the_queue_and_are_dropped() {
    let Some(network) = Network::new() else {
        return;
    };
    let small = Options {
        sndbuf_bytes: 32 << 10,
        ..Options::default()
    };
    let mut a = open(&network.left, &small);
    let mut b = open(&network.right, &Options::default());
    let advertise = Some(NOBODY.parse().unwrap());
    let mut absent = open(
        &network.right,
        &Options {
            advertise,
            ..Options::default()
        },
    );
    let (to_absent, _) = connect(&mut a, &mut absent);
    let (to_b, _) = connect(&mut a, &mut b);
    let start = Instant::now();
    for _ in 0..200 {
        a.send(&packets(to_absent, 64, 1464));
    }
    assert!(start.elapsed() < Duration::from_secs(5));
    let counters = a.counters();
    assert!(counters.tx_dropped_full > 0, "{counters:?}");
    assert_eq!(counters.tx_packets + counters.tx_dropped_full, 200 * 64);
    assert!(
        counters.syscalls <= 400,
        "a full queue ends the burst: {counters:?}"
    );
    // After some seconds the kernel gives up the address, and drops the packets that are queued for
    // it.
    until_it_arrives(|| a.send(&packets(to_b, 1, 56)).0, &mut b);
}

/// Sends again and again until a packet arrives, for at most ten seconds.
fn until_it_arrives(mut send: impl FnMut() -> u64, to: &mut Endpoint) {
    use dunlin_core::transport::Rx;
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(10) {
        send();
        std::thread::sleep(Duration::from_millis(20));
        if to.halves.rx.burst() > 0 {
            return;
        }
    }
    panic!("no packet arrived");
}
