//! ECN bits: an endpoint sends all datagrams with ECT(0), and reports "congestion experienced" of
//! received ones unless its socket is bound to loopback.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};

use dunlin_core::transport::Rx;
use dunlin_core::{BytesPerSec, Config, EndpointNum, Scheme, SessionOptions, Tag};
use dunlin_testkit::clock::WallClock;
use dunlin_testkit::session;
use dunlin_transport::connect::Connect;
use dunlin_transport::udp::{Ecn, Options, Udp};
use dunlin_wire::ReqType;

use crate::endpoint::{Endpoint, connect};

fn options(ip: IpAddr) -> (libc::c_int, libc::c_int) {
    match ip {
        IpAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_TOS),
        IpAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
    }
}

fn mark(socket: &UdpSocket, bits: libc::c_int) {
    mark_all_of(socket.as_raw_fd(), socket.local_addr().unwrap().ip(), bits);
}

fn mark_all_of(fd: RawFd, ip: IpAddr, bits: libc::c_int) {
    let (level, name) = options(ip);
    let value = (&raw const bits).cast();
    // SAFETY: the value is a live number of 4 bytes.
    let rc = unsafe { libc::setsockopt(fd, level, name, value, 4) };
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
fn the_bits_are_not_read_on_loopback() {
    for ecn in [Ecn::Auto, Ecn::Off] {
        assert_eq!(reported(Ipv4Addr::LOCALHOST.into(), ecn), [false; 4]);
    }
}

/// Echoes of 50 KB over loopback; returns the scheme of the client's session, its rate afterwards,
/// and the number of marks that were echoed to it.
fn after_echoes(scheme: Option<Scheme>, marked: bool) -> (Scheme, Option<BytesPerSec>, u64) {
    let options = Options {
        ecn: Ecn::On,
        ..Options::default()
    };
    let (mut here, mut there) = (Endpoint::new(&options), Endpoint::new(&options));
    let (to_server, to_client) = connect(&mut here, &mut there);
    if marked {
        // There is no router in between, so the client sends its packets with the mark.
        let mut fds: Vec<RawFd> = Vec::new();
        Udp::fds(&here.halves.rx, &here.halves.tx, &mut fds);
        mark_all_of(fds[0], here.halves.rx.local_addr().ip(), 3);
    }
    let clock = WallClock::start;
    let config = Config::default();
    let numbers = [1, 2].map(EndpointNum::chosen);
    let mut client = dunlin_core::Endpoint::<Udp, _, u32>::new(
        0,
        clock(),
        here.halves,
        config.clone(),
        1,
        None,
        numbers[0],
    )
    .unwrap();
    let mut server = dunlin_core::Endpoint::<Udp, _, ()>::new(
        (),
        clock(),
        there.halves,
        config,
        2,
        None,
        numbers[1],
    )
    .unwrap();
    server.on(ReqType(1), |(), req, cx| {
        let data = req.data();
        req.reply(cx, data.len(), |out| out.copy_from_slice(data));
    });
    client.on_completion(|done, end, cx| {
        assert!(end.result.is_ok());
        *done += 1;
        cx.recycle([end.request, end.response]);
    });
    let wanted = SessionOptions {
        scheme,
        ..SessionOptions::DEFAULT
    };
    let peers = [to_server, to_client];
    let [session, _] = session::connect(&mut client, &mut server, peers, &wanted);
    for tag in 0..4 {
        let bufs = [(); 2].map(|()| client.buf(50_000).unwrap());
        let [request, response] = bufs;
        client
            .call(session, ReqType(1), request, response, Tag(tag))
            .unwrap();
    }
    let begin = Instant::now();
    while *client.app() < 4 {
        client.run_once();
        server.run_once();
        assert!(begin.elapsed() < Duration::from_secs(10), "no answers");
    }
    let info = client.session_info(session).unwrap();
    (info.scheme, info.rate, client.counters().congestion_marks)
}

#[test]
fn a_dcqcn_session_slows_down_where_packets_are_marked() {
    let scheme = Some(Scheme::Dcqcn);
    let (chosen, _, marks) = after_echoes(scheme, false);
    assert_eq!((chosen, marks), (Scheme::Dcqcn, 0));
    let (_, rate, marks) = after_echoes(scheme, true);
    assert!(rate.is_some_and(|rate| rate.0 < Options::default().line_rate));
    assert!(marks > 0);
}

#[test]
fn sessions_over_loopback_have_no_congestion_control_unless_asked_for_it() {
    let (chosen, rate, _) = after_echoes(None, false);
    assert_eq!((chosen, rate), (Scheme::None, None));
    assert_eq!(after_echoes(Some(Scheme::Timely), false).0, Scheme::Timely);
}
