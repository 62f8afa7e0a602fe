//! A peer that tries to direct its answers to a third host (rule C12).

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dunlin_nexus::Nexus;
use dunlin_transport::udp::Udp;
use dunlin_wire::control::{Features, RefuseCode};
use dunlin_wire::{Flags, Header, PacketType, PktNum, ReqNum};

use super::child::Server;
use super::floods::Ending;
use super::hostile::Scene;
use super::stranger::{Granted, Stranger};
use super::{REVERSE, SLOW, endpoint, exchange};

/// An address that looks like a third host to a connection from 127.0.0.1.
fn third() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.2:0").unwrap();
    let patience = Some(Duration::from_millis(300));
    socket.set_read_timeout(patience).unwrap();
    socket
}

pub(super) fn request(to: &Granted, req: u32) -> Vec<u8> {
    let header = Header {
        kind: PacketType::Req,
        flags: Flags::NONE,
        aux: REVERSE.0,
        session: to.session,
        token: to.token,
        size: 8,
        pkt: PktNum(0),
        req: ReqNum(req),
    };
    [header.encode().as_slice(), b"stressed"].concat()
}

#[test]
fn no_packet_goes_to_an_address_that_is_not_the_peers_own() {
    let server = Server::start::<Udp>(0);
    let (third, own) = (third(), UdpSocket::bind("127.0.0.1:0").unwrap());
    let refusals = [
        (Features::FOREIGN, RefuseCode::ForeignAddress),
        // A peer of an earlier release does not know this code.
        (Features::INQUIRY, RefuseCode::NoCommonTransport),
    ];
    for (features, code) in refusals {
        let mut stranger = Stranger::greet(server.address, features);
        let asked = stranger.ask(third.local_addr().unwrap());
        if let Ok(granted) = &asked {
            own.send_to(&request(granted, 0), ("127.0.0.1", granted.port))
                .unwrap();
        }
        let came = third.recv(&mut [0; 2048]);
        assert_eq!(asked.map(|_| ()).unwrap_err(), code);
        assert!(came.is_err(), "the third host got {came:?} bytes");
        // The same connection may ask for packets to its own address.
        let granted = stranger.ask(own.local_addr().unwrap()).unwrap();
        own.send_to(&request(&granted, 0), ("127.0.0.1", granted.port))
            .unwrap();
        own.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        own.recv(&mut [0; 2048]).unwrap();
    }
}

/// A client that wants its packets at an address other than the one from which it connects.
fn elsewhere(server: SocketAddr) -> Result<(), dunlin_nexus::ConnectError> {
    let nexus = Nexus::builder().without_unix(true);
    let nexus = nexus.advertise([127, 0, 0, 3].into());
    let nexus = nexus.bind("0.0.0.0:0").unwrap();
    let mut rpc = endpoint::<Udp>(&nexus);
    let session = rpc.connect_blocking(server)?;
    exchange(&mut rpc, session, REVERSE);
    Ok(())
}

#[test]
fn an_operator_allows_networks_and_a_refusal_names_the_option() {
    let server = |networks: &str| {
        let builder = Nexus::builder().without_unix(true);
        let builder = builder.allow_peers(networks.parse().unwrap());
        let nexus = builder.bind("127.0.0.1:0").unwrap();
        let address = nexus.address();
        let serving = std::thread::spawn(move || {
            let mut rpc = endpoint::<Udp>(&nexus);
            rpc.run_for(Duration::from_secs(3));
        });
        (address, serving)
    };
    let (allowing, first) = server("127.0.0.3, 192.0.2.0/24");
    let (strict, second) = server("127.0.0.4");
    elsewhere(allowing).unwrap();
    let error = elsewhere(strict).unwrap_err().to_string();
    assert!(error.contains("allow_peers"), "{error}");
    first.join().unwrap();
    second.join().unwrap();
}

/// RFRs that are sent in a millisecond.
const ASKED_EACH_MS: u32 = 22;

/// The 99th percentile of the time of an exchange.
fn p99(scene: &mut Scene) -> Duration {
    let mut took: Vec<_> = (0..1_000)
        .map(|_| {
            let begun = Instant::now();
            exchange(&mut scene.rpc, scene.session, REVERSE);
            begun.elapsed()
        })
        .collect();
    took.sort_unstable();
    took[took.len() - took.len() / 100]
}

/// Asks, 22 000 times a second, for as many packets of a response of 8 MiB as an RFR can name.
fn ask_without_end(address: SocketAddr, over: &AtomicBool, asks: &AtomicBool) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut stranger = Stranger::greet(address, Features::FOREIGN);
    let granted = stranger.ask(socket.local_addr().unwrap()).unwrap();
    let header = Header {
        kind: PacketType::Req,
        flags: Flags::NONE,
        aux: SLOW.0,
        session: granted.session,
        token: granted.token,
        size: 9,
        pkt: PktNum(0),
        req: ReqNum(0),
    };
    let to = ("127.0.0.1", granted.port);
    let request = [header.encode().as_slice(), b"0 8388608"].concat();
    socket.send_to(&request, to).unwrap();
    let rfr = |first: u32| Header {
        kind: PacketType::Rfr,
        aux: 256,
        size: Header::arrivals(PktNum(1), 0),
        pkt: PktNum(first),
        ..header
    };
    let mut turn = 0;
    while !over.load(Ordering::Relaxed) {
        stranger.answer_heartbeats();
        if asks.load(Ordering::Relaxed) {
            for _ in 0..ASKED_EACH_MS {
                turn += 1;
                let rfr = rfr(1 + turn % 2 * 256);
                socket.send_to(&rfr.encode(), to).unwrap();
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The number of consecutive rounds of which half must be quick, and the most rounds in all: other
/// work on the machine makes single rounds slow, and sometimes all rounds of a few seconds.
const ROUNDS: usize = 8;
const MOST_ROUNDS: usize = 48;

/// A peer that asks for all packets 22 000 times a second delays others by no more than its share.
#[test]
fn a_bystander_of_a_flood_of_rfrs_is_served() {
    let mut scene = Scene::new();
    let address = scene.address();
    let (over, asks) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let _ending = Ending(&over);
        scope.spawn(|| ask_without_end(address, &over, &asks));
        let mut rounds = Vec::new();
        let served = |(alone, flooded): &(Duration, Duration)| *flooded <= 3 * *alone;
        let is_served = |rounds: &[(Duration, Duration)]| {
            let last = rounds.last_chunk::<ROUNDS>();
            last.is_some_and(|last| 2 * last.iter().filter(|round| served(round)).count() >= ROUNDS)
        };
        while !is_served(&rounds) {
            assert!(rounds.len() < MOST_ROUNDS, "{rounds:?}");
            asks.store(false, Ordering::Relaxed);
            scene.rpc.run_for(Duration::from_millis(100));
            let alone = p99(&mut scene);
            asks.store(true, Ordering::Relaxed);
            scene.rpc.run_for(Duration::from_millis(100));
            rounds.push((alone, p99(&mut scene)));
        }
        eprintln!("without and with the flood: {rounds:?}");
    });
}
