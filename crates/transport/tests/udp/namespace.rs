//! A network of our own: two namespaces and a link between them. What loopback cannot show: a real
//! MTU, segments that are cut up, a link that goes down, a host that is not there.
//!
//! Needs root and `ip`. Elsewhere these tests say so and pass; under `CI`, root must not skip.

use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use dunlin_transport::udp::Options;

use crate::endpoint::{Endpoint, connect, packets};

const LEFT: &str = "10.77.0.1";
const RIGHT: &str = "10.77.0.2";
const NOBODY: &str = "10.77.0.99";
const LEFT_6: &str = "fd77::1";
const RIGHT_6: &str = "fd77::2";

/// Two namespaces, named after this process; each has one end of the link, `link0`.
struct Network {
    left: String,
    right: String,
}

/// Says why a test does not run here. Where everything must run, that is a failure.
fn skip(why: &str) {
    let allowed = std::env::var_os("DUNLIN_NO_SKIP").is_none_or(|value| value != "1");
    assert!(allowed, "DUNLIN_NO_SKIP is set, and: {why}");
    println!("skipped: {why}");
}

impl Network {
    /// `None` if this machine does not let us.
    fn new() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // SAFETY: asks for a number.
        if unsafe { libc::geteuid() } != 0 {
            skip("network namespaces need root");
            return None;
        }
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = |side| format!("dunlin-{}-{n}-{side}", std::process::id());
        let network = Self {
            left: name("l"),
            right: name("r"),
        };
        if let Err(why) = network.build() {
            skip(&why);
            return None;
        }
        Some(network)
    }

    fn build(&self) -> Result<(), String> {
        let Self { left, right } = self;
        ip(&format!("netns add {left}"))?;
        ip(&format!("netns add {right}"))?;
        ip(&format!(
            "-n {left} link add link0 type veth peer name link0 netns {right}"
        ))?;
        for (ns, v4, v6) in [(left, LEFT, LEFT_6), (right, RIGHT, RIGHT_6)] {
            ip(&format!("-n {ns} addr add {v4}/24 dev link0"))?;
            ip(&format!("-n {ns} addr add {v6}/64 dev link0 nodad"))?;
            ip(&format!("-n {ns} link set link0 up"))?;
        }
        Ok(())
    }

    fn left(&self, options: &Options) -> Endpoint {
        open(&self.left, LEFT, options)
    }

    fn right(&self, options: &Options) -> Endpoint {
        open(&self.right, RIGHT, options)
    }

    /// Packets that the left end of the link has sent.
    fn sent_by_left(&self) -> u64 {
        let path = "/sys/class/net/link0/statistics/tx_packets";
        ip(&format!("netns exec {} cat {path}", self.left))
            .unwrap()
            .trim()
            .parse()
            .unwrap()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for ns in [&self.left, &self.right] {
            // A namespace that was never made cannot be deleted, and that is all right.
            let _ = ip(&format!("netns del {ns}"));
        }
    }
}

