//! Endpoints whose sockets are tied to their only peers, until other peers come.

use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};

use dunlin_core::transport::Rx;
use dunlin_transport::connect::Connect;
use dunlin_transport::udp::{Ecn, Options, Udp};

use crate::endpoint::{Endpoint, connect, packets, pair};

/// Whether datagrams of a stranger reach the endpoint.
fn reads_strangers(endpoint: &mut Endpoint) -> bool {
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = endpoint.halves.rx.local_addr().port();
    stranger.send_to(b"x", ("127.0.0.1", port)).unwrap();
    let rx = &mut endpoint.halves.rx;
    (0..10).any(|_| {
        let frames = rx.burst();
        (0..frames).any(|index| rx.frame(index).bytes == b"x")
    })
}

/// Options of endpoints that receive at one address or at all addresses, each with and without ECN.
fn all_options() -> impl Iterator<Item = Options> {
    let ips = [Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED];
    let ways = [Ecn::Off, Ecn::On];
    ips.into_iter().flat_map(move |ip| {
        ways.map(|ecn| Options {
            ip: ip.into(),
            ecn,
            ..Options::default()
        })
    })
}

#[test]
fn an_endpoint_is_tied_from_the_first_packet_of_its_only_peer_on() {
    for options in all_options() {
        let (mut a, mut b, to_b) = pair(&options);
        assert!(reads_strangers(&mut b), "{options:?}");
        a.send(&packets(to_b, 1, 56));
        assert_eq!(b.take_packets(1), [(0, 56)]);
        assert!(!reads_strangers(&mut b), "{options:?}");
        assert!(
            reads_strangers(&mut a),
            "the endpoint has received nothing yet"
        );
        for count in [1, 2, 40] {
            a.send(&packets(to_b, count, 56));
            let taken = b.take_packets(count as usize);
            assert_eq!(taken.len(), count as usize, "{options:?}");
        }
    }
}

#[test]
fn an_endpoint_of_ipv6_or_with_an_advertised_address_is_not_tied() {
    let v6 = Options {
        ip: Ipv6Addr::UNSPECIFIED.into(),
        ..Options::default()
    };
    let advertised = Options {
        ip: Ipv4Addr::UNSPECIFIED.into(),
        advertise: Some(Ipv4Addr::LOCALHOST.into()),
        ..Options::default()
    };
    for options in [v6, advertised] {
        let (mut a, mut b, to_b) = pair(&options);
        a.send(&packets(to_b, 1, 56));
        b.take_packets(1);
        assert!(reads_strangers(&mut b), "{options:?}");
    }
}

#[test]
fn a_second_peer_unties_and_its_end_ties_again() {
    for options in all_options() {
        let (mut a, mut b, to_b) = pair(&options);
        a.send(&packets(to_b, 1, 56));
        b.take_packets(1);
        let mut c = Endpoint::new(&options);
        let (from_c, to_c) = connect(&mut c, &mut b);
        assert!(reads_strangers(&mut b));
        a.send(&packets(to_b, 1, 56));
        c.send(&packets(from_c, 1, 56));
        assert_eq!(b.take_packets(2), [(0, 56), (0, 56)]);
        b.send(&packets(to_c, 3, 56));
        assert_eq!(c.take_packets(3).len(), 3);
        Udp::release(&mut b.halves.rx, &mut b.halves.tx, to_c);
        a.send(&packets(to_b, 1, 56));
        b.take_packets(1);
        assert!(!reads_strangers(&mut b), "{options:?}");
    }
}

#[test]
fn an_offer_unties_because_the_peer_may_send_before_its_answer_has_come() {
    let (mut a, mut b, to_b) = pair(&Options::default());
    a.send(&packets(to_b, 1, 56));
    b.take_packets(1);
    let pending = crate::peers::offer(&mut b).0;
    assert!(reads_strangers(&mut b));
    Udp::abandon(&mut b.halves.rx, &mut b.halves.tx, pending);
    a.send(&packets(to_b, 1, 56));
    b.take_packets(1);
    assert!(!reads_strangers(&mut b));
}

/// The kernel reports to a tied socket that its peer's port is closed. Because of that report, no
/// packet to the next peer at that port may be lost, and nothing may be counted as corrupt.
#[test]
fn a_closed_port_loses_no_later_packet_and_counts_no_corrupt_one() {
    let (mut a, mut b, to_b) = pair(&Options::default());
    let (to_a, _) = connect(&mut b, &mut a);
    b.send(&packets(to_a, 1, 56));
    a.take_packets(1);
    let port = b.halves.rx.local_addr();
    drop(b);
    for _ in 0..3 {
        a.send(&packets(to_b, 1, 56));
    }
    a.assert_silent();
    let next = UdpSocket::bind(port).unwrap();
    next.set_nonblocking(true).unwrap();
    a.send(&packets(to_b, 1, 56));
    assert!(next.recv(&mut [0; 100]).is_ok(), "the next packet arrives");
    a.send(&packets(to_b, 40, 56));
    assert!(next.recv(&mut [0; 65_536]).is_ok());
    a.assert_silent();
    let counters = a.counters();
    assert_eq!((counters.rx_corrupt, counters.tx_dropped_error), (0, 0));
}
