//! More connections than a server takes: from processes that behave, from processes that do
//! nothing, and from processes that take all places that they can get.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dunlin_control::ConnectFailure;
use dunlin_core::{Session, SessionEvent};
use dunlin_nexus::{ConnectError, ConnectOptions, Nexus, Rpc};
use dunlin_testkit::descriptors;
use dunlin_testkit::network::Network;
use dunlin_testkit::stranger::{frame, hello};
use dunlin_transport::udp::Udp;
use dunlin_wire::control::{GoodbyeReason, Message, frame_len};

use super::child::Server;
use super::floods::Ending;
use super::hostile::connect;
use super::stranger::Stranger;
use super::{App, REVERSE, endpoint, exchange};

/// Descriptors of a process, enough for the largest crowd.
const DESCRIPTORS: u64 = 10_000;

/// Timeout of processes with thousands of connections, which share two cores with other tests.
const PATIENT: Duration = Duration::from_secs(10);

/// Locked by the running crowd: two at once would be too much for two cores.
static CROWDED: Mutex<()> = Mutex::new(());

/// Many clients in one process, each with its own TCP connection: each uses another list of
/// addresses, and a nexus makes a connection for each list.
struct Crowd {
    rpc: Rpc<Udp, App>,
    sessions: Vec<Session>,
}

/// Waits until there is no other crowd. `None`, after it has printed the reason, if this machine
/// has no room for one.
fn alone() -> Option<MutexGuard<'static, ()>> {
    let guard = CROWDED.lock().unwrap_or_else(PoisonError::into_inner);
    descriptors::allow(DESCRIPTORS).then_some(guard)
}

impl Crowd {
    fn new(server: SocketAddr, count: u16, patience: Duration) -> Self {
        let builder = Nexus::builder().without_unix(true).failure_timeout(PATIENT);
        let nexus = builder
            .bind((server.ip(), 0))
            .or_else(|_| Nexus::bind("0.0.0.0:0"));
        let mut rpc = endpoint::<Udp>(&nexus.unwrap());
        let options = patient(patience);
        let sessions = (0..count).map(|number| {
            let other = SocketAddr::from(([127, 0, 0, 1], 1 + number));
            rpc.connect_with(&[server, other][..], &options).unwrap()
        });
        let sessions = sessions.collect();
        Self { rpc, sessions }
    }

    /// Runs until each session is connected or has failed.
    fn settle(&mut self) {
        let all = self.sessions.len();
        self.rpc.run_until(|rpc| rpc.app().events.len() >= all);
    }

    fn open(&self) -> Vec<Session> {
        let is_open = |event: &SessionEvent| match event {
            SessionEvent::Connected(session) => Some(*session),
            _ => None,
        };
        self.rpc.app().events.iter().filter_map(is_open).collect()
    }

    /// Checks, after a while, that every session still works.
    fn check(&mut self) {
        self.rpc.run_for(Duration::from_millis(1_500));
        assert_eq!(self.rpc.app().events.len(), self.sessions.len());
        for session in self.open() {
            exchange(&mut self.rpc, session, REVERSE);
        }
    }
}

fn patient(patience: Duration) -> ConnectOptions {
    ConnectOptions {
        patience,
        ..ConnectOptions::default()
    }
}

fn limits(links: u16) -> String {
    let timeout = PATIENT.as_millis();
    format!("descriptors={DESCRIPTORS} links={links} timeout={timeout}")
}

fn server(links: u16) -> Server {
    Server::start_limited::<Udp>("127.0.0.1:0", &limits(links))
}

fn was_sent_away(mut stream: TcpStream) -> bool {
    let mut bytes = Vec::new();
    // The connection may end with a reset, after the sent bytes.
    let _ = stream.read_to_end(&mut bytes);
    let reason = GoodbyeReason::TooManyConnections;
    bytes.ends_with(&frame(&Message::Goodbye { reason }))
}

/// A connection that has sent Hello.
fn greeted(address: SocketAddr) -> TcpStream {
    let mut stream = connect(address);
    // The server may already have sent it away.
    let _ = stream.write_all(&frame(&hello(1)));
    stream
}

/// Connects one more session, uses it, and returns how long the connecting took.
pub(super) fn visit(address: SocketAddr) -> Duration {
    let nexus = Nexus::bind("0.0.0.0:0").unwrap();
    let mut rpc = endpoint::<Udp>(&nexus);
    let start = Instant::now();
    let session = rpc.connect_blocking(address).unwrap();
    let elapsed = start.elapsed();
    exchange(&mut rpc, session, REVERSE);
    elapsed
}

#[test]
fn two_thousand_clients_of_one_address_work() {
    let Some(_alone) = alone() else {
        return;
    };
    let server = server(4096);
    let mut crowd = Crowd::new(server.address, 2000, Duration::from_secs(60));
    crowd.settle();
    assert_eq!(crowd.open().len(), 2000);
    crowd.check();
}

#[test]
fn of_two_thousand_clients_a_server_takes_as_many_as_it_may_and_loses_none() {
    let Some(_alone) = alone() else {
        return;
    };
    let server = server(512);
    let mut crowd = Crowd::new(server.address, 2000, Duration::from_secs(12));
    crowd.settle();
    assert_eq!(crowd.open().len(), 512);
    // The endpoint keeps only the last few failures.
    let failures = crowd.sessions.iter().filter_map(|s| crowd.rpc.failure(*s));
    let failures: Vec<_> = failures.collect();
    assert!(!failures.is_empty());
    assert!(
        failures
            .iter()
            .all(|failure| *failure == ConnectFailure::Full),
        "{failures:?}"
    );
    crowd.check();
}

