//! A forger that knows the token of a session: a call that it disturbs gives the right result or
//! ends with an error, and never hangs (rule S11).

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use dunlin_core::{CallOptions, RpcError, Tag};
use dunlin_nexus::{ConnectOptions, Nexus, Rpc};
use dunlin_testkit::forger::{Forger, KINDS};
use dunlin_transport::udp::Udp;
use dunlin_wire::{Flags, Header, PacketType, PktNum, Ran, ReqNum};

use super::child::Server;
use super::{App, REVERSE, SLOW, exchange, run_within, serve_all};

/// A call ends with the 29th account that brings no progress: the first account comes after one
/// second, each further one an eighth of a second later. The rest of this time is for the handler
/// and a busy machine.
const LIMIT: Duration = Duration::from_secs(9);

/// A UDP port that was free a moment ago.
fn free_port() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().port()
}

/// An endpoint to which a forger can send, and its port.
fn target() -> (Rpc<Udp, App>, u16) {
    let port = free_port();
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut rpc = nexus
        .endpoint_builder::<Udp>()
        .transport(|options| options.port = port)
        .build(App::default())
        .unwrap();
    serve_all(&mut rpc);
    (rpc, port)
}

/// How long the forger sends packets of all kinds.
const SPAN: Duration = Duration::from_secs(8);

/// The minimum number of calls under attack, which take longer on a busy machine.
const CALLS: u64 = 12;

#[test]
fn no_call_hangs_while_a_forger_sends_to_both_processes() {
    let mut server = Server::start::<Udp>(0);
    let (mut rpc, port) = target();
    let to = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (ours, theirs) = (vec![port], server.udp_ports());
    let mut one_slot = ConnectOptions::default();
    one_slot.session.window = 1;
    let (begun, mut ended, mut right) = (Instant::now(), 0, 0);
    let goes_on = |ended| begun.elapsed() < SPAN || ended < CALLS;
    while goes_on(ended) {
        let session = rpc.connect_with(server.address, &one_slot).unwrap();
        rpc.wait_connected(session).unwrap();
        let there = server.accepted();
        let offer = rpc.engine_mut().lifecycle().offer_of(session).unwrap();
        let here = (offer.session, offer.token);
        let info = rpc.session_info(session).unwrap();
        let mut forger = Forger::new(ended, info.data_size);
        for req in 0..40 {
            if rpc.session_info(session).is_err() || !goes_on(ended) {
                break;
            }
            let len = [16, 4 * info.data_size as usize][req as usize % 2];
            let says = format!("{} {len}", [0, 20, 150][req as usize % 3]);
            let request = rpc.cx().copy(says.as_bytes()).unwrap();
            let response = rpc.buf(len).unwrap();
            let options = CallOptions::default();
            rpc.call_with(session, SLOW, request, response, Tag(0), options)
                .unwrap();
            rpc.run_once();
            run_within(&mut rpc, LIMIT, "a call that is attacked", |rpc| {
                // A CANCEL ends a call immediately, so the forger sends them only for some calls.
                for kind in KINDS {
                    let (names, ports) = match kind {
                        PacketType::Cancel if req % 4 != 3 => continue,
                        PacketType::Cr | PacketType::Resp => (here, &ours),
                        _ => (there, &theirs),
                    };
                    let packet = forger.packet(kind, names, ReqNum(req));
                    for port in ports {
                        to.send_to(&packet, ("127.0.0.1", *port)).unwrap();
                    }
                }
                std::thread::sleep(Duration::from_millis(1));
                !rpc.app().done.is_empty()
            });
            let done = rpc.app_mut().done.pop().unwrap();
            if done.result.is_ok() {
                assert_eq!(done.response.data(), vec![7; len], "call {req}");
                right += 1;
            }
            ended += 1;
        }
        // The forger's packets may have ended the session.
        let _ = rpc.disconnect(session);
    }
    println!("{right} of {ended} calls were right");
}

#[test]
fn a_call_ends_even_if_a_forger_begins_its_response() {
    let server = Server::start::<Udp>(0);
    let (mut rpc, port) = target();
    let session = rpc.connect_blocking(server.address).unwrap();
    let offer = rpc.engine_mut().lifecycle().offer_of(session).unwrap();
    let data_size = rpc.session_info(session).unwrap().data_size;
    // A response of three packets; the forger claims another number.
    let says = format!("300 {}", 3 * data_size);
    let request = rpc.cx().copy(says.as_bytes()).unwrap();
    let response = rpc.buf(3 * data_size as usize).unwrap();
    let options = CallOptions::default();
    rpc.call_with(session, SLOW, request, response, Tag(0), options)
        .unwrap();
    rpc.run_for(Duration::from_millis(50));
    // While the handler works, the forger begins a response of another length.
    let forged = Header {
        kind: PacketType::Resp,
        flags: Flags::NONE,
        aux: u16::MAX,
        session: offer.session,
        token: offer.token,
        size: 2 * data_size,
        pkt: PktNum(0),
        req: ReqNum(0),
    };
    let mut bytes = forged.encode().to_vec();
    bytes.resize(bytes.len() + data_size as usize, 0);
    let forger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let begun = Instant::now();
    run_within(&mut rpc, LIMIT, "a call with a forged response", |rpc| {
        forger.send_to(&bytes, ("127.0.0.1", port)).unwrap();
        std::thread::sleep(Duration::from_millis(1));
        !rpc.app().done.is_empty()
    });
    let done = rpc.app_mut().done.pop().unwrap();
    assert_eq!(done.result, Err(RpcError::PeerFailed(Ran::Unknown)));
    assert!(
        begun.elapsed() > Duration::from_secs(1),
        "no inquiry was sent"
    );
    // A new session has another token.
    let session = rpc.connect_blocking(server.address).unwrap();
    exchange(&mut rpc, session, REVERSE);
}
