//! Peers that want their packets at an address other than their connection's. The server sends
//! challenges there, and nothing else until the bytes of a challenge have come back (rule C13).
//!
//! Some of these tests need root and `ip`, and the router that rewrites addresses needs `nft`.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use dunlin_control::ConnectFailure;
use dunlin_nexus::{ConnectError, ConnectOptions, Nexus};
use dunlin_testkit::network::{Host, Network};
use dunlin_testkit::skip;
use dunlin_transport::udp::Udp;
use dunlin_wire::control::{Features, Message, RefuseCode};
use dunlin_wire::{Flags, HEADER_LEN, Header, PacketType, PktNum, ReqNum};

use super::child::Server;
use super::stranger::{Granted, NUMBER, Stranger, TOKEN};
use super::{REVERSE, endpoint, exchange};

/// Addresses of the left host from which no process connects.
const BYSTANDER: &str = "10.79.0.3";
const ROUTER: &str = "10.79.0.5";
const INSIDE: &str = "10.79.0.6";

/// Bytes of IPv4 and UDP in front of each packet.
const FRAMING: usize = 28;

/// Features of this release.
fn all() -> Features {
    Features::FOREIGN.and(Features::PROOF)
}

/// Two hosts; the left one has more addresses. The server, on the right one, allows them.
fn scene() -> Option<(Network, Server)> {
    let network = Network::new()?;
    for address in [BYSTANDER, ROUTER, INSIDE] {
        let add = format!("addr add {address}/24 dev link0");
        network.left.ip(&add).unwrap();
    }
    let server = network.right.run(|| {
        let address = format!("{}:31850", network.right.address);
        Server::start_limited::<Udp>(&address, "allow=10.79.0.0/28")
    });
    Some((network, server))
}

fn socket(ip: &str) -> UdpSocket {
    let ip: IpAddr = ip.parse().unwrap();
    let socket = UdpSocket::bind((ip, 0)).unwrap();
    let patience = Some(Duration::from_secs(5));
    socket.set_read_timeout(patience).unwrap();
    socket
}

/// The packets that have come, without waiting.
fn drain(socket: &UdpSocket) -> Vec<Vec<u8>> {
    socket.set_nonblocking(true).unwrap();
    let mut buffer = [0; 2048];
    let next = || {
        let len = socket.recv(&mut buffer).ok()?;
        Some(buffer[..len].to_vec())
    };
    let packets = std::iter::from_fn(next).collect();
    socket.set_nonblocking(false).unwrap();
    packets
}

/// The bytes of a challenge for the stranger's session.
fn secret_in(packet: &[u8]) -> u64 {
    let header = Header::decode(packet).unwrap();
    assert_eq!(header.kind, PacketType::Challenge);
    assert_eq!((header.session, header.token), (NUMBER, TOKEN));
    let secret = packet[HEADER_LEN..].try_into().unwrap();
    u64::from_le_bytes(secret)
}

fn next_secret(socket: &UdpSocket) -> u64 {
    let mut packet = [0; 2048];
    let len = socket.recv(&mut packet).unwrap();
    secret_in(&packet[..len])
}

/// Makes one call, whose answer comes to `socket`.
fn call(socket: &UdpSocket, server: &Server, to: &Granted) {
    let request = super::reflector::request(to, 0);
    socket
        .send_to(&request, (server.address.ip(), to.port))
        .unwrap();
    let mut packet = [0; 2048];
    loop {
        let len = socket.recv(&mut packet).unwrap();
        let header = Header::decode(&packet[..len]).unwrap();
        match header.kind {
            // The challenge was on its way when the proof came.
            PacketType::Challenge => {}
            // The server was busy when the request came.
            PacketType::Cr => {}
            PacketType::Resp => return assert!(packet[..len].ends_with(b"desserts")),
            other => panic!("{other:?}"),
        }
    }
}

