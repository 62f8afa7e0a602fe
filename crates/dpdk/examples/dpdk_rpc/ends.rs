//! Two endpoints of `dpdk` in this process, each at a device of net_ring that receives what the
//! other sends.

use std::time::{Duration, Instant};

use dunlin_core::transport::{Halves, MAX_INLINE, PeerId, Rx, Tx, TxItem};
use dunlin_dpdk::{Dpdk, DpdkRx, DpdkTx, Options};
use dunlin_msgbuf::BufRef;
use dunlin_transport::connect::{EndpointUid, PeerInfo, meet};
use dunlin_transport::udp;

use crate::crossed;

/// Arguments of DPDK that need no huge pages.
const ARGUMENTS: &str = "--no-huge -m 128";

/// How long the neighbours may take to find each other, also under callgrind.
const PATIENCE: Duration = Duration::from_secs(60);

/// Both halves of an endpoint's transport, and the endpoint's number for the other one.
type End = (Halves<DpdkRx, DpdkTx>, PeerId);

/// Two endpoints, each at a device of its own, that know each other's Ethernet addresses. `pack`:
/// their packets may share datagrams.
pub(crate) fn ends(pack: bool) -> (End, End) {
    let open = |device: &str| open(device, pack);
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
    let met = meet::<Dpdk>([&mut a, &mut b], &[info(1), info(2)]);
    let [to_b, to_a] = met.expect("they do not know each other yet");
    greet(&mut a.tx, to_b, &mut b.rx);
    greet(&mut b.tx, to_a, &mut a.rx);
    ((a, to_b), (b, to_a))
}

fn open(device: &str, pack: bool) -> Halves<DpdkRx, DpdkTx> {
    let options = Options {
        device: device.to_owned(),
        udp: udp::Options {
            allow_peers: "0.0.0.0/0".parse().expect("a network"),
            pack,
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
