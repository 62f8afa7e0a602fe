//! A network that fails: a link that goes down, and a link that loses all packets in one direction.
//!
//! These tests need root and `ip`. Without them, they say so and pass; with `DUNLIN_NO_SKIP=1` they
//! fail instead.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use dunlin_core::{CloseReason, Session};
use dunlin_nexus::{Nexus, Rpc};
use dunlin_testkit::network::{Host, Network};
use dunlin_testkit::stranger::{frame, hello};
use dunlin_testkit::user::{STRANGER, as_user};
use dunlin_transport::auto::Auto;
use dunlin_wire::control::{BootId, Message, frame_len};

use super::child::Server;
use super::hostile::connect;
use super::{App, NEVER, REVERSE, ended_by_failure, endpoint, exchange, finish, issue};

/// The configured second, and half a second because a busy machine may delay our threads. `control`
/// tests the detector itself to the nanosecond.
const TIMEOUT: Duration = Duration::from_millis(1_500);

/// Loses all packets that one end sends, by sending them to a host that does not exist.
fn lose(from: &Host, to: &Host) {
    let (to, unused) = (to.address, "02:00:00:00:00:99");
    from.ip(&format!(
        "neigh replace {to} lladdr {unused} nud permanent dev link0"
    ))
    .unwrap();
}

fn find_again(from: &Host, to: &Host) {
    from.ip(&format!("neigh del {} dev link0", to.address))
        .unwrap();
}

/// Runs a client on the left, which has a session with the server on the right.
fn between_hosts(run: impl FnOnce(&Network, &mut Server, &mut Rpc<Auto, App>, Session) + Send) {
    let Some(network) = Network::new() else {
        return;
    };
    let mut server = network.right.run(|| {
        let address = format!("{}:31850", network.right.address);
        Server::start_at::<Auto>(&address)
    });
    network.left.run(|| {
        let nexus = Nexus::bind((network.left.address, 31_850)).unwrap();
        let mut rpc = endpoint::<Auto>(&nexus);
        let session = rpc.connect_blocking(server.address).unwrap();
        exchange(&mut rpc, session, REVERSE);
        run(&network, &mut server, &mut rpc, session);
    });
}

/// `break_it` ends the traffic between the hosts, and `mend_it` lets it begin again.
fn fails_in_time(break_it: impl Fn(&Network) + Sync, mend_it: impl Fn(&Network) + Sync) {
    between_hosts(|network, server, rpc, session| {
        issue(rpc, session, NEVER, b"no answer");
        rpc.run_for(Duration::from_millis(300));
        break_it(network);
        let broken = Instant::now();
        let done = finish(rpc, TIMEOUT);
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
        mend_it(network);
        let session = rpc.connect_blocking(server.address).unwrap();
        exchange(rpc, session, REVERSE);
    });
}

/// The next frame that comes over a connection.
fn next_frame(stream: &mut TcpStream) -> Vec<u8> {
    let mut input = Vec::new();
    while frame_len(&input).unwrap().is_none() {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        input.extend(byte);
    }
    input
}

/// The server's answer to a Hello from `host`.
fn told(host: &Host, server: &Server) -> Vec<u8> {
    host.run(|| {
        let mut stream = connect(server.address);
        stream.write_all(&frame(&hello(1))).unwrap();
        next_frame(&mut stream)
    })
}

fn place_in(answer: &[u8]) -> (BootId, &str) {
    match Message::decode(answer) {
        Ok(Message::HelloAck(hello)) => (hello.boot_id, hello.unix_name),
        other => panic!("no answer to Hello: {other:?}"),
    }
}

/// A process on another host that knew both could put them into its HelloAck. A client on the
/// server's host would then take that process and the server for one.
#[test]
fn another_host_learns_neither_boot_id_nor_socket() {
    let Some(network) = Network::new() else {
        return;
    };
    let server = network.right.run(|| {
        let address = format!("{}:31850", network.right.address);
        Server::start_at::<Auto>(&address)
    });
    let here = told(&network.right, &server);
    let (boot_id, name) = place_in(&here);
    assert!(
        boot_id != BootId([0; 16]) && name.starts_with("\0dunlin-"),
        "{name}"
    );
    let elsewhere = told(&network.left, &server);
    assert_eq!(place_in(&elsewhere), (BootId([0; 16]), ""));
}

/// A listening socket of this host, on all addresses, is not mistaken for the end of a connection
/// to another host.
#[test]
fn a_server_with_the_port_of_a_local_listener_is_of_another_host() {
    let Some(network) = Network::new() else {
        return;
    };
    let far = network
        .right
        .run(|| TcpListener::bind((network.right.address, 31_850)).unwrap());
    network.left.run(|| {
        let _near = TcpListener::bind("0.0.0.0:31850").unwrap();
        let nexus = Nexus::bind((network.left.address, 0)).unwrap();
        let mut rpc = endpoint::<Auto>(&nexus);
        rpc.connect(far.local_addr().unwrap()).unwrap();
        let (mut stream, _) = far.accept().unwrap();
        let said = next_frame(&mut stream);
        let Ok(Message::Hello(hello)) = Message::decode(&said) else {
            panic!("no Hello")
        };
        assert_eq!((hello.boot_id, hello.unix_name), (BootId([0; 16]), ""));
    });
}

