//! How endpoints connect, and offers that no endpoint makes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use dunlin_core::transport::{PeerId, Tx};
use dunlin_core::{Nanos, Scheme};
use dunlin_transport::connect::{Connect, ConnectError, EndpointUid, Offer, PeerInfo, Pending};
use dunlin_transport::udp::{MAX_DATAGRAM_BYTES, Options, Udp};

use crate::endpoint::{Endpoint, connect, packets, pair};

fn stranger() -> PeerInfo {
    PeerInfo {
        endpoint: EndpointUid([9; 16]),
        same_host: false,
        same_process: false,
        proves: true,
        local: None,
        remote: Some(Ipv4Addr::LOCALHOST.into()),
    }
}

fn accept(endpoint: &mut Endpoint, offer: Offer) -> Result<(PeerId, Offer), ConnectError> {
    Udp::accept(
        &mut endpoint.halves.rx,
        &mut endpoint.halves.tx,
        &stranger(),
        offer,
    )
}

pub(crate) fn offer(endpoint: &mut Endpoint) -> (Pending, Offer) {
    Udp::offer(
        &mut endpoint.halves.rx,
        &mut endpoint.halves.tx,
        &stranger(),
    )
    .unwrap()
}

#[test]
fn both_sides_can_send_to_each_other_at_once() {
    let (mut a, mut b) = (
        Endpoint::new(&Options::default()),
        Endpoint::new(&Options::default()),
    );
    let (to_b, to_a) = connect(&mut a, &mut b);
    a.send(&packets(to_b, 2, 56));
    b.send(&packets(to_a, 2, 56));
    assert_eq!(b.take_packets(2), [(0, 56), (1, 56)]);
    assert_eq!(a.take_packets(2), [(0, 56), (1, 56)]);
}

#[test]
fn a_second_session_uses_the_same_peer_until_both_are_gone() {
    let (mut a, mut b, to_b) = pair(&Options::default());
    assert_eq!(connect(&mut a, &mut b).0, to_b);
    Udp::release(&mut a.halves.rx, &mut a.halves.tx, to_b);
    a.send(&packets(to_b, 1, 56));
    assert_eq!(b.take_packets(1), [(0, 56)]);
    Udp::release(&mut a.halves.rx, &mut a.halves.tx, to_b);
    a.send(&packets(to_b, 1, 56));
    b.assert_silent();
    assert_ne!(connect(&mut a, &mut b).0, to_b);
}

#[test]
fn an_answer_belongs_to_one_offer() {
    let (mut a, mut b) = (
        Endpoint::new(&Options::default()),
        Endpoint::new(&Options::default()),
    );
    let (pending, offered) = offer(&mut a);
    let spent = Pending(pending.0);
    let (_, answer) = accept(&mut b, offered).unwrap();
    let again = Offer {
        bytes: answer.bytes.clone(),
        fds: Vec::new(),
    };
    let (rx, tx) = (&mut a.halves.rx, &mut a.halves.tx);
    Udp::complete(rx, tx, pending, answer).unwrap();
    assert!(matches!(
        Udp::complete(rx, tx, spent, again),
        Err(ConnectError::Gone)
    ));
    Udp::abandon(rx, tx, Pending(12345));
}

#[test]
fn a_bad_answer_abandons_the_offer() {
    let mut a = Endpoint::new(&Options {
        max_peers: 1,
        ..Options::default()
    });
    for _ in 0..3 {
        let (pending, _) = offer(&mut a);
        let (rx, tx) = (&mut a.halves.rx, &mut a.halves.tx);
        let bad = Udp::complete(rx, tx, pending, Offer::default());
        assert!(matches!(bad, Err(ConnectError::Malformed)));
    }
    let (pending, _) = offer(&mut a);
    let (rx, tx) = (&mut a.halves.rx, &mut a.halves.tx);
    assert!(matches!(
        Udp::offer(rx, tx, &stranger()),
        Err(ConnectError::TooManyPeers)
    ));
    Udp::abandon(rx, tx, pending);
    let _pending = offer(&mut a);
}

