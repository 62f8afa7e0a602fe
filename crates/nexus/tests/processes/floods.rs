//! Peers that ask without end, with or without reading the answers: others find the control thread
//! as quick as ever, and its memory stays small.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dunlin_transport::udp::Udp;
use dunlin_wire::control::{AttemptId, EndpointIndex, InsightRead, Lookup, MAX_INSIGHT, Message};

use super::REVERSE;
use super::child::Server;
use super::exchange;
use super::hostile::{Scene, connect, frame, hello};

/// Peers that never read what they ask for.
const DEAF: usize = 40;

/// Bytes of buffers that a link may cost before nothing more of it is read: 256 KiB, in a buffer
/// that grows by doubling, and what was read and not looked at.
const COST_KIB: usize = 2 * 256 + 64;

fn lookup() -> Vec<u8> {
    let attempt = AttemptId(1);
    let target = EndpointIndex::ANY;
    frame(&Message::Lookup(Lookup { attempt, target }))
}

fn read() -> Vec<u8> {
    let len = u16::try_from(MAX_INSIGHT).unwrap();
    frame(&Message::InsightRead(InsightRead { offset: 0, len }))
}

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

/// A connection that has said hello and does not block.
fn greeted(address: SocketAddr) -> TcpStream {
    let mut stream = connect(address);
    stream.write_all(&frame(&hello(1))).unwrap();
    stream.set_nonblocking(true).unwrap();
    stream
}

/// Asks over all of these connections, as fast as they take it, until `done`; reads the answers,
/// or does not.
fn flood(streams: &mut [TcpStream], question: &[u8], reads: bool, mut done: impl FnMut() -> bool) {
    // Whole questions, so that a connection which takes half of them goes on where it was.
    let many = question.repeat(64 << 10).into_boxed_slice();
    let mut sent = vec![0; streams.len()];
    let mut answers = vec![0; 256 << 10];
    while !done() {
        for (stream, sent) in streams.iter_mut().zip(&mut sent) {
            if reads {
                let _ = stream.read(&mut answers);
            }
            let at = *sent % question.len();
            *sent += stream.write(&many[at..at + (64 << 10)]).unwrap_or(0);
        }
    }
}

/// The most memory that a process has had, in KiB.
fn peak(process: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.unwrap().parse().unwrap()
}

#[test]
fn a_peer_that_does_not_read_costs_what_is_counted() {
    for question in [frame(&Message::Heartbeat { counter: 1 }), lookup()] {
        let server = Server::start::<Udp>(0);
        let before = peak(server.id());
        let mut streams: Vec<_> = (0..DEAF).map(|_| greeted(server.address)).collect();
        streams.iter().for_each(shrink);
        let start = Instant::now();
        let span = Duration::from_millis(900);
        flood(&mut streams, &question, false, || start.elapsed() > span);
        let grown = peak(server.id()) - before;
        let most = DEAF * COST_KIB + (4 << 10);
        assert!(grown < most, "{grown} KiB for {DEAF} peers");
    }
}

/// Ends a flood, also when the test fails meanwhile.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Sessions of others live through it, and new ones are made beside it.
fn lives_through(count: usize, question: &[u8]) {
    let mut scene = Scene::new();
    let address = scene.address();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _ending = Ending(&over);
        scope.spawn(|| {
            let mut streams: Vec<_> = (0..count).map(|_| greeted(address)).collect();
            flood(&mut streams, question, true, || {
                over.load(Ordering::Relaxed)
            });
        });
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(4) {
            exchange(&mut scene.rpc, scene.session, REVERSE);
            scene.rpc.run_for(Duration::from_millis(50));
        }
        assert_eq!(
            scene.rpc.app().events.len(),
            1,
            "{:?}",
            scene.rpc.app().events
        );
        let asked = Instant::now();
        scene.check();
        eprintln!("a new session took {:?} beside the flood", asked.elapsed());
    });
}

#[test]
fn twenty_readers_of_counters_end_no_session() {
    lives_through(20, &read());
}

#[test]
fn sixty_askers_for_endpoints_end_no_session() {
    lives_through(60, &lookup());
}
