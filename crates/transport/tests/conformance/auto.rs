//! Both transports in one endpoint: peers that share memory, and peers that do not.

use dunlin_core::transport::Halves;
use dunlin_transport::auto::{Auto, AutoRx, AutoTx, Options};

use crate::harness::Harness;
use crate::suite;

struct OverMemory;

impl Harness for OverMemory {
    type T = Auto;
    const COUNTS_FULL: bool = true;

    fn open() -> Halves<AutoRx, AutoTx> {
        Auto::open(&Options::default()).unwrap()
    }
}

struct OverUdp;

impl Harness for OverUdp {
    type T = Auto;
    const COUNTS_FULL: bool = false;
    const SAME_HOST: bool = false;

    fn open() -> Halves<AutoRx, AutoTx> {
        Auto::open(&Options::default()).unwrap()
    }
}

#[test]
fn auto_over_memory_conforms() {
    suite::run_all::<OverMemory>();
}

#[test]
fn auto_over_udp_conforms() {
    suite::run_all::<OverUdp>();
}