#[test]
fn offers_of_another_family_reach_no_peer() {
    let mut v4 = Endpoint::new(&Options::default());
    let ip = Ipv6Addr::LOCALHOST.into();
    let mut v6 = Endpoint::new(&Options {
        ip,
        ..Options::default()
    });
    let (_pending, offered) = offer(&mut v6);
    assert!(matches!(
        accept(&mut v4, offered),
        Err(ConnectError::Unreachable)
    ));
}

#[test]
fn a_hundred_thousand_bad_offers_leave_nothing_behind() {
    let mut a = Endpoint::new(&Options {
        max_peers: 2,
        ..Options::default()
    });
    let mut b = Endpoint::new(&Options::default());
    let (_pending, good) = offer(&mut b);
    for n in 0..100_000_usize {
        let mut bytes = good.bytes.clone();
        bytes[n % good.bytes.len()] ^= (n % 255 + 1).to_le_bytes()[0];
        bytes.truncate(n % 40);
        if let Ok((id, _)) = accept(
            &mut a,
            Offer {
                bytes,
                fds: Vec::new(),
            },
        ) {
            Udp::release(&mut a.halves.rx, &mut a.halves.tx, id);
        }
    }
    let (to_b, _) = connect(&mut a, &mut b);
    a.send(&packets(to_b, 1, 56));
    assert_eq!(b.take_packets(1), [(0, 56)]);
}

#[test]
fn options_outside_their_limits_are_refused() {
    let good = Options::default;
    let unspecified = "0.0.0.0".parse().unwrap();
    let bad = [
        Options {
            datagram_bytes: Some(575),
            ..good()
        },
        Options {
            datagram_bytes: Some(MAX_DATAGRAM_BYTES + 1),
            ..good()
        },
        Options {
            data_size: 0,
            ..good()
        },
        Options {
            data_size: MAX_DATAGRAM_BYTES,
            ..good()
        },
        Options {
            loopback_data_size: 0,
            ..good()
        },
        Options {
            loopback_data_size: MAX_DATAGRAM_BYTES,
            ..good()
        },
        Options {
            ip: unspecified,
            advertise: Some(unspecified),
            ..good()
        },
        Options {
            ip: unspecified,
            advertise: Some("::1".parse().unwrap()),
            ..good()
        },
    ];
    for options in bad {
        let error = Udp::open(&options).unwrap_err();
        assert_eq!(
            error.kind(),
            std::io::ErrorKind::InvalidInput,
            "{options:?}"
        );
    }
}

#[test]
fn an_endpoint_bound_to_all_addresses_is_offered_at_one_of_them() {
    let ip = "0.0.0.0".parse().unwrap();
    let any = Options {
        ip,
        ..Options::default()
    };
    // If the control connection has no address, the offer has the loopback address.
    let (mut a, mut b, to_b) = pair(&any);
    a.send(&packets(to_b, 1, 56));
    assert_eq!(b.take_packets(1), [(0, 56)]);
    let (mut a, mut b, to_b) = pair(&Options {
        advertise: Some("127.0.0.2".parse().unwrap()),
        ..any.clone()
    });
    a.send(&packets(to_b, 1, 56));
    assert_eq!(b.take_packets(1), [(0, 56)]);
    // One endpoint at another address of this host, and one that uses both families.
    let mut one = Endpoint::new(&Options {
        ip: "127.0.0.4".parse().unwrap(),
        ..Options::default()
    });
    let Ok(_) = std::net::UdpSocket::bind("[::1]:0") else {
        return;
    };
    let mut dual = Endpoint::new(&Options {
        ip: Ipv6Addr::UNSPECIFIED.into(),
        ..Options::default()
    });
    let (to_dual, to_one) = connect(&mut one, &mut dual);
    one.send(&packets(to_dual, 2, 56));
    assert_eq!(dual.take_packets(2), [(0, 56), (1, 56)]);
    dual.send(&packets(to_one, 2, 56));
    assert_eq!(one.take_packets(2), [(0, 56), (1, 56)]);
}

