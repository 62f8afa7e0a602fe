//! The conformance suite of transports, over `xdp`: each endpoint in a network namespace of its
//! own, all of them at one bridge. Needs root and `ip`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

#[path = "../../../transport/tests/conformance/harness.rs"]
mod harness;
mod lan;
#[path = "../../../transport/tests/conformance/lanes.rs"]
mod lanes;
#[expect(dead_code, reason = "each test here runs a half of it")]
#[path = "../../../transport/tests/conformance/suite.rs"]
mod suite;
#[path = "../../../transport/tests/conformance/waking.rs"]
mod waking;

use std::io::ErrorKind;
use std::sync::{Mutex, PoisonError};

use dunlin_core::transport::Halves;
use dunlin_testkit::child::{Child, role};
use dunlin_transport::auto::HalvesOver;
use dunlin_transport::{shm, udp};
use dunlin_xdp::{AutoOptions, AutoXdp, Mode, Options, Xdp, XdpRx, XdpTx, open_auto};

use harness::Harness;
use lan::Lan;

/// More polls than pass between two looks at the socket.
const QUIET: u32 = 1200;

/// The network of this process's tests.
static LAN: Mutex<Option<Lan>> = Mutex::new(None);

/// Opens an endpoint on a host that has none.
fn open<H: Send>(mode: Mode, open: impl Fn(Options) -> std::io::Result<H> + Sync) -> H {
    open_on(usize::MAX, 1, mode, open)
}

/// Opens an endpoint on the next of the first `hosts` hosts that has fewer than `endpoints`
/// endpoints.
fn open_on<H: Send>(
    hosts: usize,
    endpoints: u32,
    mode: Mode,
    open: impl Fn(Options) -> std::io::Result<H> + Sync,
) -> H {
    let mut lan = LAN.lock().unwrap_or_else(PoisonError::into_inner);
    let lan = lan.as_mut().unwrap();
    loop {
        let host = lan.next_of(hosts);
        let options = Options {
            interface: "link0".to_owned(),
            mode,
            umem_bytes: u64::from(endpoints) << 20,
            endpoints,
            udp: udp::Options {
                ip: host.address,
                allow_peers: "0.0.0.0/0, ::/0".parse().unwrap(),
                ..udp::Options::default()
            },
            ..Options::default()
        };
        match host.run(|| open(options)) {
            Ok(halves) => return halves,
            Err(error) if error.kind() == ErrorKind::ResourceBusy => {}
            Err(error) => panic!("{error}"),
        }
    }
}

struct Generic;

impl Harness for Generic {
    type T = Xdp;
    const COUNTS_FULL: bool = false;
    const QUIET_POLLS: u32 = QUIET;
    const VISITORS: u16 = 50;

    fn open() -> Halves<XdpRx, XdpTx> {
        open(Mode::Generic, |options| Xdp::open(&options))
    }
}

struct Native;

impl Harness for Native {
    type T = Xdp;
    const COUNTS_FULL: bool = false;
    const QUIET_POLLS: u32 = QUIET;
    const VISITORS: u16 = 50;

    fn open() -> Halves<XdpRx, XdpTx> {
        open(Mode::Native, |options| Xdp::open(&options))
    }
}

/// Endpoints on few hosts, so that they share queues. Those of one host reach each other only
/// through the kernel.
struct Shared;

impl Harness for Shared {
    type T = Xdp;
    const COUNTS_FULL: bool = false;
    const QUIET_POLLS: u32 = QUIET;
    const VISITORS: u16 = 50;

    fn open() -> Halves<XdpRx, XdpTx> {
        open_on(5, 16, Mode::Generic, |options| Xdp::open(&options))
    }
}

/// `auto`, whose peers are on other hosts.
struct Auto;

impl Harness for Auto {
    type T = AutoXdp;
    const COUNTS_FULL: bool = false;
    const QUIET_POLLS: u32 = QUIET;
    const VISITORS: u16 = 50;
    const SAME_HOST: bool = false;

    fn open() -> HalvesOver<Xdp> {
        open(Mode::Generic, |xdp| {
            let shm = shm::Options::default();
            open_auto(&AutoOptions { shm, xdp })
        })
    }
}

/// Runs one half of the suite: every test once, with packets staged where they can be, and the
/// tests of lanes.
fn staged<H: Harness>() {
    harness::stage(true);
    suite::run_each::<H>();
    lanes::run_all::<H>();
}

/// Runs the other half: the tests with packets not staged, without those of lanes and those with
/// many endpoints, because an endpoint takes some 40 ms to open and to close.
fn queued<H: Harness>() {
    harness::stage(false);
    suite::run_few::<H>();
}

/// Runs the tests of this role in a process of their own: descriptors are counted for a whole
/// process, and all wait for the kernel for most of their time.
fn in_own_process(role: &str) {
    let child = Child::start(role);
    let _ = child.rest();
    assert!(child.wait().success(), "{role} does not conform");
}

/// Not a test: runs the tests of the role that the parent's test has set, if this process is a
/// child.
#[test]
fn child() {
    let Some(role) = role() else {
        return;
    };
    let Some(lan) = Lan::new() else {
        return;
    };
    *LAN.lock().unwrap_or_else(PoisonError::into_inner) = Some(lan);
    let outcome = std::panic::catch_unwind(|| match &*role {
        "xdp" => staged::<Generic>(),
        "auto" => staged::<Auto>(),
        "shared" => staged::<Shared>(),
        "native" => queued::<Native>(),
        _ => panic!("{role} is not a role"),
    });
    *LAN.lock().unwrap_or_else(PoisonError::into_inner) = None;
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn xdp_conforms() {
    in_own_process("xdp");
}

#[test]
fn auto_over_xdp_conforms() {
    in_own_process("auto");
}

#[test]
fn xdp_with_shared_queues_conforms() {
    in_own_process("shared");
}

#[test]
fn native_xdp_conforms() {
    in_own_process("native");
}
