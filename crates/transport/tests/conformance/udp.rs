//! Kernel UDP over loopback.

use dunlin_core::transport::Halves;
use dunlin_transport::udp::{Options, Udp, UdpRx, UdpTx};

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

#[test]
fn udp_conforms() {
    suite::run_all::<Loopback>();
}
