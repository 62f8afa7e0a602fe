//! A network that fails: a link that goes down, and one that loses everything in one direction.
//!
//! Two namespaces and a link between them. Needs root and `ip`; elsewhere these tests say so and
//! pass, but under `CI`, root must not skip.

use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use dunlin_core::CloseReason;
use dunlin_nexus::Nexus;
use dunlin_transport::auto::Auto;

use super::child::Server;
use super::{NEVER, REVERSE, ended_by_failure, endpoint, exchange, finish, issue};

const LEFT: &str = "10.78.0.1";
const RIGHT: &str = "10.78.0.2";
/// The second that is configured, and half of one that a busy machine may keep our threads waiting;
/// `core` tests the detector itself to the nanosecond.
const TIMEOUT: Duration = Duration::from_millis(1_500);

/// Two namespaces, each with one end of the link, `link0`.
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
        let name = |side| format!("dunlin-nexus-{}-{n}-{side}", std::process::id());
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
        for (ns, address) in [(left, LEFT), (right, RIGHT)] {
            ip(&format!("-n {ns} addr add {address}/24 dev link0"))?;
            ip(&format!("-n {ns} link set link0 up"))?;
            ip(&format!("-n {ns} link set lo up"))?;
        }
        Ok(())
    }

    /// Loses everything that one end sends: it goes to a host that is not there.
    fn lose(&self, from: &str, to: &str) {
        let lost = "lladdr 02:00:00:00:00:99 nud permanent";
        ip(&format!("-n {from} neigh replace {to} {lost} dev link0")).unwrap();
    }

    fn find_again(&self, from: &str, to: &str) {
        ip(&format!("-n {from} neigh del {to} dev link0")).unwrap();
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

fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip").args(arguments.split(' ')).output();
    let output = output.map_err(|error| format!("ip: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        Ok(())
    } else {
        Err(format!("ip {arguments}: {said}"))
    }
}

/// Runs `test` in a thread that lives in a namespace, as do the threads that it starts.
fn inside(namespace: &str, test: impl FnOnce() + Send) {
    let file = std::fs::File::open(format!("/run/netns/{namespace}")).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // SAFETY: a live descriptor of a network namespace; it concerns this thread alone.
            let rc = unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) };
            assert_eq!(rc, 0, "{}", std::io::Error::last_os_error());
            test();
        });
    });
}

/// A client on the left, a server on the right; `break_it` ends what `mend_it` begins again.
fn fails_in_time(break_it: impl Fn(&Network) + Sync, mend_it: impl Fn(&Network) + Sync) {
    let Some(network) = Network::new() else {
        return;
    };
    let mut server = Server::start_in::<Auto>(&network.right, &format!("{RIGHT}:31850"));
    inside(&network.left, || {
        let nexus = Nexus::bind((LEFT, 31_850)).unwrap();
        let mut rpc = endpoint::<Auto>(&nexus);
        let session = rpc.connect_blocking(server.address).unwrap();
        exchange(&mut rpc, session, REVERSE);
        issue(&mut rpc, session, NEVER, b"no answer");
        rpc.run_for(Duration::from_millis(300));
        break_it(&network);
        let broken = Instant::now();
        let done = finish(&mut rpc, TIMEOUT);
        assert!(ended_by_failure(done.result), "{:?}", done.result);
        assert!(broken.elapsed() < TIMEOUT);
        let reason = server.expect("closed");
        let known = [CloseReason::PeerFailed, CloseReason::Reset].map(|r| format!("{r:?}"));
        assert!(known.contains(&reason), "{reason}");
        assert!(
            broken.elapsed() < TIMEOUT,
            "the other side took {:?}",
            broken.elapsed()
        );
        mend_it(&network);
        let session = rpc.connect_blocking(server.address).unwrap();
        exchange(&mut rpc, session, REVERSE);
    });
}

#[test]
fn a_link_that_goes_down_fails_both_sides_in_time() {
    fails_in_time(
        |network| ip(&format!("-n {} link set link0 down", network.right)).unwrap(),
        |network| ip(&format!("-n {} link set link0 up", network.right)).unwrap(),
    );
}

#[test]
fn loss_in_one_direction_fails_both_sides_in_time() {
    fails_in_time(
        |network| network.lose(&network.left, RIGHT),
        |network| network.find_again(&network.left, RIGHT),
    );
    fails_in_time(
        |network| network.lose(&network.right, LEFT),
        |network| network.find_again(&network.right, LEFT),
    );
}
