//! `dpdk` over virtual devices: RPCs to itself and to the kernel's `udp`, what the start of DPDK
//! leaves alone, and what a killed process leaves behind. Needs DPDK and the library of this crate;
//! the tests with the kernel need root and `ip` too.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod af_xdp;
mod echo;
mod kernel;
mod life;
#[path = "../conformance/link.rs"]
mod link;
mod memif;
#[path = "../conformance/pair.rs"]
mod pair;
mod vhost;

use dunlin_core::transport::Halves;
use dunlin_dpdk::{Dpdk, DpdkRx, DpdkTx, Options};
use dunlin_testkit::child;
use dunlin_transport::udp;

/// Opens an endpoint at a device, which may talk to any address.
fn open(device: &str) -> Halves<DpdkRx, DpdkTx> {
    Dpdk::open(&options(device)).unwrap()
}

fn options(device: &str) -> Options {
    Options {
        device: device.to_owned(),
        udp: udp::Options {
            allow_peers: "0.0.0.0/0, ::/0".parse().unwrap(),
            ..udp::Options::default()
        },
    }
}

#[test]
fn child() {
    if let Some(role) = child::role() {
        life::play(&role);
    }
}