#[test]
fn the_path_to_a_peer_on_another_host_follows_the_options() {
    let ip = "0.0.0.0".parse().unwrap();
    let mut here = Endpoint::new(&Options {
        ip,
        line_rate: 1_250_000_000,
        base_rtt: Nanos::from_micros(8),
        ..Options::default()
    });
    let mut there = Endpoint::new(&Options {
        ip,
        // No host has this address (RFC 5737).
        advertise: Some("192.0.2.7".parse().unwrap()),
        ..Options::default()
    });
    let (to_there, to_here) = connect(&mut here, &mut there);
    let path = here.halves.tx.path(to_there).unwrap();
    assert_eq!(path.base_rtt, Nanos::from_micros(8));
    assert_eq!(
        (path.line_rate, path.scheme),
        (1_250_000_000, Scheme::Swift)
    );
    assert_eq!(
        there.halves.tx.path(to_here),
        None,
        "loopback declares no path"
    );
}

#[test]
fn an_endpoint_bound_to_all_addresses_is_offered_at_that_of_its_control_connection() {
    let mut any = Endpoint::new(&Options {
        ip: "0.0.0.0".parse().unwrap(),
        ..Options::default()
    });
    let mut told = |local: &str| {
        let peer = PeerInfo {
            local: Some(local.parse().unwrap()),
            ..stranger()
        };
        Udp::offer(&mut any.halves.rx, &mut any.halves.tx, &peer)
    };
    for local in ["127.0.0.3:1", "[::ffff:127.0.0.3]:1"] {
        let (_pending, offer) = told(local).unwrap();
        assert!(offer.bytes.ends_with(&[127, 0, 0, 3]), "{offer:?}");
    }
    // This socket has no address for a peer that came over IPv6.
    assert!(matches!(told("[::1]:1"), Err(ConnectError::Unreachable)));
}

/// The data size that two endpoints with these options agree on; the first makes the offer.
fn agreed(ours: &Options, theirs: &Options) -> u32 {
    let (mut a, mut b) = (Endpoint::new(ours), Endpoint::new(theirs));
    let (to_b, to_a) = connect(&mut a, &mut b);
    let size = Udp::data_size(&a.halves.rx, &a.halves.tx, to_b);
    assert_eq!(Udp::data_size(&b.halves.rx, &b.halves.tx, to_a), size);
    size
}

#[test]
fn packets_are_large_where_no_link_limits_them() {
    let loopback = Options {
        loopback_data_size: 6000,
        ..Options::default()
    };
    assert_eq!(agreed(&loopback, &loopback), 6000);
    // A peer that names another host's address gets packets that an Ethernet carries.
    let elsewhere = Options {
        advertise: Some("192.0.2.1".parse().unwrap()),
        ..loopback.clone()
    };
    assert_eq!(agreed(&loopback, &elsewhere), 1440);
    assert_eq!(agreed(&elsewhere, &loopback), 1440);
    // A small receive buffer holds equally many packets, but smaller ones.
    let small = Options {
        rcvbuf_bytes: 1 << 17,
        ..loopback.clone()
    };
    assert!((3000..5000).contains(&agreed(&loopback, &small)));
    let smallest = Options {
        rcvbuf_bytes: 1,
        ..loopback.clone()
    };
    assert_eq!(agreed(&smallest, &loopback), 1440);
}

/// The answer of an endpoint with these options to an offer of this address: whether the peer must
/// prove the address.
fn answer_to(options: &Options, peer: &PeerInfo, address: &str) -> Result<bool, ConnectError> {
    let mut named = Endpoint::new(&Options {
        advertise: Some(address.parse().unwrap()),
        ..Options::default()
    });
    let (_pending, offer) = offer(&mut named);
    let mut asked = Endpoint::strict(options);
    let (rx, tx) = (&mut asked.halves.rx, &mut asked.halves.tx);
    let (id, _) = Udp::accept(rx, tx, peer, offer)?;
    Ok(Udp::must_prove(rx, tx, id))
}