/// The server refuses the stranger after the failure timeout, and sends few packets until then.
#[test]
fn a_bystander_gets_at_most_three_packets_and_few_bytes() {
    let Some((network, server)) = scene() else {
        return;
    };
    network.left.run(|| {
        let bystander = socket(BYSTANDER);
        let to = bystander.local_addr().unwrap();
        let mut stranger = Stranger::greet(server.address, all());
        let said = stranger.begin(to);
        // The stranger guesses.
        for secret in 0..100 {
            stranger.say(&Message::Proof { secret });
        }
        assert_eq!(stranger.finish().unwrap_err(), RefuseCode::UnprovenAddress);
        std::thread::sleep(Duration::from_millis(300));
        let packets = drain(&bystander);
        let secrets: BTreeSet<u64> = packets.iter().map(|packet| secret_in(packet)).collect();
        let bytes: usize = packets.iter().map(|packet| packet.len() + FRAMING).sum();
        assert!((1..=3).contains(&packets.len()), "{}", packets.len());
        assert_eq!(secrets.len(), 1, "all challenges are the same");
        assert!(bytes <= 3 * said, "{bytes} bytes for {said}");
    });
}

#[test]
fn an_address_that_is_used_again_gets_a_fresh_challenge() {
    let Some((network, server)) = scene() else {
        return;
    };
    network.left.run(|| {
        let elsewhere = socket(BYSTANDER);
        let to = elsewhere.local_addr().unwrap();
        let mut stranger = Stranger::greet(server.address, all());
        let mut secrets = BTreeSet::new();
        for count in 1..=3 {
            stranger.begin(to);
            let secret = next_secret(&elsewhere);
            // The bytes of earlier challenges prove nothing.
            for secret in &secrets {
                stranger.say(&Message::Proof { secret: *secret });
            }
            std::thread::sleep(Duration::from_millis(50));
            let again = drain(&elsewhere);
            let again = again.iter().all(|packet| secret_in(packet) == secret);
            assert!(again, "no packet but challenges");
            secrets.insert(secret);
            assert_eq!(secrets.len(), count);
            // The right bytes have no effect over another connection.
            let mut other = Stranger::greet(server.address, all());
            other.say(&Message::Proof { secret });
            assert!(
                next_secret(&elsewhere) == secret,
                "the same challenge is sent again"
            );
            stranger.say(&Message::Proof { secret });
            let granted = stranger.finish().unwrap();
            call(&elsewhere, &server, &granted);
        }
    });
}

#[test]
fn a_peer_of_an_earlier_release_gets_packets_only_at_its_own_address() {
    let Some((network, server)) = scene() else {
        return;
    };
    network.left.run(|| {
        let (elsewhere, own) = (socket(BYSTANDER), socket(network.left.address));
        let mut stranger = Stranger::greet(server.address, Features::FOREIGN);
        let refused = stranger.ask(elsewhere.local_addr().unwrap()).unwrap_err();
        assert_eq!(
            refused,
            RefuseCode::ForeignAddress,
            "the peer cannot prove the allowed address"
        );
        let granted = stranger.ask(own.local_addr().unwrap()).unwrap();
        call(&own, &server, &granted);
        assert_eq!(drain(&elsewhere).len(), 0);
        assert_eq!(drain(&own).len(), 0, "the peer got no challenge");
    });
}

/// A client that has a session sends challenges without end: the server answers only as many as an
/// honest client may send.
#[test]
fn a_peer_that_challenges_without_end_gets_three_proofs() {
    let server = Server::start::<Udp>(0);
    let own = socket("127.0.0.1");
    let mut stranger = Stranger::greet(server.address, all());
    let granted = stranger.ask(own.local_addr().unwrap()).unwrap();
    let challenge = Header {
        kind: PacketType::Challenge,
        flags: Flags::NONE,
        aux: 0,
        session: granted.session,
        token: granted.token,
        size: 0,
        pkt: PktNum(0),
        req: ReqNum(0),
    };
    let mut proofs = Vec::new();
    for secret in 0..300_u64 {
        let packet = [&challenge.encode()[..], &secret.to_le_bytes()].concat();
        own.send_to(&packet, ("127.0.0.1", granted.port)).unwrap();
        std::thread::sleep(Duration::from_millis(1));
        for frame in stranger.answer_heartbeats() {
            if let Ok(Message::Proof { secret }) = Message::decode(&frame) {
                proofs.push(secret);
            }
        }
    }
    let distinct: BTreeSet<u64> = proofs.iter().copied().collect();
    assert_eq!((proofs.len(), distinct.len()), (3, 3), "{proofs:?}");
    call(&own, &server, &granted);
}

