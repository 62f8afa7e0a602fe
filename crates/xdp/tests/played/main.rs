//! The conformance suite of transports, over `xdp` whose four rings a kernel in user space serves.
//! Needs no privilege, and no device.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

#[path = "../../../transport/tests/conformance/harness.rs"]
mod harness;
#[path = "../../../transport/tests/conformance/lanes.rs"]
mod lanes;
#[path = "../../../transport/tests/conformance/suite.rs"]
mod suite;
#[path = "../../../transport/tests/conformance/waking.rs"]
mod waking;

use dunlin_core::transport::Halves;
use dunlin_xdp::{Xdp, XdpRx, XdpTx, wire};

use harness::Harness;

struct Played;

impl Harness for Played {
    type T = Xdp;
    const COUNTS_FULL: bool = false;
    /// More polls than pass between two looks at the socket.
    const QUIET_POLLS: u32 = 1200;
    /// Packets to an own address come through the kernel's socket, which no program plays.
    const REACHES_ITSELF: bool = false;

    fn open() -> Halves<XdpRx, XdpTx> {
        wire::open().unwrap()
    }
}

#[test]
fn xdp_conforms_over_rings_that_a_program_serves() {
    suite::run_all::<Played>();
}
