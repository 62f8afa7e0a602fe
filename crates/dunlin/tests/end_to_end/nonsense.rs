//! Senders of nonsense: random, mutated and replayed datagrams at the UDP port, from strangers and
//! under the address of a client, and bytes that are no message at the control port. Everything is
//! dropped and counted; RPCs go on, and nothing runs twice.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use dunlin::{Auto, Udp};

use crate::Named;
use crate::client::Client;
use crate::process::Server;

const DATAGRAMS: u32 = 10_000;
/// Datagrams between two RPCs.
const BURST: u32 = 20;

/// Numbers that look random and are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.below(256)).unwrap()
    }

    /// Bytes without sense, or a header that is right but for its token and a few bits.
    fn datagram(&mut self) -> Vec<u8> {
        let length = self.below(200);
        let mut bytes: Vec<u8> = (0..length).map(|_| self.byte()).collect();
        if length >= 24 && self.below(2) == 0 {
            let kind = u8::try_from(self.below(6)).unwrap();
            // Version 1, no flags, MARK, one of the first sessions; token and numbers stay random.
            bytes[..8].copy_from_slice(&[1 << 4 | kind, 0, 1, 0, 0, 0, 0, 0]);
            bytes[4] = u8::try_from(self.below(3)).unwrap();
            bytes[12..24].copy_from_slice(&[8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            bytes[20] = self.byte();
        }
        bytes
    }
}

/// Sends datagrams under any address of this host. It needs root.
struct Forger(OwnedFd);

impl Forger {
    fn new() -> Option<Self> {
        // SAFETY: asks for a socket; the result is checked.
        let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_RAW) };
        // SAFETY: a descriptor that the system has just given to us alone.
        (socket >= 0).then(|| Self(unsafe { OwnedFd::from_raw_fd(socket) }))
    }

    fn send(&self, from: SocketAddrV4, to: SocketAddrV4, data: &[u8]) {
        let udp_length = u16::try_from(8 + data.len()).unwrap();
        let total = (udp_length + 20).to_be_bytes();
        // IPv4 (RFC 791); the system fills the checksum in. Then UDP (RFC 768) without a checksum.
        let mut packet = vec![0x45, 0, total[0], total[1], 0, 0, 0, 0, 64, 17, 0, 0];
        packet.extend(from.ip().octets());
        packet.extend(to.ip().octets());
        for field in [from.port(), to.port(), udp_length, 0] {
            packet.extend(field.to_be_bytes());
        }
        packet.extend(data);
        let address = libc::sockaddr_in {
            sin_family: u16::try_from(libc::AF_INET).unwrap(),
            sin_port: 0,
            sin_addr: libc::in_addr {
                s_addr: u32::from_ne_bytes(to.ip().octets()),
            },
            sin_zero: [0; 8],
        };
        let length = u32::try_from(size_of_val(&address)).unwrap();
        // SAFETY: packet and address are valid for the lengths that are given with them.
        let sent = unsafe {
            let (data, address) = (packet.as_ptr().cast(), (&raw const address).cast());
            libc::sendto(self.0.as_raw_fd(), data, packet.len(), 0, address, length)
        };
        assert_eq!(usize::try_from(sent).ok(), Some(packet.len()));
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

fn loopback(port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)
}

fn datagrams<T: Named>() {
    let (server_port, client_port) = (free_port(), free_port());
    let server = Server::start_with_udp_port::<T>("127.0.0.1:0", server_port);
    let mut client = Client::<T>::at("127.0.0.1:0", client_port);
    let session = client.connect(server.address);
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let forger = Forger::new();
    if forger.is_none() {
        crate::skip("datagrams under another's address need root; strangers' alone are tested");
    }
    let mut random = Random(41);
    for number in 0..DATAGRAMS {
        let data = random.datagram();
        match &forger {
            Some(forger) if number % 2 == 0 => {
                forger.send(loopback(client_port), loopback(server_port), &data);
                forger.send(loopback(server_port), loopback(client_port), &data);
            }
            _ => {
                stranger.send_to(&data, loopback(server_port)).unwrap();
            }
        }
        if number % BURST == 0 {
            client.exchange(session);
        }
    }
    let stats = client.stats_at_rest(session);
    println!(
        "{}: {stats:?}, client {:?}",
        T::NAME,
        client.rpc.counters().drops
    );
    assert_eq!((stats.twice, stats.sessions), (0, 1), "{stats:?}");
    assert_eq!(
        stats.marked,
        u64::from(DATAGRAMS / BURST),
        "a forged request ran"
    );
    assert_eq!(client.rpc.session_count(), 1);
}

#[test]
fn datagrams_without_sense_disturb_nobody_over_udp() {
    datagrams::<Udp>();
}

/// On one host it uses shared memory; its UDP port is open all the same.
#[test]
fn datagrams_without_sense_disturb_nobody_over_auto() {
    datagrams::<Auto>();
}

#[test]
fn dropped_datagrams_are_counted() {
    let (server_port, client_port) = (free_port(), free_port());
    let server = Server::start_with_udp_port::<Udp>("127.0.0.1:0", server_port);
    let mut client = Client::<Udp>::at("127.0.0.1:0", client_port);
    let session = client.connect(server.address);
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let before = client.stats(session);
    for _ in 0..10 {
        stranger
            .send_to(b"who are you?", loopback(server_port))
            .unwrap();
    }
    client.rpc.run_for(Duration::from_millis(50));
    let after = client.stats(session);
    assert_eq!(after.unknown - before.unknown, 10, "{after:?}");
    let Some(forger) = Forger::new() else {
        return crate::skip("datagrams under another's address need root");
    };
    for _ in 0..10 {
        forger.send(loopback(client_port), loopback(server_port), b"it is me");
    }
    client.rpc.run_for(Duration::from_millis(50));
    let forged = client.stats(session);
    assert_eq!(forged.drops - after.drops, 10, "{forged:?}");
}

fn control_port<T: Named>() {
    let server = Server::start::<T>("127.0.0.1:0");
    let mut client = Client::<T>::new();
    let session = client.connect(server.address);
    let mut random = Random(42);
    for _ in 0..300 {
        send_nonsense(server.address, &mut random);
        client.exchange(session);
    }
    let fresh = client.connect(server.address);
    client.exchange(fresh);
    assert_eq!(client.stats(fresh).sessions, 2);
}

/// A connection that says nothing sensible; some wait for what comes back, others just leave.
fn send_nonsense(to: SocketAddr, random: &mut Random) {
    let mut stream = TcpStream::connect(to).unwrap();
    let timeout = Duration::from_millis(1);
    stream.set_read_timeout(Some(timeout)).unwrap();
    let bytes: Vec<u8> = (0..random.below(400)).map(|_| random.byte()).collect();
    // The server may close while we speak.
    let _ = stream.write_all(&bytes);
    let _ = stream.read(&mut [0; 64]);
}

#[test]
fn bytes_without_sense_at_the_control_port_disturb_nobody() {
    control_port::<Auto>();
    control_port::<Udp>();
}
