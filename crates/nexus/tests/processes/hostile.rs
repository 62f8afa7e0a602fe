//! A hostile or broken process at the control port can do nothing that other processes notice.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use dunlin_control::PlaneCounters;
use dunlin_core::{Rng, Session};
use dunlin_nexus::{Nexus, Rpc};
use dunlin_testkit::stranger::{frame, heartbeat, hello, lookup};
use dunlin_transport::udp::Udp;
use dunlin_wire::control::{GoodbyeReason, Message, frame_len};

use super::child::Server;
use super::{App, REVERSE, endpoint, exchange};

/// A server in another process, and a client whose session must not be disturbed.
pub(super) struct Scene {
    pub(super) server: Server,
    pub(super) rpc: Rpc<Udp, App>,
    pub(super) session: Session,
}

impl Scene {
    pub(super) fn new() -> Self {
        let server = Server::start::<Udp>(0);
        let nexus = Nexus::bind("127.0.0.1:0").unwrap();
        let mut rpc = endpoint::<Udp>(&nexus);
        let session = rpc.connect_blocking(server.address).unwrap();
        Self {
            server,
            rpc,
            session,
        }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.server.address
    }

    /// Checks that the session works, and that a new session works too.
    pub(super) fn check(&mut self) {
        exchange(&mut self.rpc, self.session, REVERSE);
        let fresh = self.rpc.connect_blocking(self.server.address).unwrap();
        exchange(&mut self.rpc, fresh, REVERSE);
        self.rpc.disconnect(fresh).unwrap();
        self.rpc.run_once();
    }
}

pub(super) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    stream
}

/// All bytes until the other side closes; panics if it does not.
fn rest(mut stream: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}"),
    }
    bytes
}

#[test]
fn garbage_closes_its_connection_and_no_other() {
    let mut scene = Scene::new();
    let mut rng = Rng::new(7);
    for length in [1, 3, 4, 5, 17, 300, 5_000] {
        let mut stream = connect(scene.address());
        let bytes: Vec<u8> = (0..length)
            .map(|_| rng.next_u64().to_be_bytes()[0])
            .collect();
        stream.write_all(&bytes).unwrap();
        rest(stream);
    }
    let mut stream = connect(scene.address());
    let mut http = b"GET / HTTP/1.1\r\n\r\n".to_vec();
    http.extend([0; 100]);
    stream.write_all(&http).unwrap();
    rest(stream);
    scene.check();
}

#[test]
fn another_version_gets_a_goodbye() {
    let mut scene = Scene::new();
    let mut stream = connect(scene.address());
    stream.write_all(&frame(&hello(77))).unwrap();
    let goodbye = frame(&Message::Goodbye {
        reason: GoodbyeReason::Version,
    });
    assert_eq!(rest(stream), goodbye);
    scene.check();
}

#[test]
fn half_messages_and_slow_senders_are_closed_in_time() {
    let mut scene = Scene::new();
    let whole = frame(&hello(1));
    let mut half = connect(scene.address());
    half.write_all(&whole[..whole.len() / 2]).unwrap();
    let mut slow = connect(scene.address());
    let silent = connect(scene.address());
    let mut greeted = connect(scene.address());
    greeted.write_all(&whole).unwrap();
    greeted
        .write_all(&frame(&Message::Heartbeat { counter: 1 })[..7])
        .unwrap();
    let start = Instant::now();
    let mut open = true;
    for byte in whole.iter().cycle() {
        open = open && slow.write_all(&[*byte]).is_ok();
        std::thread::sleep(Duration::from_millis(100));
        if start.elapsed() > Duration::from_secs(2) {
            break;
        }
    }
    assert!(!open, "the connection is served for ever");
    scene.check();
    // The server gives each of these connections one second, and two have passed.
    let waited = Instant::now();
    for stream in [half, slow, silent, greeted] {
        rest(stream);
    }
    assert!(
        waited.elapsed() < Duration::from_secs(1),
        "{:?}",
        waited.elapsed()
    );
}

#[test]
fn ten_thousand_connections_disturb_no_client() {
    let mut scene = Scene::new();
    let before = memory(scene.server.id());
    let mut open = Vec::new();
    for n in 0..10_000 {
        let mut stream = connect(scene.address());
        match n % 3 {
            0 => {}
            1 => stream.write_all(&frame(&hello(1))).unwrap_or_default(),
            _ => stream.write_all(&[1, 2]).unwrap_or_default(),
        }
        open.push(stream);
        if open.len() == 200 {
            open.clear();
        }
        if n % 2_500 == 0 {
            scene.check();
        }
    }
    scene.check();
    let grown = memory(scene.server.id()).saturating_sub(before);
    assert!(grown < 16 << 10, "the server grew by {grown} KiB");
    drop(open);
}

/// Resident memory of a process in KiB.
fn memory(process: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_peer_that_asks_and_never_reads_is_cut_off() {
    let mut scene = Scene::new();
    let mut stream = connect(scene.address());
    stream
        .set_write_timeout(Some(Duration::from_secs(3)))
        .unwrap();
    stream.write_all(&frame(&hello(1))).unwrap();
    let many = lookup().repeat(1_000);
    let start = Instant::now();
    // The peer acknowledges no heartbeats either, so the connection must end within a second.
    while stream.write_all(&many).is_ok() {
        assert!(
            start.elapsed() < Duration::from_secs(10),
            "the connection is served for ever"
        );
    }
    scene.check();
}

/// The number of heartbeats among the bytes that have come over a connection and that the test has
/// not read.
fn heartbeats(stream: &TcpStream) -> u64 {
    let mut bytes = [0; 4096];
    let came = stream.peek(&mut bytes).unwrap_or(0);
    let (mut rest, mut count) = (&bytes[..came], 0);
    while let Ok(Some(len)) = frame_len(rest) {
        let message = Message::decode(&rest[..len]);
        count += u64::from(matches!(message, Ok(Message::Heartbeat { .. })));
        rest = &rest[len..];
    }
    count
}

/// The peer acknowledges as many heartbeats as have come, with the counters that they would have if
/// the server counted from 0 or from 1.
#[test]
fn a_peer_that_guesses_the_counters_of_heartbeats_is_cut_off() {
    let mut scene = Scene::new();
    for first in 0..2 {
        let mut stream = connect(scene.address());
        stream.write_all(&frame(&hello(1))).unwrap();
        let (begun, mut guessed) = (Instant::now(), 0);
        // The peer also sends heartbeats, to see whether the server still takes its messages.
        while stream.write_all(&heartbeat()).is_ok() {
            while guessed < heartbeats(&stream) {
                let counter = first + guessed;
                let _ = stream.write_all(&frame(&Message::HeartbeatAck { counter }));
                guessed += 1;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(4),
                "the server considers the peer alive"
            );
            std::thread::sleep(Duration::from_millis(25));
        }
    }
    scene.check();
}

#[test]
fn counters_show_the_events() {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut stream = connect(nexus.address());
    stream.write_all(&frame(&hello(1))).unwrap();
    stream
        .write_all(&frame(&Message::HeartbeatAck { counter: 4 }))
        .unwrap();
    rest(stream);
    let counters: PlaneCounters = nexus.counters().unwrap();
    assert_eq!(counters.bad_messages, 1);
}