/// The same crowd without a nexus: each process asks for a session right after its Hello, and does
/// not connect again. So the message that it gets shows how the server has treated it.
#[test]
fn each_of_two_thousand_clients_has_a_session_or_gets_the_reason() {
    let Some(_alone) = alone() else {
        return;
    };
    let server = server(512);
    let to = SocketAddr::from(([127, 0, 0, 1], 9));
    let mut crowd: Vec<_> = (0..2000)
        .map(|number| Stranger::rush(server.address, number, to))
        .collect();
    crowd.retain_mut(|stranger| !stranger.is_sent_away());
    assert_eq!(crowd.len(), 512);
    // Each of these has a session, and keeps it.
    assert!(crowd.iter_mut().all(Stranger::is_alive));
}

#[test]
fn a_host_with_a_session_on_every_place_locks_no_other_out() {
    let (Some(_alone), Some(network)) = (alone(), Network::new()) else {
        return;
    };
    let server = network.right.run(|| {
        let address = format!("{}:31850", network.right.address);
        Server::start_limited::<Udp>(&address, &limits(512))
    });
    network.left.run(|| {
        let mut crowd = Crowd::new(server.address, 512, Duration::from_secs(60));
        crowd.settle();
        assert_eq!(crowd.open().len(), 512);
        let times = (0..5).map(|_| {
            crowd.rpc.run_for(Duration::from_millis(20));
            network.right.run(|| visit(server.address))
        });
        let times: Vec<_> = times.collect();
        let quick = times
            .iter()
            .filter(|time| **time <= Duration::from_millis(100));
        assert!(quick.count() >= 3, "{times:?}");
    });
}

#[test]
fn five_hundred_floods_end_no_session() {
    let server = Server::start_limited::<Udp>("127.0.0.1:0", "descriptors=256");
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut rpc = endpoint::<Udp>(&nexus);
    let session = rpc.connect_blocking(server.address).unwrap();
    for _ in 0..4 {
        let floods: Vec<_> = (0..500)
            .map(|number| match number % 3 {
                0 => connect(server.address),
                1 => greeted(server.address),
                _ => {
                    let mut stream = greeted(server.address);
                    let many = frame(&Message::Heartbeat { counter: 1 }).repeat(100);
                    let _ = stream.write_all(&many);
                    stream
                }
            })
            .collect();
        exchange(&mut rpc, session, REVERSE);
        visit(server.address);
        drop(floods);
    }
    assert_eq!(rpc.app().events.len(), 1, "{:?}", rpc.app().events);
}

/// Acknowledges every heartbeat that has come over these connections, and does nothing else, until
/// `over`. Counts the connections that the server has sent away.
fn idle_until(over: &AtomicBool, streams: &mut [TcpStream], sent_away: &AtomicUsize) {
    let mut inputs = vec![Vec::new(); streams.len()];
    while !over.load(Ordering::Relaxed) {
        for (stream, input) in streams.iter_mut().zip(&mut inputs) {
            let mut chunk = [0; 512];
            let got = stream.read(&mut chunk).unwrap_or(0);
            input.extend_from_slice(&chunk[..got]);
            while let Some(len) = frame_len(input).unwrap() {
                match Message::decode(&input[..len]).unwrap() {
                    Message::Heartbeat { counter } => {
                        let _ = stream.write_all(&frame(&Message::HeartbeatAck { counter }));
                    }
                    Message::Goodbye {
                        reason: GoodbyeReason::TooManyConnections,
                    } => {
                        sent_away.fetch_add(1, Ordering::Relaxed);
                    }
                    _ => {}
                }
                input.drain(..len);
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn idle_connections_leave_descriptors_for_sessions() {
    let server = Server::start_limited::<Udp>("127.0.0.1:0", "descriptors=64");
    let mut idle: Vec<_> = (0..300).map(|_| greeted(server.address)).collect();
    for stream in &idle {
        stream.set_nonblocking(true).unwrap();
    }
    let (over, sent_away) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| idle_until(&over, &mut idle, &sent_away));
        let _ending = Ending(&over);
        let start = Instant::now();
        while sent_away.load(Ordering::Relaxed) < 270 {
            assert!(start.elapsed() < PATIENT, "{sent_away:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
        let took = visit(server.address);
        assert!(took < Duration::from_secs(3), "{took:?}");
    });
}

#[test]
fn a_server_without_descriptors_gives_refused_peers_the_reason() {
    let limits = "descriptors=64 taken=1";
    let server = Server::start_limited::<Udp>("127.0.0.1:0", limits);
    for _ in 0..20 {
        assert!(was_sent_away(greeted(server.address)));
        assert!(was_sent_away(connect(server.address)));
    }
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut rpc = endpoint::<Udp>(&nexus);
    let options = patient(Duration::from_millis(300));
    let session = rpc.connect_with(server.address, &options).unwrap();
    let error = rpc.wait_connected(session).unwrap_err();
    assert!(
        matches!(error, ConnectError::Failed(ConnectFailure::Full)),
        "{error}"
    );
}