fn ip(arguments: &str) -> Result<String, String> {
    let output = Command::new("ip").args(arguments.split(' ')).output();
    let output = output.map_err(|error| format!("ip: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "ip {arguments}: {}",
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Opens an endpoint whose socket lives in `namespace`.
fn open(namespace: &str, address: &str, options: &Options) -> Endpoint {
    let ip: IpAddr = address.parse().unwrap();
    let options = Options {
        ip,
        ..options.clone()
    };
    let file = std::fs::File::open(format!("/run/netns/{namespace}")).unwrap();
    // The thread ends in the other namespace; the socket stays there wherever it is used.
    let inside = std::thread::spawn(move || {
        // SAFETY: a live descriptor of a network namespace; it concerns this thread alone.
        let rc = unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) };
        assert_eq!(rc, 0, "setns: {}", std::io::Error::last_os_error());
        Endpoint::new(&options)
    });
    inside.join().unwrap()
}

#[test]
fn segments_are_cut_up_on_a_link_of_mtu_1500() {
    let Some(network) = Network::new() else {
        return;
    };
    // The link then takes single packets only, so that the kernel must cut.
    ip(&format!(
        "-n {} link set link0 gso_max_segs 1",
        network.left
    ))
    .unwrap();
    let (mut a, mut b) = (
        network.left(&Options::default()),
        network.right(&Options::default()),
    );
    let (to_b, _) = connect(&mut a, &mut b);
    a.send(&packets(to_b, 1, 56));
    b.take_packets(1);
    let before = network.sent_by_left();
    for _ in 0..50 {
        a.send(&packets(to_b, 44, 1464));
        let got = b.take_packets(44);
        assert!(got.iter().map(|(number, _)| *number).eq(0..44));
    }
    assert_eq!(a.counters().syscalls, 51, "one call each");
    assert!(
        network.sent_by_left() - before >= 50 * 44,
        "each segment crossed the link"
    );
}

#[test]
fn both_families_cross_a_link() {
    let Some(network) = Network::new() else {
        return;
    };
    let mut a = open(&network.left, LEFT_6, &Options::default());
    let mut b = open(&network.right, RIGHT_6, &Options::default());
    let (to_b, to_a) = connect(&mut a, &mut b);
    for len in [8, 56, 1400, 1452, 1453, 9000] {
        a.send(&packets(to_b, 30, len));
        assert_eq!(b.take_packets(30).len(), 30);
        b.send(&packets(to_a, 30, len));
        assert_eq!(a.take_packets(30).len(), 30);
    }
    assert_eq!(
        a.counters().tx_dropped_error + b.counters().tx_dropped_error,
        0
    );
}

#[test]
fn segments_beyond_the_mtu_are_sent_one_by_one_from_then_on() {
    let Some(network) = Network::new() else {
        return;
    };
    for ns in [&network.left, &network.right] {
        ip(&format!("-n {ns} link set link0 mtu 1300")).unwrap();
    }
    let (mut a, mut b) = (
        network.left(&Options::default()),
        network.right(&Options::default()),
    );
    let (to_b, _) = connect(&mut a, &mut b);
    let calls = [1, 2].map(|_| {
        let before = a.counters().syscalls;
        // Copied and gathered packets, so that pieces are cut at segments.
        a.send(&[packets(to_b, 9, 400), packets(to_b, 10, 1464)].concat());
        let got = b.take_packets(19);
        assert!(
            got.iter()
                .map(|(number, _)| *number)
                .eq((0..9).chain(0..10))
        );
        a.counters().syscalls - before
    });
    assert!(calls[0] > 10, "refused, then sent one by one: {calls:?}");
    assert_eq!(calls[1], 1, "not tried again");
    assert_eq!(a.counters().tx_packets, 38);
    assert_eq!(a.counters().tx_dropped_error, 0);
}

#[test]
fn a_link_that_is_down_drops_and_comes_back() {
    let Some(network) = Network::new() else {
        return;
    };
    let (mut a, mut b) = (
        network.left(&Options::default()),
        network.right(&Options::default()),
    );
    let (to_b, _) = connect(&mut a, &mut b);
    a.send(&packets(to_b, 3, 1464));
    b.take_packets(3);
    ip(&format!("-n {} link set link0 down", network.left)).unwrap();
    let start = Instant::now();
    for _ in 0..200 {
        a.send(&packets(to_b, 64, 56));
        a.send(&packets(to_b, 64, 1464));
        a.assert_silent();
    }
    assert!(start.elapsed() < Duration::from_secs(5));
    let counters = a.counters();
    assert_eq!(counters.tx_packets, 3);
    assert_eq!(counters.tx_dropped_error, 200 * 128);
    b.assert_silent();
    ip(&format!("-n {} link set link0 up", network.left)).unwrap();
    until_it_arrives(|| a.send(&packets(to_b, 1, 56)).0, &mut b);
}

#[test]
fn a_host_that_is_not_there_fills_the_queue_and_is_dropped() {
    let Some(network) = Network::new() else {
        return;
    };
    let small = Options {
        sndbuf_bytes: 32 << 10,
        ..Options::default()
    };
    let mut a = network.left(&small);
    let mut b = network.right(&Options::default());
    let advertise = Some(NOBODY.parse().unwrap());
    let mut nobody = network.right(&Options {
        advertise,
        ..Options::default()
    });
    let (to_nobody, _) = connect(&mut a, &mut nobody);
    let (to_b, _) = connect(&mut a, &mut b);
    let start = Instant::now();
    for _ in 0..200 {
        a.send(&packets(to_nobody, 64, 1464));
    }
    assert!(start.elapsed() < Duration::from_secs(5));
    let counters = a.counters();
    assert!(counters.tx_dropped_full > 0, "{counters:?}");
    assert_eq!(counters.tx_packets + counters.tx_dropped_full, 200 * 64);
    assert!(
        counters.syscalls <= 400,
        "a full queue ends the burst: {counters:?}"
    );
    // The kernel gives up the address after some seconds, and the queue with it.
    until_it_arrives(|| a.send(&packets(to_b, 1, 56)).0, &mut b);
}

/// Sends again and again, up to ten seconds.
fn until_it_arrives(mut send: impl FnMut() -> u64, to: &mut Endpoint) {
    use dunlin_core::transport::Rx;
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(10) {
        send();
        std::thread::sleep(Duration::from_millis(20));
        if to.halves.rx.burst() > 0 {
            return;
        }
    }
    panic!("nothing arrived any more");
}
