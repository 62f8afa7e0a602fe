//! Sessions open and end, within a process and between processes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dunlin_control::ConnectFailure;
use dunlin_core::{CloseReason, SessionEvent, SessionOptions};
use dunlin_nexus::{ConnectError, ConnectOptions, Nexus, NexusError, Open};
use dunlin_transport::auto::Auto;
use dunlin_transport::shm::Shm;
use dunlin_transport::udp::Udp;
use dunlin_wire::control::RefuseCode;

use super::child::{Named, Server};
use super::{App, BACKGROUND, REVERSE, endpoint, exchange, run_within};

const PATIENCE: Duration = Duration::from_secs(5);

/// Runs `client` while a server thread of the same process runs its endpoint.
fn beside_a_server<T: Open>(
    client: impl FnOnce(&Nexus, &Nexus),
    watch: impl FnOnce(&mut App) + Send,
) {
    let server = Nexus::bind("127.0.0.1:0").unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (nexus, stop) = (server.clone(), &stop);
        let (ready, is_ready) = std::sync::mpsc::channel();
        scope.spawn(move || {
            let mut rpc = endpoint::<T>(&nexus);
            ready.send(()).unwrap();
            rpc.run_until(|_| stop.load(Ordering::Relaxed));
            watch(rpc.app_mut());
        });
        is_ready.recv().unwrap();
        client(&Nexus::bind("127.0.0.1:0").unwrap(), &server);
        stop.store(true, Ordering::Relaxed);
    });
}

fn between_processes<T: Named>() {
    let server = Server::start::<T>(0);
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut rpc = endpoint::<T>(&nexus);
    let session = rpc.connect_blocking(server.address).unwrap();
    for kind in [REVERSE, BACKGROUND] {
        for _ in 0..100 {
            exchange(&mut rpc, session, kind);
        }
    }
}

#[test]
fn processes_exchange_rpcs_over_udp() {
    between_processes::<Udp>();
}

#[test]
fn processes_exchange_rpcs_over_shared_memory() {
    between_processes::<Shm>();
}

#[test]
fn processes_exchange_rpcs_over_auto() {
    between_processes::<Auto>();
}

#[test]
fn without_a_unix_socket_auto_uses_udp() {
    let server = Server::start::<Auto>(0);
    let nexus = Nexus::builder()
        .without_unix(true)
        .bind("127.0.0.1:0")
        .unwrap();
    let mut rpc = endpoint::<Auto>(&nexus);
    let session = rpc.connect_blocking(server.address).unwrap();
    exchange(&mut rpc, session, REVERSE);
    let mut shm_only = endpoint::<Shm>(&nexus);
    assert!(shm_only.connect_blocking(server.address).is_err());
}

#[test]
fn a_port_in_use_is_an_error_unless_any_port_will_do() {
    let first = Nexus::bind("127.0.0.1:0").unwrap();
    let error = Nexus::bind(first.address()).unwrap_err();
    assert!(matches!(error, NexusError::Listen { .. }), "{error}");
    let second = Nexus::builder().any_port(true).bind(first.address());
    let second = second.unwrap();
    assert!(second.address().port() > first.address().port());
    let error = Nexus::bind("no such host").unwrap_err();
    assert!(matches!(error, NexusError::Address { .. }), "{error}");
    let begin = "\"no such host\" is not a host and a port";
    assert!(error.to_string().starts_with(begin), "{error}");
    assert!(!format!("{error:?}").contains('\\'), "{error:?}");
}

#[test]
fn connect_may_come_before_the_server() {
    // This port was free a moment ago.
    let port = Nexus::bind("127.0.0.1:0").unwrap().address().port();
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut rpc = endpoint::<Udp>(&nexus);
    let session = rpc.connect(("127.0.0.1", port)).unwrap();
    super::issue(&mut rpc, session, REVERSE, b"early");
    rpc.run_for(Duration::from_millis(300));
    let _server = Server::start::<Udp>(port);
    let done = super::finish(&mut rpc, PATIENCE);
    assert_eq!(done.response.data(), b"ylrae");
}

#[test]
fn a_deadline_and_a_refusal_are_told_apart() {
    beside_a_server::<Shm>(
        |nexus, server| {
            let patience = Duration::from_millis(200);
            let mut rpc = endpoint::<Shm>(nexus);
            let fifth = ConnectOptions {
                endpoint: Some(5),
                patience,
                ..ConnectOptions::default()
            };
            let session = rpc.connect_with(server.address(), &fifth).unwrap();
            let error = rpc.wait_connected(session).unwrap_err();
            let ConnectError::Failed(ConnectFailure::TimedOut(last)) = error else {
                panic!("{error}");
            };
            assert_eq!(last, Some(RefuseCode::NoSuchEndpoint));
            let absent = ConnectOptions {
                patience,
                ..ConnectOptions::default()
            };
            let session = rpc.connect_with("127.0.0.1:1", &absent).unwrap();
            let error = rpc.wait_connected(session).unwrap_err();
            assert!(
                matches!(error, ConnectError::Failed(ConnectFailure::Unreachable)),
                "{error}"
            );
            let mut other = endpoint::<Udp>(nexus);
            let error = other.connect_blocking(server.address()).unwrap_err();
            let code = RefuseCode::NoCommonTransport;
            assert!(
                matches!(error, ConnectError::Failed(ConnectFailure::Refused(c)) if c == code),
                "{error}"
            );
        },
        |_| {},
    );
}

