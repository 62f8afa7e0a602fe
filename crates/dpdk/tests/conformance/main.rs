//! The conformance suite of transports, over `dpdk`: endpoints take turns at two devices of memif,
//! so half of the pairs talk over the devices, and half within one.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

#[path = "../../../transport/tests/conformance/harness.rs"]
mod harness;
#[path = "../../../transport/tests/conformance/lanes.rs"]
mod lanes;
mod pair;
#[expect(dead_code, reason = "each test here runs a half of it")]
#[path = "../../../transport/tests/conformance/suite.rs"]
mod suite;
#[path = "../../../transport/tests/conformance/waking.rs"]
mod waking;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use dunlin_core::transport::Halves;
use dunlin_dpdk::{Dpdk, DpdkRx, DpdkTx, Options};
use dunlin_transport::udp;

use harness::{Endpoint, Harness};

static TURN: Mutex<()> = Mutex::new(());
static OPENED: AtomicUsize = AtomicUsize::new(0);
/// The devices, and the socket at which they meet, until they have met.
static DEVICES: OnceLock<[String; 2]> = OnceLock::new();
static SOCKET: Mutex<Option<pair::Socket>> = Mutex::new(None);

struct Memif;

impl Harness for Memif {
    type T = Dpdk;
    const COUNTS_FULL: bool = false;
    const QUIET_POLLS: u32 = 1000;
    /// The keeper takes up to a millisecond to wake an endpoint.
    const RACES: u32 = 500;
    const SAME_HOST: bool = false;

    fn open() -> Halves<DpdkRx, DpdkTx> {
        let turn = OPENED.fetch_add(1, Ordering::Relaxed) % 2;
        let devices = DEVICES.get_or_init(|| {
            // A test has more endpoints than the default allows.
            let place = |number| format!("ip=10.82.0.{number}/24,packets=16383");
            let (socket, devices) = pair::devices(0, place);
            *lock(&SOCKET) = Some(socket);
            devices
        });
        let options = Options {
            device: devices[turn].clone(),
            udp: udp::Options {
                allow_peers: "0.0.0.0/0".parse().unwrap(),
                ..udp::Options::default()
            },
        };
        Dpdk::open(&options).unwrap()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins a test: one at a time, and after the devices know each other. Until then packets wait
/// longer than the suite does.
fn begin() -> (MutexGuard<'static, ()>, [Endpoint<Memif>; 2]) {
    let turn = lock(&TURN);
    let [mut one, mut other] = [101, 102].map(Endpoint::<Memif>::new);
    let (to_other, to_one) = one.connect(&mut other);
    one.send_one(to_other, 1, 64);
    other.send_one(to_one, 1, 64);
    assert_eq!(other.receive(1).len(), 1);
    assert_eq!(one.receive(1).len(), 1);
    *lock(&SOCKET) = None;
    (turn, [one, other])
}

#[test]
#[ignore = "needs DPDK"]
fn dpdk_conforms_with_packets_staged() {
    let _begun = begin();
    harness::stage(true);
    suite::run_each::<Memif>();
    lanes::run_all::<Memif>();
}

#[test]
#[ignore = "needs DPDK"]
fn dpdk_conforms_with_packets_queued() {
    let _begun = begin();
    harness::stage(false);
    suite::run_few::<Memif>();
}
