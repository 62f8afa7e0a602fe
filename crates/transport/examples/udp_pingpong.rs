//! Measures the `udp` transport against its system calls, over loopback.
//!
//! `cargo run --release -p dunlin-transport --example udp_pingpong [ROUNDS]` prints the round trip
//! of a 56-byte packet (24 inline and 32 of a msgbuf), raw and through the two halves, and the
//! packets per second that one thread sends and another receives: raw `sendmmsg`/`recvmmsg`,
//! through the halves with packing and GSO/GRO, and without. Every packet carries a number, which
//! the receiver reads. Each round measures everything once; figures are medians over the rounds.

use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dunlin_core::transport::{Halves, MAX_INLINE, PeerId, Rx, Tx, TxItem};
use dunlin_msgbuf::{BufRef, Pool, PoolConfig};
use dunlin_transport::connect::{EndpointUid, PeerInfo, meet};
use dunlin_transport::udp::{Options, Udp, UdpRx, UdpTx};

type Endpoint = Halves<UdpRx, UdpTx>;

const PACKET: usize = 56;
const PINGS: u64 = 20_000;
const BATCH: usize = 16;
/// Rounds by default. The figures of a build with debug assertions mean nothing.
const ROUNDS: usize = if cfg!(debug_assertions) { 3 } else { 9 };
const ADDR_BYTES: libc::socklen_t = 16;
const STREAM: Duration = Duration::from_millis(250);

fn main() {
    let rounds = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(ROUNDS);
    let plain = Options {
        pack: false,
        gso: false,
        gro: false,
        ..Options::default()
    };
    let mut rows: [Vec<f64>; 5] = Default::default();
    for _ in 0..rounds {
        rows[0].push(raw_ping_pong());
        rows[1].push(ping_pong());
        rows[2].push(raw_stream());
        rows[3].push(stream(&Options::default()));
        rows[4].push(stream(&plain));
    }
    let [raw_rtt, rtt, raw_rate, rate, plain_rate] = rows.map(Spread::of);
    println!("{rounds} rounds, 56-byte packets: median (min to max)");
    println!("round trip, raw sendto/recvfrom  {raw_rtt} ns");
    println!(
        "round trip, udp                  {rtt} ns, ratio {:.3}",
        rtt.over(&raw_rtt)
    );
    println!("one way, raw sendmmsg/recvmmsg   {raw_rate} packets/s");
    println!("one way, udp, plain              {plain_rate} packets/s");
    println!("one way, udp, 16 packets a burst {rate} packets/s");
    println!(
        "  ratio to raw {:.2}, to plain {:.2}",
        rate.over(&raw_rate),
        rate.over(&plain_rate)
    );
}

struct Spread {
    median: f64,
    min: f64,
    max: f64,
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let (min, max) = (values[0], values[values.len() - 1]);
        Self {
            median: values[values.len() / 2],
            min,
            max,
        }
    }

    fn over(&self, baseline: &Self) -> f64 {
        self.median / baseline.median
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:>10.0} ({:.0} to {:.0})",
            self.median, self.min, self.max
        )
    }
}

/// Two connected endpoints, and the number that each has for the other.
fn pair(options: &Options) -> ((Endpoint, PeerId), (Endpoint, PeerId)) {
    let mut a = Udp::open(options).expect("loopback has ports");
    let mut b = Udp::open(options).expect("loopback has ports");
    let info = |n| PeerInfo {
        endpoint: EndpointUid([n; 16]),
        same_host: true,
        same_process: true,
        proves: true,
        local: None,
        remote: None,
    };
    let met = meet::<Udp>([&mut a, &mut b], &[info(1), info(2)]);
    let [to_b, to_a] = met.expect("the ends fit each other");
    ((a, to_b), (b, to_a))
}

fn item(peer: PeerId, number: u64, data: BufRef) -> TxItem {
    let mut inline = [0; MAX_INLINE];
    inline[..8].copy_from_slice(&number.to_le_bytes());
    TxItem {
        peer,
        inline_len: 24,
        inline,
        data,
    }
}