/// A connection from another user carries no descriptors; that user is refused a connection that
/// could carry them.
#[test]
fn a_process_of_another_user_is_reached_over_udp() {
    let Some(network) = Network::new() else {
        return;
    };
    let server = network.left.run(|| {
        let address = format!("{}:31850", network.left.address);
        Server::start_at::<Auto>(&address)
    });
    network.left.run(|| {
        as_user(STRANGER, || {
            let nexus = Nexus::bind((network.left.address, 0)).unwrap();
            let mut rpc = endpoint::<Auto>(&nexus);
            let session = rpc.connect_blocking(server.address).unwrap();
            exchange(&mut rpc, session, REVERSE);
            let counters = nexus.counters().unwrap();
            assert_eq!((counters.upgrades, counters.bad_messages), (0, 0));
        });
    });
}

/// Answers a client's Hello with `answer`, from `from`. Returns the client's next message, except
/// for heartbeats and for nonces, which are sent back.
fn reply_to(answer: &[u8], network: &Network, from: &Host) -> Vec<u8> {
    let listener = from.run(|| TcpListener::bind((from.address, 0)).unwrap());
    let address = listener.local_addr().unwrap();
    network.left.run(|| {
        let nexus = Nexus::bind((network.left.address, 0)).unwrap();
        let mut rpc = endpoint::<Auto>(&nexus);
        rpc.connect(address).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        next_frame(&mut stream);
        stream.write_all(answer).unwrap();
        loop {
            let said = next_frame(&mut stream);
            match Message::decode(&said).unwrap() {
                Message::Heartbeat { .. } => {}
                Message::Nonce { .. } => stream.write_all(&said).unwrap(),
                _ => return said,
            }
        }
    })
}

/// A process gives the answer of a server that the client could reach over a UNIX socket. The
/// client stays with the process to which it has connected.
#[test]
fn a_process_that_claims_to_be_another_keeps_its_clients() {
    let Some(network) = Network::new() else {
        return;
    };
    let mut server = network.left.run(|| {
        let address = format!("{}:31850", network.left.address);
        Server::start_at::<Auto>(&address)
    });
    let answer = told(&network.left, &server);
    for from in [&network.right, &network.left] {
        let said = reply_to(&answer, &network, from);
        let said = Message::decode(&said).unwrap();
        assert!(matches!(said, Message::Lookup(_)), "{said:?}");
    }
    network.left.run(|| {
        let nexus = Nexus::bind((network.left.address, 0)).unwrap();
        let mut rpc = endpoint::<Auto>(&nexus);
        let session = rpc.connect_blocking(server.address).unwrap();
        exchange(&mut rpc, session, REVERSE);
        server.accepted();
        assert_eq!(nexus.counters().unwrap().upgrades, 1, "the server itself");
    });
}

#[test]
fn a_link_that_goes_down_fails_both_sides_in_time() {
    fails_in_time(
        |network| network.right.ip("link set link0 down").unwrap(),
        |network| network.right.ip("link set link0 up").unwrap(),
    );
}

/// The time after which a call fails if its packets are dropped at the server while the control
/// connection works. `None` without a network.
fn failed_after_filter() -> Option<Duration> {
    let mut took = None;
    between_hosts(|network, _server, rpc, session| {
        // These rules leave packets that arrive over UDP without a route, even to the host itself.
        for rule in [
            "rule add pref 9 iif link0 ipproto udp blackhole",
            "rule add pref 10 lookup local",
            "rule del pref 0 lookup local",
        ] {
            network.right.ip(rule).unwrap();
        }
        issue(rpc, session, REVERSE, b"no answer");
        let issued = Instant::now();
        let done = finish(rpc, 4 * TIMEOUT);
        took = Some(issued.elapsed());
        assert!(ended_by_failure(done.result), "{:?}", done.result);
        assert_eq!(
            rpc.nexus().counters().unwrap().peers_failed,
            0,
            "the peer's process is alive"
        );
        assert!(
            rpc.counters().inquiries > 0,
            "the client has asked the peer"
        );
    });
    took
}

#[test]
fn a_filtered_data_port_fails_the_session_within_two_timeouts() {
    let mut times = Vec::new();
    // A busy machine may delay all rounds but one.
    for _ in 0..5 {
        let Some(took) = failed_after_filter() else {
            return;
        };
        assert!(
            took > Duration::from_secs(1),
            "the client first asks the peer"
        );
        if took < Duration::from_secs(2) {
            return;
        }
        times.push(took);
    }
    panic!("{times:?}");
}

#[test]
fn loss_in_one_direction_fails_both_sides_in_time() {
    fails_in_time(
        |network| lose(&network.left, &network.right),
        |network| find_again(&network.left, &network.right),
    );
    fails_in_time(
        |network| lose(&network.right, &network.left),
        |network| find_again(&network.right, &network.left),
    );
}
