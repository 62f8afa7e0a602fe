//! ECN bits: ECT(0) on everything that is sent, "congestion experienced" read where it matters.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};

use dunlin_core::transport::Rx;
use dunlin_transport::connect::Connect;
use dunlin_transport::udp::{Ecn, Options, Udp};

use crate::endpoint::Endpoint;

fn options(ip: IpAddr) -> (libc::c_int, libc::c_int) {
    match ip {
        IpAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_TOS),
        IpAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
    }
}

fn mark(socket: &UdpSocket, bits: libc::c_int) {
    let (level, name) = options(socket.local_addr().unwrap().ip());
    let value = (&raw const bits).cast();
    // SAFETY: the value is a live number of 4 bytes.
    let rc = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, value, 4) };
    assert_eq!(rc, 0);
}

fn own_mark(endpoint: &Endpoint) -> libc::c_int {
    let mut fds: Vec<RawFd> = Vec::new();
    Udp::fds(&endpoint.halves.rx, &endpoint.halves.tx, &mut fds);
    let (level, name) = options(endpoint.halves.rx.local_addr().ip());
    let (mut bits, mut len): (libc::c_int, _) = (0, 4);
    // SAFETY: the kernel writes at most 4 bytes into a live number.
    let rc = unsafe { libc::getsockopt(fds[0], level, name, (&raw mut bits).cast(), &raw mut len) };
    assert_eq!(rc, 0);
    bits
}

/// For each value of the bits, whether a frame that came with it was reported as congested.
fn reported(ip: IpAddr, ecn: Ecn) -> [bool; 4] {
    let mut endpoint = Endpoint::new(&Options {
        ip,
        ecn,
        ..Options::default()
    });
    assert_eq!(own_mark(&endpoint), 2, "ECT(0)");
    let socket = UdpSocket::bind((ip, 0)).unwrap();
    [0, 1, 2, 3].map(|bits| {
        mark(&socket, bits);
        socket
            .send_to(b"marked", endpoint.halves.rx.local_addr())
            .unwrap();
        while endpoint.halves.rx.burst() == 0 {}
        let frame = endpoint.halves.rx.frame(0);
        assert_eq!(frame.bytes, b"marked");
        frame.congestion
    })
}

#[test]
fn congestion_is_reported_for_both_families() {
    for ip in [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()] {
        assert_eq!(reported(ip, Ecn::On), [false, false, false, true]);
    }
}

#[test]
fn nobody_asks_for_the_bits_on_loopback() {
    for ecn in [Ecn::Auto, Ecn::Off] {
        assert_eq!(reported(Ipv4Addr::LOCALHOST.into(), ecn), [false; 4]);
    }
}
