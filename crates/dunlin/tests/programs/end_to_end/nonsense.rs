//! Senders of nonsense: random, mutated and replayed datagrams at the UDP ports of both sides, and
//! bytes that are not messages at the control port. The receiver drops and counts all of it; RPCs
//! go on, and no request runs twice.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::Duration;

use dunlin::{Auto, Rng, Udp};

use crate::end_to_end::Named;
use crate::end_to_end::client::Client;
use crate::end_to_end::process::Server;

const DATAGRAMS: u32 = 10_000;
/// Datagrams between two RPCs.
const BURST: u32 = 20;

fn byte(rng: &mut Rng, bound: u32) -> u8 {
    u8::try_from(rng.below(bound)).unwrap()
}

/// Random bytes, of this length.
fn noise(rng: &mut Rng, length: u32) -> Vec<u8> {
    (0..length).map(|_| byte(rng, 256)).collect()
}

/// Random bytes, or a header in which only the token and a few bits are wrong.
fn datagram(rng: &mut Rng) -> Vec<u8> {
    let length = rng.below(200);
    let mut bytes = noise(rng, length);
    if length >= 24 && rng.below(2) == 0 {
        let kind = byte(rng, 6);
        // Version 1, no flags, the type MARK, and the number of one of the first sessions; token,
        // packet and request number stay random.
        bytes[..8].copy_from_slice(&[1 << 4 | kind, 0, 1, 0, 0, 0, 0, 0]);
        bytes[4] = byte(rng, 3);
        bytes[12..24].copy_from_slice(&[8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        bytes[20] = byte(rng, 256);
    }
    bytes
}

/// A socket that gets every UDP datagram that this host receives. It needs root.
struct Listener(UdpSocket);

impl Listener {
    fn new() -> Option<Self> {
        // SAFETY: the call takes only numbers; its result is checked.
        let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_UDP) };
        if socket < 0 {
            dunlin_testkit::skip("listening to what others receive needs root");
            return None;
        }
        // SAFETY: the system has just given us this descriptor, and nothing else owns it.
        let socket = UdpSocket::from(unsafe { OwnedFd::from_raw_fd(socket) });
        socket.set_nonblocking(true).unwrap();
        Some(Self(socket))
    }

    /// Datagrams that have arrived for this port since the last call.
    fn heard(&self, port: u16) -> Vec<Vec<u8>> {
        let mut buffer = [0; 2048];
        let mut heard = Vec::new();
        while let Ok(length) = self.0.recv(&mut buffer) {
            // The IPv4 header states its own length (RFC 791); the UDP header has 8 bytes (RFC
            // 768).
            let udp = &buffer[usize::from(buffer[0] & 0xF) * 4..length];
            if udp[2..4] == port.to_be_bytes() {
                heard.push(udp[8..].to_vec());
            }
        }
        heard
    }
}

/// A UDP port that was free a moment ago.
fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

/// Sessions of the server and of its client. Each of the two has a second peer, because the kernel
/// drops strangers' datagrams for an endpoint with a single peer (`transport/src/udp/tie.rs`).
const SESSIONS: u32 = 2;

fn datagrams<T: Named>() {
    let ports = [free_port(), free_port()];
    let server = Server::start_with_udp_port::<T>("127.0.0.1:0", ports[0]);
    let mut client = Client::<T>::at("127.0.0.1:0", ports[1]);
    let session = client.connect(server.address);
    let (other_server, mut other_client) = (Server::start::<T>("127.0.0.1:0"), Client::<T>::new());
    client.connect(other_server.address);
    other_client.connect(server.address);
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut rng = Rng::new(41);
    for number in 0..DATAGRAMS {
        let data = datagram(&mut rng);
        for port in ports {
            stranger.send_to(&data, ("127.0.0.1", port)).unwrap();
        }
        if number % BURST == 0 {
            client.exchange(session);
        }
    }
    let stats = client.stats_at_rest(session);
    let drops = client.rpc.counters().drops;
    println!("{}: server {stats:?}, client {drops:?}", T::NAME);
    assert_eq!(
        (stats.twice, stats.sessions),
        (0, SESSIONS.into()),
        "{stats:?}"
    );
    let exchanges = u64::from(DATAGRAMS / BURST);
    assert_eq!(stats.marked, exchanges, "a forged request ran");
    assert_eq!(client.rpc.session_count(), SESSIONS as usize);
    // Some datagrams are empty and not counted, and the kernel may lose some.
    let most = u64::from(DATAGRAMS / 10 * 9);
    assert!(
        stats.drops > most && drops.total() > most,
        "they were not counted"
    );
}

#[test]
fn garbage_datagrams_are_counted_and_disturb_no_session_over_udp() {
    datagrams::<Udp>();
}

/// On one host, the session uses shared memory, but the endpoint's UDP port is open as well.
#[test]
fn garbage_datagrams_are_counted_and_disturb_no_session_over_auto() {
    datagrams::<Auto>();
}

/// A forger sends real packets again: unchanged, as requests far in the future, and with another
/// token. The session's slots must keep working, and no handler may run twice.
#[test]
fn replayed_packets_run_nothing_and_wedge_no_slot() {
    let Some(listener) = Listener::new() else {
        return;
    };
    let port = free_port();
    let server = Server::start_with_udp_port::<Udp>("127.0.0.1:0", port);
    let mut client = Client::<Udp>::new();
    let session = client.connect(server.address);
    let mut other_client = Client::<Udp>::new();
    other_client.connect(server.address);
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut heard = Vec::new();
    for number in 0..500 {
        client.exchange(session);
        heard.extend(listener.heard(port));
        for age in [1, 2, 9, 100] {
            let Some(packet) = heard.len().checked_sub(age).map(|index| &heard[index]) else {
                continue;
            };
            let mut packet = packet.clone();
            match number % 3 {
                0 => {}
                // The third byte of the request number (rule S2).
                1 => packet[22] ^= 0x10,
                _ => packet[8] ^= 1,
            }
            stranger.send_to(&packet, ("127.0.0.1", port)).unwrap();
        }
    }
    assert!(heard.len() >= 500, "{} packets were captured", heard.len());
    let stats = client.stats_at_rest(session);
    println!("{stats:?}");
    assert_eq!((stats.marked, stats.twice), (500, 0), "{stats:?}");
    assert!(stats.drops > 1_000, "{stats:?}");
}

fn control_port<T: Named>() {
    let server = Server::start::<T>("127.0.0.1:0");
    let mut client = Client::<T>::new();
    let session = client.connect(server.address);
    let mut rng = Rng::new(42);
    for _ in 0..300 {
        send_nonsense(server.address, &mut rng);
        client.exchange(session);
    }
    let fresh = client.connect(server.address);
    client.exchange(fresh);
    assert_eq!(client.stats(fresh).sessions, 2);
}

/// A connection that sends nonsense; some read the reply, others just leave.
fn send_nonsense(to: SocketAddr, rng: &mut Rng) {
    let mut stream = TcpStream::connect(to).unwrap();
    let timeout = Duration::from_millis(1);
    stream.set_read_timeout(Some(timeout)).unwrap();
    let length = rng.below(400);
    let bytes = noise(rng, length);
    // The server may close the connection while we write.
    let _ = stream.write_all(&bytes);
    let _ = stream.read(&mut [0; 64]);
}

#[test]
fn garbage_at_the_control_port_disturbs_no_session() {
    control_port::<Auto>();
    control_port::<Udp>();
}
