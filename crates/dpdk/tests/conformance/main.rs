//! The conformance suite of transports, over `dpdk`: endpoints take turns at two devices of memif,
//! or of net_af_xdp, so half of the pairs talk over the devices, and half within one.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

#[path = "../../../transport/tests/conformance/harness.rs"]
mod harness;
#[path = "../../../transport/tests/conformance/lanes.rs"]
mod lanes;
mod link;
mod pair;
#[expect(dead_code, reason = "each test here runs a half of it")]
#[path = "../../../transport/tests/conformance/suite.rs"]
mod suite;
#[path = "../../../transport/tests/conformance/waking.rs"]
mod waking;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use dunlin_core::transport::Halves;
use dunlin_dpdk::{AutoDpdk, AutoOptions, Dpdk, DpdkRx, DpdkTx, Options, open_auto};
use dunlin_testkit::network::Network;
use dunlin_transport::auto::HalvesOver;
use dunlin_transport::{shm, udp};

use harness::{Endpoint, Harness};

static TURN: Mutex<()> = Mutex::new(());
static OPENED: AtomicUsize = AtomicUsize::new(0);
/// The devices, and the socket at which they meet, until they have met.
static DEVICES: OnceLock<[String; 2]> = OnceLock::new();
static SOCKET: Mutex<Option<pair::Socket>> = Mutex::new(None);
/// The network with the link of the devices of net_af_xdp, until they are open.
static NETWORK: Mutex<Option<Network>> = Mutex::new(None);
static LINKED: OnceLock<[String; 2]> = OnceLock::new();

struct Memif;

/// `auto` over the devices of memif, whose peers are on other hosts.
struct Auto;

struct AfXdp;

impl Harness for Memif {
    type T = Dpdk;
    const COUNTS_FULL: bool = false;
    const QUIET_POLLS: u32 = 1000;
    /// The keeper takes up to a millisecond to wake an endpoint.
    const RACES: u32 = 500;
    const SAME_HOST: bool = false;

    fn open() -> Halves<DpdkRx, DpdkTx> {
        open_with(next_memif(), udp::Options::default().data_size)
    }
}

impl Harness for Auto {
    type T = AutoDpdk;
    const COUNTS_FULL: bool = false;
    const QUIET_POLLS: u32 = 1200;
    const RACES: u32 = 500;
    const SAME_HOST: bool = false;

    fn open() -> HalvesOver<Dpdk> {
        let dpdk = options(next_memif(), udp::Options::default().data_size);
        // The limit of `auto` is the limit of shared memory, which is longer than the packets of
        // the device may be. These tests use the device, so they need its limit.
        static OF_DEVICE: OnceLock<u32> = OnceLock::new();
        let of_device = OF_DEVICE.get_or_init(|| Dpdk::open(&dpdk).unwrap().limits.data_size);
        let shm = shm::Options::default();
        let mut halves = open_auto(&AutoOptions { shm, dpdk }).unwrap();
        halves.limits.data_size = *of_device;
        halves
    }
}

/// The device of memif whose turn it is.
fn next_memif() -> &'static str {
    let turn = OPENED.fetch_add(1, Ordering::Relaxed) % 2;
    let devices = DEVICES.get_or_init(|| {
        // A test has more endpoints than the default allows.
        let place = |number| format!("ip=10.82.0.{number}/24,packets=32767");
        let (socket, devices) = pair::devices(0, place);
        *lock(&SOCKET) = Some(socket);
        devices
    });
    &devices[turn]
}

impl Harness for AfXdp {
    type T = Dpdk;
    const COUNTS_FULL: bool = false;
    const QUIET_POLLS: u32 = 1000;
    const RACES: u32 = 500;
    const SAME_HOST: bool = false;

    fn open() -> Halves<DpdkRx, DpdkTx> {
        let turn = OPENED.fetch_add(1, Ordering::Relaxed) % 2;
        let network = lock(&NETWORK);
        let Some(network) = &*network else {
            let devices = LINKED.get().expect("the devices are open");
            return open_with(&devices[turn], LONG);
        };
        let hosts = [(&network.left, 1), (&network.right, 2)];
        let devices = LINKED.get_or_init(|| {
            let options = format!(",mtu={MTU},packets=16383");
            hosts.map(|(host, number)| link::device(host, number, MTU, &options))
        });
        hosts[turn].0.run(|| open_with(&devices[turn], LONG))
    }
}

/// The longest packets that the driver of AF_XDP has.
const MTU: u16 = 3502;
/// Bytes of a packet that nearly fills them.
const LONG: u32 = MTU as u32 - 40;

/// The options of an endpoint at a device, whose packets have up to `data_size` bytes after their
/// headers.
fn options(device: &str, data_size: u32) -> Options {
    Options {
        device: device.to_owned(),
        udp: udp::Options {
            allow_peers: "0.0.0.0/0".parse().unwrap(),
            data_size,
            ..udp::Options::default()
        },
    }
}

/// An endpoint with these options.
fn open_with(device: &str, data_size: u32) -> Halves<DpdkRx, DpdkTx> {
    let halves = Dpdk::open(&options(device, data_size)).unwrap();
    let most = halves.limits.data_size;
    assert!(most + 60 > data_size, "{most} bytes of {data_size}");
    halves
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins a test: one at a time, and after the devices know each other. Until then packets wait
/// longer than the suite does. `network` has the link of the devices.
fn begin<H: Harness>(network: Option<Network>) -> (MutexGuard<'static, ()>, [Endpoint<H>; 2]) {
    let turn = lock(&TURN);
    *lock(&NETWORK) = network;
    OPENED.store(0, Ordering::Relaxed);
    let [mut one, mut other] = [101, 102].map(Endpoint::<H>::new);
    let (to_other, to_one) = one.connect(&mut other);
    one.send_one(to_other, 1, 64);
    other.send_one(to_one, 1, 64);
    assert_eq!(other.receive(1).len(), 1);
    assert_eq!(one.receive(1).len(), 1);
    *lock(&SOCKET) = None;
    // The devices keep their ends of the link.
    *lock(&NETWORK) = None;
    (turn, [one, other])
}

#[test]
#[ignore = "needs DPDK"]
fn dpdk_conforms_with_packets_staged() {
    let _begun = begin::<Memif>(None);
    harness::stage(true);
    suite::run_each::<Memif>();
    lanes::run_all::<Memif>();
}

#[test]
#[ignore = "needs DPDK"]
fn dpdk_conforms_with_packets_queued() {
    let _begun = begin::<Memif>(None);
    harness::stage(false);
    suite::run_few::<Memif>();
}

#[test]
#[ignore = "needs DPDK"]
fn auto_over_dpdk_conforms() {
    let _begun = begin::<Auto>(None);
    harness::stage(true);
    suite::run_each::<Auto>();
    lanes::run_all::<Auto>();
}

#[test]
#[ignore = "needs DPDK"]
fn dpdk_conforms_over_the_driver_of_af_xdp() {
    let network = Network::new();
    if network.is_none() {
        return;
    }
    let _begun = begin::<AfXdp>(network);
    for staged in [true, false] {
        harness::stage(staged);
        suite::run_few::<AfXdp>();
    }
    lanes::run_all::<AfXdp>();
}
