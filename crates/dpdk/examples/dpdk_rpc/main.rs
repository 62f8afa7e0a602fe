//! RPCs between two endpoints of `dpdk` over two devices of net_ring, in one thread and with a
//! clock that only counts. `cargo xtask budget` runs it under callgrind, and compares the cost of
//! the transport, without the driver, with `budget.toml`. It needs DPDK and `libdunlin_dpdk.so`.
//!
//! ```text
//! cargo run --release -p dunlin-dpdk --features with-dpdk --example dpdk_rpc -- \
//!     32 [IN_FLIGHT] [SESSIONS] [COUNT]
//! ```
//!
//! Messages have 32 bytes each way, and each packet has a datagram of its own. The last printed
//! line is the number of counted RPCs.

#[path = "../../../transport/examples/rpc/apart.rs"]
mod apart;
#[path = "../../../transport/examples/rpc/mod.rs"]
mod rpc;

mod crossed;

use std::time::{Duration, Instant};

use dunlin_core::transport::{Halves, MAX_INLINE, PeerId, Rx, Tx, TxItem};
use dunlin_dpdk::{Dpdk, DpdkRx, DpdkTx, Options};
use dunlin_msgbuf::BufRef;
use dunlin_transport::connect::{Connect, EndpointUid, PeerInfo};
use dunlin_transport::udp;

use apart::{Apart, Client, Server, apart, plan_of_32_bytes};
use rpc::{End, run};

/// Arguments of DPDK that need no huge pages.
const ARGUMENTS: &str = "--no-huge -m 128";

/// How long the neighbours may take to find each other, also under callgrind.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() {
    let plan = plan_of_32_bytes();
    let ((near, to_far), (far, to_near)) = ends();
    let ends = ((apart(near), to_far), (apart(far), to_near));
    println!(
        "{}",
        run::<Apart<Dpdk, Client>, Apart<Dpdk, Server>, 32, false>(&plan, ends)
    );
}

/// Two endpoints, each at a device of its own, that know each other's Ethernet addresses.
fn ends() -> (End<Dpdk>, End<Dpdk>) {
    // DPDK starts with the first device.
    let _first = open(&format!("net_null0;ip=10.86.1.1/24;{ARGUMENTS}"));
    let site = |number: u8, device: &str| format!("{device};ip=10.86.0.{number}/24;{ARGUMENTS}");
    let [one, other] = crossed::devices();
    let (mut a, mut b) = (open(&site(1, &one)), open(&site(2, &other)));
    let info = |number: u8| PeerInfo {
        endpoint: EndpointUid([number; 16]),
        same_host: false,
        same_process: false,
        proves: true,
        local: None,
        remote: Some([192, 0, 2, number].into()),
    };
    let (pending, offer) = Dpdk::offer(&mut a.rx, &mut a.tx, &info(2)).expect("a new endpoint");
    let (to_a, answer) = Dpdk::accept(&mut b.rx, &mut b.tx, &info(1), offer).expect("an offer");
    let to_b = Dpdk::complete(&mut a.rx, &mut a.tx, pending, answer).expect("an answer");
    greet(&mut a.tx, to_b, &mut b.rx);
    greet(&mut b.tx, to_a, &mut a.rx);
    ((a, to_b), (b, to_a))
}

fn open(device: &str) -> Halves<DpdkRx, DpdkTx> {
    let options = Options {
        device: device.to_owned(),
        udp: udp::Options {
            allow_peers: "0.0.0.0/0".parse().expect("a network"),
            pack: false,
            ..udp::Options::default()
        },
    };
    Dpdk::open(&options).expect("the device opens")
}

/// Sends a packet until it arrives. The first one waits for the neighbour's address.
fn greet(tx: &mut DpdkTx, peer: PeerId, rx: &mut DpdkRx) {
    let packet = TxItem {
        peer,
        inline_len: 24,
        inline: [0; MAX_INLINE],
        data: BufRef::EMPTY,
    };
    let begin = Instant::now();
    tx.burst(&[packet]);
    while rx.burst() == 0 {
        assert!(begin.elapsed() < PATIENCE, "no packet arrives");
    }
    // Gives the packet back.
    rx.burst();
}
