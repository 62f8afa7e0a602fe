//! Ping-pong of a datagram through the kernel over loopback. Both sides spin: they call `sendto`,
//! and `recvfrom` without waiting.

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
}

#[derive(Serialize, Deserialize)]
struct Params {
    server: SocketAddr,
    size: u32,
    span: Duration,
}

impl Probe for UdpRtt {
    fn name(&self) -> &'static str {
        "raw UDP ping-pong"
    }

    fn metrics(&self) -> &'static [Metric] {
        &rtt::METRICS
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let seats = Seats::pick();
        let mut server_process = Process::spawn(ECHO, seats.server, &self.size)?;
        let server = server_process.receive(patience(Duration::ZERO))?;
        let params = Params {
            server,
            size: self.size,
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
    let socket = socket()?;
    let size = params.size as usize;
    let (mut request, mut response) = (vec![0; size], vec![0; size]);
    let quantiles = rtt::measure(params.span, |counter| {
        work::fill(&mut request, counter);
        socket.send_to(&request, params.server)?;
        let (len, _) = receive(&socket, &mut response, LOST)?;
        Ok(len == size && work::is_answer(&response, size, counter))
    })?;
    parent.say(&quantiles)
}

/// The server; runs until the parent kills it.
///
/// # Errors
/// The socket fails.
pub(crate) fn echo(parent: &Parent) -> anyhow::Result<()> {
    let size: u32 = parent.receive()?;
    let socket = socket()?;
    parent.say(&socket.local_addr()?)?;
    let (mut request, mut response) = (vec![0; size as usize], vec![0; size as usize]);
    loop {
        let (len, client) = receive(&socket, &mut request, Duration::MAX)?;
        ensure!(len == request.len(), "a request of {len} bytes");
        work::answer(&request, &mut response);
        socket.send_to(&response, client)?;
    }
}

fn socket() -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Spins until a datagram arrives.
#[inline]
fn receive(
    socket: &UdpSocket,
    buffer: &mut [u8],
    limit: Duration,
) -> io::Result<(usize, SocketAddr)> {
    let begin = Instant::now();
    loop {
        for _ in 0..POLLS {
            match socket.recv_from(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => hint::spin_loop(),
                result => return result,
            }
        }
        if begin.elapsed() > limit {
            return Err(ErrorKind::TimedOut.into());
        }
    }
}