/// Requests for addresses at which no process answers take all places for such requests, but no
/// other places.
#[test]
fn a_client_at_its_own_address_does_not_wait_for_proofs_of_others() {
    let server = Server::start_limited::<Udp>("127.0.0.1:0", "allow=127.0.0.64/26");
    let dead = socket("127.0.0.77").local_addr().unwrap();
    let mut strangers: Vec<_> = (0..6)
        .map(|_| Stranger::greet(server.address, all()))
        .collect();
    for stranger in &mut strangers {
        for _ in 0..250 {
            stranger.begin(dead);
        }
    }
    // The server reads a part of each connection per turn, which takes long on a busy machine.
    let begun = Instant::now();
    while !strangers.iter_mut().any(Stranger::was_refused_as_busy) {
        assert!(
            begun.elapsed() < Duration::from_secs(5),
            "some places are still free"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
    let begun = Instant::now();
    let nexus = Nexus::builder().without_unix(true);
    let nexus = nexus.bind("127.0.0.1:0").unwrap();
    let mut rpc = endpoint::<Udp>(&nexus);
    let session = rpc.connect_blocking(server.address).unwrap();
    let took = begun.elapsed();
    exchange(&mut rpc, session, REVERSE);
    assert!(took < Duration::from_millis(600), "{took:?}");
}

/// Connections and datagrams of this host leave with the router's address.
fn rewrite(host: &Host) -> Result<(), String> {
    for rule in [
        "add table ip nat".to_owned(),
        "add chain ip nat out { type nat hook postrouting priority 100 ; }".to_owned(),
        format!(
            "add rule ip nat out ip saddr {} meta l4proto tcp snat to {ROUTER}",
            host.address
        ),
        format!(
            "add rule ip nat out ip saddr {} meta l4proto udp snat to {ROUTER}:40000-40999",
            host.address
        ),
    ] {
        host.execute(&format!("nft {rule}"))?;
    }
    Ok(())
}

/// Datagrams to the address `INSIDE` of the router come to this host.
fn lead_inside(host: &Host) {
    for rule in [
        "add chain ip nat in { type nat hook prerouting priority -100 ; }".to_owned(),
        format!(
            "add rule ip nat in ip daddr {INSIDE} meta l4proto udp dnat to {}",
            host.address
        ),
    ] {
        host.execute(&format!("nft {rule}")).unwrap();
    }
}

fn connect(server: SocketAddr, from: &Host) -> Result<Duration, ConnectError> {
    let nexus = Nexus::builder().without_unix(true);
    let nexus = nexus.advertise(INSIDE.parse().unwrap());
    let nexus = nexus.bind((from.address, 0)).unwrap();
    let mut rpc = endpoint::<Udp>(&nexus);
    let options = ConnectOptions {
        patience: Duration::from_secs(2),
        ..ConnectOptions::default()
    };
    let begun = Instant::now();
    let session = rpc.connect_with(server, &options)?;
    rpc.wait_connected(session)?;
    let took = begun.elapsed();
    exchange(&mut rpc, session, REVERSE);
    Ok(took)
}

/// A router rewrites the addresses of all packets. The server accepts the advertised address only
/// if packets reach the client there.
#[test]
fn a_client_behind_a_router_that_rewrites_addresses_is_served() {
    let Some((network, server)) = scene() else {
        return;
    };
    if let Err(why) = rewrite(&network.left) {
        return skip(&why);
    }
    network.left.run(|| {
        // The router does not forward packets to the inside yet.
        let refused = connect(server.address, &network.left).unwrap_err();
        let code = Some(RefuseCode::UnprovenAddress);
        let expected = ConnectFailure::TimedOut(code);
        assert!(
            matches!(refused, ConnectError::Failed(failure) if failure == expected),
            "{refused}"
        );
        lead_inside(&network.left);
        let took = connect(server.address, &network.left).unwrap();
        assert!(took < Duration::from_secs(1), "{took:?}: a challenge again");
    });
}
