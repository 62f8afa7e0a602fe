//! Kernel UDP over loopback.

use std::net::Ipv6Addr;

use dunlin_core::transport::Halves;
use dunlin_transport::udp::{Ecn, Options, Udp, UdpRx, UdpTx};

use crate::harness::Harness;
use crate::suite;

struct Loopback;

impl Harness for Loopback {
    type T = Udp;
    const COUNTS_FULL: bool = false;

    fn open() -> Halves<UdpRx, UdpTx> {
        Udp::open(&Options::default()).unwrap()
    }
}

/// Only the features that every kernel has.
struct Plain;

impl Harness for Plain {
    type T = Udp;
    const COUNTS_FULL: bool = false;

    fn open() -> Halves<UdpRx, UdpTx> {
        let options = Options {
            pack: false,
            gso: false,
            gro: false,
            ..Options::default()
        };
        Udp::open(&options).unwrap()
    }
}

/// IPv6, with control messages for every datagram.
struct Marked;

impl Harness for Marked {
    type T = Udp;
    const COUNTS_FULL: bool = false;

    fn open() -> Halves<UdpRx, UdpTx> {
        let ip = Ipv6Addr::LOCALHOST.into();
        Udp::open(&Options {
            ip,
            ecn: Ecn::On,
            ..Options::default()
        })
        .unwrap()
    }
}

#[test]
fn udp_conforms() {
    suite::run_all::<Loopback>();
}

#[test]
fn udp_without_offloads_conforms() {
    suite::run_all::<Plain>();
}

#[test]
fn udp_over_ipv6_with_ecn_conforms() {
    suite::run_all::<Marked>();
}
