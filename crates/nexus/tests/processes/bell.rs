//! All peers of an endpoint over shared memory can write into its doorbell. A peer that clears it,
//! or rings it without end, delays no call of another peer, although the server sleeps between
//! calls.

use std::fs::{self, File, OpenOptions};
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use dunlin_core::Session;
use dunlin_nexus::{Nexus, Rpc};
use dunlin_transport::shm::Shm;

use super::child::{Server, say};
use super::{App, REVERSE, endpoint, exchange};

/// The name of the memory of doorbells.
const BELL: &str = "/memfd:dunlin-doorbell";
/// The length of the start of a doorbell's memory that contains the whole doorbell.
const LEN: usize = 1024;
/// A pause between calls, long enough for the server to sleep: it spins for 50 µs.
const PAUSE: Duration = Duration::from_millis(3);
/// Half of the calls must be faster than this: a receiver that cannot rely on its bell looks again
/// after this time.
const LOOK_AGAIN: Duration = Duration::from_millis(1);
/// A call that takes longer was noticed only at the end of the server's sleep, which lasts 50 ms.
const SLOW: Duration = Duration::from_millis(5);
/// A server that no bell wakes makes nearly all calls slow, in every window; a busy machine makes
/// them slow in some windows.
const WINDOWS: usize = 8;

#[test]
fn while_a_peer_clears_the_doorbell_other_peers_still_wake_the_server() {
    calls_are_quick_beside(0);
}

#[test]
fn a_peer_that_rings_the_doorbell_without_end_delays_no_other() {
    calls_are_quick_beside(0xFF);
}

fn calls_are_quick_beside(byte: u8) {
    let server = Server::start::<Shm>(0);
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut rpc = endpoint::<Shm>(&nexus);
    let session = rpc.connect_blocking(server.address).unwrap();
    let mut writer = Server::bell_writer(server.address, byte);
    // The writer has mapped its own doorbell and the server's.
    assert_eq!(writer.expect("writes"), "2");
    let mut seen = Vec::new();
    for _ in 0..WINDOWS {
        let window = Window::measure(&mut rpc, session);
        if window.is_quick() {
            return;
        }
        seen.push(window);
    }
    panic!("no window was quick: {seen:?}");
}

/// The calls of a second.
#[derive(Debug)]
struct Window {
    calls: usize,
    slow: usize,
    middle: Duration,
}

impl Window {
    fn measure(rpc: &mut Rpc<Shm, App>, session: Session) -> Self {
        let (begun, mut times) = (Instant::now(), Vec::new());
        while begun.elapsed() < Duration::from_secs(1) {
            rpc.run_for(PAUSE);
            let issued = Instant::now();
            exchange(rpc, session, REVERSE);
            times.push(issued.elapsed());
        }
        times.sort();
        Self {
            calls: times.len(),
            slow: times.iter().filter(|time| **time > SLOW).count(),
            middle: times[times.len() / 2],
        }
    }

    /// Whether the server was woken for nearly all calls. Some may be late on any machine.
    fn is_quick(&self) -> bool {
        self.middle <= LOOK_AGAIN && self.slow <= 3 + self.calls / 20
    }
}

/// The program of the writer.
pub(super) fn run(nexus: &Nexus, server: SocketAddr, byte: u8) {
    let mut rpc = endpoint::<Shm>(nexus);
    let session = rpc.connect_blocking(server).unwrap();
    exchange(&mut rpc, session, REVERSE);
    let memory = OpenOptions::new().write(true).open("/proc/self/mem");
    let (memory, bells): (File, Vec<u64>) = (memory.unwrap(), bells());
    say(&format!("writes {}", bells.len()));
    loop {
        for bell in &bells {
            memory.write_all_at(&[byte; LEN], *bell).unwrap();
        }
    }
}

/// The addresses of the doorbells that this process has mapped.
fn bells() -> Vec<u64> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let bells = maps.lines().filter(|line| line.contains(BELL));
    let start = |line: &str| u64::from_str_radix(line.split_once('-').unwrap().0, 16).unwrap();
    bells.map(start).collect()
}