fn clean_disconnect<T: Open>() {
    beside_a_server::<T>(
        |nexus, server| {
            let mut rpc = endpoint::<T>(nexus);
            for _ in 0..20 {
                let session = rpc.connect_blocking(server.address()).unwrap();
                exchange(&mut rpc, session, REVERSE);
                assert!(rpc.disconnect(session).is_ok());
                rpc.run_once();
            }
            // The client gives the session up before it is connected, at various moments of the
            // handshake.
            for micros in 0..20 {
                let session = rpc.connect(server.address()).unwrap();
                rpc.run_for(Duration::from_micros(micros * 40));
                rpc.disconnect(session).unwrap();
                rpc.run_once();
            }
            rpc.run_for(Duration::from_millis(200));
            assert_eq!(rpc.session_count(), 0);
        },
        |app| {
            let accepted = |event: &&SessionEvent| matches!(event, SessionEvent::Accepted(_));
            let closed = |event: &&SessionEvent| matches!(event, SessionEvent::Closed { .. });
            let (opened, ended) = (
                app.events.iter().filter(accepted).count(),
                app.events.iter().filter(closed).count(),
            );
            assert!(opened >= 20);
            assert_eq!(opened, ended, "a session leaked");
            for event in &app.events {
                if let SessionEvent::Closed { reason, .. } = event {
                    assert!(matches!(
                        reason,
                        CloseReason::Disconnected | CloseReason::Reset
                    ));
                }
            }
        },
    );
}

#[test]
fn both_sides_learn_of_a_disconnect_over_udp() {
    clean_disconnect::<Udp>();
}

#[test]
fn both_sides_learn_of_a_disconnect_over_shared_memory() {
    clean_disconnect::<Shm>();
}

fn many<T: Open>(count: usize) {
    beside_a_server::<T>(
        |nexus, server| {
            let mut rpc = endpoint::<T>(nexus);
            let start = Instant::now();
            let sessions: Vec<_> = (0..count)
                .map(|_| rpc.connect(server.address()).unwrap())
                .collect();
            run_within(&mut rpc, Duration::from_secs(20), "connecting", |rpc| {
                rpc.app().events.len() == count
            });
            println!("{count} sessions in {:?}", start.elapsed());
            for session in [sessions[0], sessions[count / 2], sessions[count - 1]] {
                exchange(&mut rpc, session, REVERSE);
            }
        },
        |_| {},
    );
}

#[test]
fn a_thousand_sessions_share_the_resources_of_two_endpoints() {
    many::<Shm>(1_000);
    many::<Udp>(1_000);
    many::<Auto>(1_000);
}

#[test]
fn endpoints_of_one_process_connect_to_each_other() {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut one = endpoint::<Shm>(&nexus);
    let mut other = endpoint::<Shm>(&nexus);
    assert_eq!((one.index(), other.index()), (0, 1));
    let second = ConnectOptions {
        endpoint: Some(1),
        ..ConnectOptions::default()
    };
    let there = one.connect_with(nexus.address(), &second).unwrap();
    let back = other.connect(nexus.address()).unwrap();
    let start = Instant::now();
    let is_open =
        |rpc: &dunlin_nexus::Rpc<Shm, App>, session| rpc.session_info(session).unwrap().open;
    while !is_open(&one, there) || !is_open(&other, back) {
        one.run_once();
        other.run_once();
        assert!(start.elapsed() < PATIENCE);
    }
    super::issue(&mut one, there, REVERSE, b"abc");
    super::issue(&mut other, back, REVERSE, b"xyz");
    while one.app().done.is_empty() || other.app().done.is_empty() {
        one.run_once();
        other.run_once();
        assert!(start.elapsed() < PATIENCE);
    }
    assert_eq!(one.app().done[0].response.data(), b"cba");
    assert_eq!(other.app().done[0].response.data(), b"zyx");
}

#[test]
fn a_client_learns_that_its_endpoint_went_away() {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let server = Nexus::bind("127.0.0.1:0").unwrap();
        let address = server.address();
        let stop = &stop;
        scope.spawn(move || {
            let mut rpc = endpoint::<Udp>(&server);
            rpc.run_until(|_| stop.load(Ordering::Relaxed));
        });
        let mut rpc = endpoint::<Udp>(&nexus);
        let session = rpc.connect_blocking(address).unwrap();
        super::issue(&mut rpc, session, super::NEVER, b"?");
        rpc.run_for(Duration::from_millis(20));
        stop.store(true, Ordering::Relaxed);
        let done = super::finish(&mut rpc, Duration::from_millis(500));
        assert!(done.result.is_err());
        assert_eq!(rpc.session_count(), 0);
    });
}

#[test]
fn options_out_of_range_are_errors() {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut rpc = endpoint::<Udp>(&nexus);
    let session = SessionOptions::DEFAULT.with_window(3);
    let options = ConnectOptions {
        session,
        ..ConnectOptions::default()
    };
    assert!(matches!(
        rpc.connect_with("127.0.0.1:1", &options),
        Err(ConnectError::Open(_))
    ));
    assert!(matches!(
        rpc.connect("127.0.0.1"),
        Err(ConnectError::Address(_))
    ));
    assert!(
        nexus.endpoint_builder::<Udp>().index(0).build(()).is_err(),
        "index 0 is taken"
    );
    assert!(
        nexus
            .endpoint_builder::<Udp>()
            .config(|c| c.max_sessions = 0)
            .build(())
            .is_err()
    );
}
