//! Ping-pong of a datagram through the kernel over loopback. Both sides spin: they call `sendto`,
//! and `recvfrom` without waiting. If their sockets are connected, they call `send` and `recv`, and
//! the kernel looks up no route.

use std::hint;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde::{Deserialize, Serialize};

use crate::harness::probe::{Measurement, Metric, Probe, patience};
use crate::harness::{rtt, work};
use harness::process::{Parent, Process, Role};
use harness::seat::Seats;

/// Measures round trips.
pub(crate) const PING: Role = Role::new("udp-ping", ping);

/// Answers the datagrams.
pub(crate) const ECHO: Role = Role::new("udp-echo", echo);

/// How long the client waits for one answer. Loopback does not lose a lone datagram, so a lost
/// answer is a failure of the measurement.
const LOST: Duration = Duration::from_secs(2);

/// Polls between two checks of the time.
const POLLS: u32 = 1 << 16;

/// Round trips of datagrams of `size` bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UdpRtt {
    pub(crate) size: u32,
    /// Whether each socket is connected to the other.
    pub(crate) is_connected: bool,
}

#[derive(Serialize, Deserialize)]
struct Params {
    server: SocketAddr,
    size: u32,
    is_connected: bool,
    span: Duration,
}

impl Probe for UdpRtt {
    fn name(&self) -> &'static str {
        match self.is_connected {
            false => "raw UDP ping-pong, not connected",
            true => "raw UDP ping-pong, connected",
        }
    }

    fn metrics(&self) -> &'static [Metric] {
        &rtt::METRICS
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let seats = Seats::pick();
        let of_server = (self.size, self.is_connected);
        let mut server_process = Process::spawn(ECHO, seats.server, &of_server)?;
        let server = server_process.receive(patience(Duration::ZERO))?;
        let params = Params {
            server,
            size: self.size,
            is_connected: self.is_connected,
            span,
        };
        let mut client = Process::spawn(PING, seats.client, &params)?;
        Ok(client.receive::<Vec<f64>>(patience(span))?.into())
    }
}

/// The client.
///
/// # Errors
/// A wrong or lost answer, or the socket fails.
pub(crate) fn ping(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    let mut socket = Socket::open()?;
    if params.is_connected {
        socket.connect(params.server)?;
    }
    let size = params.size as usize;
    let (mut request, mut response) = (vec![0; size], vec![0; size]);
    let quantiles = rtt::measure(params.span, |counter| {
        work::fill(&mut request, counter);
        socket.send(&request, params.server)?;
        let (len, _) = socket.receive(&mut response, LOST)?;
        Ok(len == size && work::is_answer(&response, size, counter))
    })?;
    parent.say(&quantiles)
}

/// The server; runs until the parent kills it.
///
/// # Errors
/// The socket fails.
pub(crate) fn echo(parent: &Parent) -> anyhow::Result<()> {
    let (size, is_connected): (u32, bool) = parent.receive()?;
    let mut socket = Socket::open()?;
    parent.say(&socket.socket.local_addr()?)?;
    let (mut request, mut response) = (vec![0; size as usize], vec![0; size as usize]);
    loop {
        let (len, client) = socket.receive(&mut request, Duration::MAX)?;
        ensure!(len == request.len(), "a request of {len} bytes");
        if is_connected && socket.peer.is_none() {
            socket.connect(client)?;
        }
        work::answer(&request, &mut response);
        socket.send(&response, client)?;
    }
}

struct Socket {
    socket: UdpSocket,
    /// The peer to which it is connected.
    peer: Option<SocketAddr>,
}

impl Socket {
    fn open() -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, peer: None })
    }

    fn connect(&mut self, peer: SocketAddr) -> io::Result<()> {
        self.peer = Some(peer);
        self.socket.connect(peer)
    }

    #[inline]
    fn send(&self, bytes: &[u8], to: SocketAddr) -> io::Result<usize> {
        match self.peer {
            None => self.socket.send_to(bytes, to),
            Some(_) => self.socket.send(bytes),
        }
    }

    /// Spins until a datagram arrives. Returns its length and its sender.
    #[inline]
    fn receive(&self, buffer: &mut [u8], limit: Duration) -> io::Result<(usize, SocketAddr)> {
        let begin = Instant::now();
        loop {
            for _ in 0..POLLS {
                let received = match self.peer {
                    None => self.socket.recv_from(buffer),
                    Some(peer) => self.socket.recv(buffer).map(|len| (len, peer)),
                };
                match received {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => hint::spin_loop(),
                    result => return result,
                }
            }
            if begin.elapsed() > limit {
                return Err(ErrorKind::TimedOut.into());
            }
        }
    }
}