fn number(packet: &[u8]) -> u64 {
    u64::from_le_bytes(*packet.first_chunk().expect("packets have 56 bytes"))
}

/// Sends each packet back until one has the number `u64::MAX`.
fn echo((mut endpoint, peer): (Endpoint, PeerId)) {
    let mut pool = Pool::new(PoolConfig::default()).expect("memory for a pool");
    let buf = pool.alloc(PACKET - 24).expect("memory for a packet");
    loop {
        for index in 0..endpoint.rx.burst() {
            let got = number(endpoint.rx.frame(index).bytes);
            if got == u64::MAX {
                return;
            }
            endpoint.tx.burst(&[item(peer, got, buf.lend())]);
        }
    }
}

/// Median round trip in nanoseconds.
fn ping_pong() -> f64 {
    let ((mut client, to_server), server) = pair(&Options::default());
    let server = thread::spawn(move || echo(server));
    let mut pool = Pool::new(PoolConfig::default()).expect("memory for a pool");
    let buf = pool.alloc(PACKET - 24).expect("memory for a packet");
    let rtt = median_of(|ping| {
        client.tx.burst(&[item(to_server, ping, buf.lend())]);
        while client.rx.burst() == 0 {}
        assert_eq!(number(client.rx.frame(0).bytes), ping);
    });
    client.tx.burst(&[item(to_server, u64::MAX, buf.lend())]);
    server.join().expect("the server does not panic");
    rtt
}

fn median_of(mut round_trip: impl FnMut(u64)) -> f64 {
    let mut spans: Vec<_> = (0..PINGS)
        .map(|ping| {
            let start = Instant::now();
            round_trip(ping);
            start.elapsed().as_secs_f64() * 1e9
        })
        .collect();
    spans.sort_by(f64::total_cmp);
    spans[spans.len() / 2]
}

/// Packets that arrive per second.
fn stream(options: &Options) -> f64 {
    let ((mut from, peer), (to, _)) = pair(options);
    received_during(to, |stop| {
        let mut pool = Pool::new(PoolConfig::default()).expect("memory for a pool");
        let buf = pool.alloc(PACKET - 24).expect("memory for a packet");
        let mut items = [item(peer, 0, buf.lend()); BATCH];
        let mut next = 0_u64;
        while !stop.load(Ordering::Relaxed) {
            for item in &mut items {
                item.inline[..8].copy_from_slice(&next.to_le_bytes());
                next += 1;
            }
            from.tx.burst(&items);
        }
    })
}

/// Counts packets at `to` while `send` runs.
fn received_during(mut to: Endpoint, send: impl FnOnce(&AtomicBool) + Send) -> f64 {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| send(&stop));
        let (start, mut count, mut last) = (Instant::now(), 0_u64, 0);
        while start.elapsed() < STREAM {
            for index in 0..to.rx.burst() {
                for packet in to.rx.frame(index).bytes.chunks_exact(PACKET) {
                    assert!(number(packet) >= last, "loopback keeps the order");
                    last = number(packet);
                    count += 1;
                }
            }
        }
        let span = start.elapsed();
        stop.store(true, Ordering::Relaxed);
        count as f64 / span.as_secs_f64()
    })
}

fn raw_socket() -> (UdpSocket, libc::sockaddr_in) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has ports");
    socket
        .set_nonblocking(true)
        .expect("sockets can be non-blocking");
    let port = socket.local_addr().expect("the socket is bound").port();
    let addr = libc::sockaddr_in {
        sin_family: 2,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from_be_bytes([127, 0, 0, 1]).to_be(),
        },
        sin_zero: [0; 8],
    };
    (socket, addr)
}

