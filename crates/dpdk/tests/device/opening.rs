//! Endpoints at devices, which may talk to any address.

use dunlin_core::transport::Halves;
use dunlin_dpdk::{Dpdk, DpdkRx, DpdkTx, Options};
use dunlin_transport::udp;

/// Opens an endpoint at a device.
pub(crate) fn open(device: &str) -> Halves<DpdkRx, DpdkTx> {
    Dpdk::open(&options(device)).unwrap()
}

/// The options of such an endpoint.
pub(crate) fn options(device: &str) -> Options {
    Options {
        device: device.to_owned(),
        udp: udp::Options {
            allow_peers: "0.0.0.0/0, ::/0".parse().unwrap(),
            ..udp::Options::default()
        },
    }
}