#[test]
fn an_offer_may_point_only_to_the_other_end_of_its_connection() {
    let over_tcp = |ip: IpAddr| PeerInfo {
        remote: Some(ip),
        ..stranger()
    };
    let plain = Options::default();
    let here = over_tcp([10, 1, 2, 3].into());
    assert!(!answer_to(&plain, &here, "10.1.2.3").unwrap());
    // An address of this host is as foreign as a third host's: the peer is on neither host.
    for address in ["10.1.2.4", "127.0.0.1"] {
        let refused = answer_to(&plain, &here, address);
        assert!(
            matches!(refused, Err(ConnectError::ForeignAddress)),
            "{address}"
        );
    }
    let mapped = over_tcp("::ffff:10.1.2.3".parse().unwrap());
    assert!(!answer_to(&plain, &mapped, "10.1.2.3").unwrap());
    let allowing = Options {
        allow_peers: "10.1.2.4, 192.0.2.0/24".parse().unwrap(),
        ..plain
    };
    assert!(!answer_to(&allowing, &here, "10.1.2.3").unwrap());
    assert!(answer_to(&allowing, &here, "192.0.2.77").unwrap());
    let refused = answer_to(&allowing, &here, "192.0.3.77");
    assert!(matches!(refused, Err(ConnectError::ForeignAddress)));
    // A peer that cannot prove an address gets packets at its own address.
    let old = PeerInfo {
        proves: false,
        ..here
    };
    assert!(!answer_to(&allowing, &old, "10.1.2.3").unwrap());
    let refused = answer_to(&allowing, &old, "192.0.2.77");
    assert!(matches!(refused, Err(ConnectError::ForeignAddress)));
}

/// An endpoint may connect from two addresses, but want its packets at only one.
#[test]
fn each_session_at_another_hosts_address_must_be_proven() {
    let allowing = Options {
        allow_peers: "192.0.2.0/24".parse().unwrap(),
        ..Options::default()
    };
    let mut named = Endpoint::new(&Options {
        advertise: Some("192.0.2.7".parse().unwrap()),
        ..Options::default()
    });
    let mut asked = Endpoint::strict(&allowing);
    for (from, must_prove) in [("192.0.2.7", false), ("10.1.2.3", true), ("10.1.2.3", true)] {
        let peer = PeerInfo {
            remote: Some(from.parse().unwrap()),
            ..stranger()
        };
        let (_pending, offer) = offer(&mut named);
        let (rx, tx) = (&mut asked.halves.rx, &mut asked.halves.tx);
        let (id, _) = Udp::accept(rx, tx, &peer, offer).unwrap();
        assert_eq!(Udp::must_prove(rx, tx, id), must_prove, "from {from}");
    }
}

#[test]
fn an_offer_over_a_unix_socket_may_point_only_to_this_host() {
    let over_unix = PeerInfo {
        same_host: true,
        remote: None,
        ..stranger()
    };
    let plain = Options::default();
    for address in ["127.0.0.1", "127.8.9.10"] {
        assert!(!answer_to(&plain, &over_unix, address).unwrap());
    }
    // The network of documentation (RFC 5737) has no host.
    let refused = answer_to(&plain, &over_unix, "192.0.2.1");
    assert!(matches!(refused, Err(ConnectError::ForeignAddress)));
    // A control connection that has no address and is not a UNIX socket proves nothing.
    let nowhere = PeerInfo {
        same_host: false,
        ..over_unix
    };
    let refused = answer_to(&plain, &nowhere, "127.0.0.1");
    assert!(matches!(refused, Err(ConnectError::ForeignAddress)));
}