fn raw_send(socket: &UdpSocket, bytes: &[u8], to: &libc::sockaddr_in) {
    let (at, to) = (bytes.as_ptr().cast(), std::ptr::from_ref(to).cast());
    // SAFETY: both pointers lead to live memory of the given lengths.
    let sent = unsafe { libc::sendto(socket.as_raw_fd(), at, bytes.len(), 0, to, ADDR_BYTES) };
    assert!(sent > 0, "loopback takes a packet");
}

fn raw_receive(socket: &UdpSocket, bytes: &mut [u8]) -> bool {
    let (at, null) = (bytes.as_mut_ptr().cast(), std::ptr::null_mut());
    // SAFETY: `at` leads to `bytes.len()` bytes; no address is asked for.
    let got = unsafe { libc::recvfrom(socket.as_raw_fd(), at, bytes.len(), 0, null, null.cast()) };
    got > 0
}

/// Median round trip in nanoseconds, without the transport.
fn raw_ping_pong() -> f64 {
    let ((client, client_addr), (server, server_addr)) = (raw_socket(), raw_socket());
    let server = thread::spawn(move || {
        let mut packet = [0; 2048];
        loop {
            while !raw_receive(&server, &mut packet) {}
            if number(&packet) == u64::MAX {
                return;
            }
            raw_send(&server, &packet[..PACKET], &client_addr);
        }
    });
    let mut packet = [0; 2048];
    let mut out = [0; PACKET];
    let rtt = median_of(|ping| {
        out[..8].copy_from_slice(&ping.to_le_bytes());
        raw_send(&client, &out, &server_addr);
        while !raw_receive(&client, &mut packet) {}
        assert_eq!(number(&packet), ping);
    });
    raw_send(&client, &[0xFF; PACKET], &server_addr);
    server.join().expect("the server does not panic");
    rtt
}

/// Packets that arrive per second without the transport: `sendmmsg` of 32 to `recvmmsg` of 32.
fn raw_stream() -> f64 {
    let ((from, _), (to, mut to_addr)) = (raw_socket(), raw_socket());
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let stop = &stop;
        scope.spawn(move || {
            let name = std::ptr::from_mut(&mut to_addr);
            let mut packets = [[0_u8; PACKET]; 32];
            let mut next = 0_u64;
            with_vectors(&mut packets, name, |headers| {
                while !stop.load(Ordering::Relaxed) {
                    next += 1;
                    // SAFETY: the headers lead to live packets and a live address.
                    unsafe { libc::sendmmsg(from.as_raw_fd(), headers, 32, 0) };
                }
            });
        });
        let mut room = [[0_u8; 2048]; 32];
        let (start, mut count) = (Instant::now(), 0_u64);
        with_vectors(&mut room, std::ptr::null_mut(), |headers| {
            while start.elapsed() < STREAM {
                let null = std::ptr::null_mut();
                // SAFETY: the headers lead to live rooms.
                let got = unsafe { libc::recvmmsg(to.as_raw_fd(), headers, 32, 0, null) };
                count += u64::try_from(got).unwrap_or(0);
            }
        });
        stop.store(true, Ordering::Relaxed);
        count as f64 / start.elapsed().as_secs_f64()
    })
}

fn with_vectors<const N: usize>(
    packets: &mut [[u8; N]; 32],
    name: *mut libc::sockaddr_in,
    work: impl FnOnce(*mut libc::mmsghdr),
) {
    let mut iovecs = packets.each_mut().map(|packet| libc::iovec {
        iov_base: packet.as_mut_ptr().cast(),
        iov_len: packet.len(),
    });
    let mut headers = iovecs.each_mut().map(|iovec| {
        // SAFETY: null pointers and zero lengths are a valid header.
        let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
        header.msg_hdr.msg_iov = iovec;
        header.msg_hdr.msg_iovlen = 1;
        header.msg_hdr.msg_name = name.cast();
        header.msg_hdr.msg_namelen = if name.is_null() { 0 } else { ADDR_BYTES };
        header
    });
    work(headers.as_mut_ptr());
}
