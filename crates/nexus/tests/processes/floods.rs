//! Peers that ask without end, whether they read the answers or not: the control thread serves
//! others as quickly as before, and its memory stays small.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dunlin_testkit::stranger::{
    Flood, MOST_AT_ONCE, frame, greeted, heartbeat, hello, insight_read, lookup,
};
use dunlin_transport::udp::Udp;

use super::REVERSE;
use super::child::Server;
use super::crowds::visit;
use super::exchange;
use super::hostile::Scene;
use super::relay::{ask, connect_unix};

/// The number of peers that never read their answers. It is small, because the kernel takes some
/// megabytes of answers for each peer before any answers wait in the server.
const DEAF: usize = 4;

/// If the server reads none of their bytes for this time, it has stopped reading.
const SILENCE: Duration = Duration::from_millis(300);

/// A server that still reads after this long never stops.
const LONGEST: Duration = Duration::from_secs(10);

/// Most KiB of buffers that a link may cost before the server stops reading it: 256 KiB, in a
/// buffer that grows by doubling, and the bytes that were read but not yet handled.
const COST_KIB: usize = 2 * 256 + 64;

/// The number of connections over the UNIX socket, whose buffers in the kernel are small and of one
/// size. Each has more questions than the server can answer within the limit of a single link.
/// Together they may cost the limit of the process, in buffers that grow by doubling, and a little
/// for each.
const MANY_DEAF: usize = 300;
const QUESTIONS: usize = 200;
const TOTAL_KIB: usize = 40 << 10;

/// The number of connections that end at the same time, each with as many unread questions as the
/// kernel keeps for the server. Answering all of them would take the server longer than the failure
/// timeout.
const ENDING: usize = 300;

/// Makes a connection's receive buffer so small that unread answers wait in the server.
fn shrink(stream: &TcpStream) {
    let bytes: libc::c_int = 4096;
    // SAFETY: the call reads an integer from `bytes`, which lives until it returns.
    let done = unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVBUF,
            (&raw const bytes).cast(),
            4,
        )
    };
    assert_eq!(done, 0);
}

/// The peak memory of a process, in KiB.
fn peak(process: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.unwrap().parse().unwrap()
}

#[test]
fn a_peer_that_does_not_read_costs_no_more_memory_than_is_counted() {
    for question in [heartbeat(), lookup()] {
        let server = Server::start::<Udp>(0);
        let before = peak(server.id());
        let streams: Vec<_> = (0..DEAF)
            .map(|_| greeted(server.address).unwrap())
            .collect();
        streams.iter().for_each(shrink);
        let mut flood = Flood::new(streams, &question);
        let (start, mut read) = (Instant::now(), Instant::now());
        while read.elapsed() < SILENCE {
            if flood.turn(false, MOST_AT_ONCE) > 0 {
                read = Instant::now();
            }
            assert!(start.elapsed() < LONGEST, "the server reads without end");
        }
        let grown = peak(server.id()) - before;
        eprintln!("{grown} KiB for {DEAF} peers in {:?}", start.elapsed());
        let most = DEAF * COST_KIB + (2 << 10);
        assert!(grown < most, "{grown} KiB for {DEAF} peers");
    }
}

/// Waits until the peak of a process's memory stays the same for as long as a server that still
/// reads would need to change it.
fn settled_peak(process: u32) -> usize {
    let (begun, mut last) = (Instant::now(), 0);
    loop {
        let now = peak(process);
        if now == last {
            return now;
        }
        assert!(begun.elapsed() < LONGEST, "the server grows without end");
        last = now;
        std::thread::sleep(SILENCE);
    }
}

/// Without a limit for all connections together, they would cost 256 KiB each.
#[test]
fn peers_that_do_not_read_cost_no_more_memory_than_the_total() {
    // The peers acknowledge no heartbeat, and stay for the whole test.
    let server = Server::start_limited::<Udp>("127.0.0.1:0", "timeout=60000");
    let before = peak(server.id());
    let unix = ask(server.address).unix_name;
    let questions = [frame(&hello(1)), insight_read().repeat(QUESTIONS)].concat();
    let deaf = (0..MANY_DEAF).map(|_| {
        let mut stream = connect_unix(&unix);
        stream.write_all(&questions).unwrap();
        stream
    });
    let deaf: Vec<_> = deaf.collect();
    let mut times: Vec<_> = (0..5).map(|_| visit(server.address)).collect();
    let grown = settled_peak(server.id()) - before;
    eprintln!("{grown} KiB for {MANY_DEAF} peers; new sessions took {times:?}");
    assert!(grown < TOTAL_KIB, "{grown} KiB for {MANY_DEAF} peers");
    times.sort();
    assert!(times[2] < Duration::from_millis(100), "{times:?}");
    drop(deaf);
}

/// Ends a flood, even if the test fails meanwhile.
pub(super) struct Ending<'a>(pub(super) &'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs an attack against a server for four seconds, while a client of the server makes calls, and
/// checks that the client's session survives. `meanwhile` runs at the end of the attack.
fn lives_through(
    attack: impl FnOnce(SocketAddr, &AtomicBool) + Send,
    meanwhile: impl FnOnce(&mut Scene),
) {
    let mut scene = Scene::new();
    let address = scene.address();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _ending = Ending(&over);
        scope.spawn(|| attack(address, &over));
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(4) {
            exchange(&mut scene.rpc, scene.session, REVERSE);
            scene.rpc.run_for(Duration::from_millis(50));
        }
        let events = &scene.rpc.app().events;
        assert_eq!(events.len(), 1, "{events:?}");
        meanwhile(&mut scene);
    });
    scene.check();
}

/// Sessions of other clients survive questions without end, and new sessions are made meanwhile.
fn lives_through_questions(count: usize, question: &[u8]) {
    let attack = |address, over: &AtomicBool| {
        let mut flood = Flood::lasting(address, count, question).unwrap();
        while !over.load(Ordering::Relaxed) {
            flood.turn(true, MOST_AT_ONCE);
        }
    };
    lives_through(attack, |scene| {
        let asked = Instant::now();
        scene.check();
        eprintln!("a new session took {:?} during the flood", asked.elapsed());
    });
}

#[test]
fn twenty_readers_of_counters_end_no_session() {
    lives_through_questions(20, &insight_read());
}

#[test]
fn sixty_askers_for_endpoints_end_no_session() {
    lives_through_questions(60, &lookup());
}

/// Nearly as many connections as a server takes, each with questions at all times.
#[test]
fn five_hundred_askers_for_endpoints_end_no_session() {
    lives_through_questions(500, &lookup());
}

/// The answers to these questions could not be sent, so the control thread does not compute them.
#[test]
fn connections_that_end_before_their_questions_are_read_end_no_session() {
    let attack = |address, over: &AtomicBool| {
        while !over.load(Ordering::Relaxed) {
            // The server may refuse some, while earlier ones are still ending.
            let streams = (0..ENDING).filter_map(|_| greeted(address).ok());
            let mut flood = Flood::new(streams.collect(), &lookup());
            flood.turn(false, MOST_AT_ONCE);
        }
    };
    lives_through(attack, |_| ());
}
