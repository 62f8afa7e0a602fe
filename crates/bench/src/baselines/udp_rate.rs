//! Small datagrams through the kernel over loopback, one way, as fast as it accepts them: 32 in
//! each system call, without and with segmentation. With segmentation, the kernel carries many of
//! them as one packet up to the receiving socket.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

use super::sys;
use super::sys::Datagrams;
use crate::harness::probe::{Against, Measurement, Metric, Probe, patience};
use crate::harness::work;
use harness::process::{Parent, Process, Role};
use harness::seat::Seats;

/// Sends datagrams as fast as it can.
pub(crate) const SEND: Role = Role::new("udp-send", send);

/// Receives and counts them.
pub(crate) const RECEIVE: Role = Role::new("udp-receive", receive);

/// Bytes of the datagram of an RPC of `size` bytes, with its framing.
pub(crate) const fn datagram(size: u16) -> u16 {
    size + 32
}

/// Messages in one system call.
const BATCH: usize = 32;

/// Bytes that the receiver's socket may hold; datagrams that find it full are lost and do not
/// count.
const RECEIVE_BUFFER: i32 = 4 << 20;

/// The most bytes of datagrams that segmentation joins.
const LARGEST: usize = 1 << 16;

/// Datagrams before the first that counts.
const WARM_UP: u64 = 10_000;

const METRICS: [Metric; 1] = [Metric {
    name: "packets_per_s",
    unit: "1/s",
    against: Against::Baseline(0),
}];

/// The rate of datagrams, with `segments` of them in each message to the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UdpRate {
    pub(crate) segments: u32,
    /// Bytes of a datagram.
    pub(crate) size: u16,
}

#[derive(Serialize, Deserialize)]
struct Params {
    receiver: SocketAddrV4,
    segments: u32,
    size: u16,
}

impl Probe for UdpRate {
    fn name(&self) -> &'static str {
        "raw UDP datagrams"
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let seats = Seats::pick();
        let params = (self.segments, self.size, span);
        let mut receiving = Process::spawn(RECEIVE, seats.server, &params)?;
        let receiver = receiving.receive(patience(Duration::ZERO))?;
        let params = Params {
            receiver,
            segments: self.segments,
            size: self.size,
        };
        let _sending = Process::spawn(SEND, seats.client, &params)?;
        Ok(vec![receiving.receive(patience(span))?].into())
    }
}

/// Sends until the parent kills it. Every datagram holds a fresh counter.
///
/// # Errors
/// The socket fails.
pub(crate) fn send(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    if params.segments > 1 {
        sys::set_segment_size(&socket, params.size)
            .context("the kernel has no segmentation (GSO)")?;
    }
    let size = usize::from(params.size);
    let message = size * params.segments as usize;
    let mut datagrams = Datagrams::new(BATCH, message, Some(params.receiver));
    let mut counter = 0;
    loop {
        for request in datagrams.bytes_mut().chunks_exact_mut(size) {
            work::fill(request, counter);
            counter += 1;
        }
        datagrams.send(&socket)?;
    }
}

/// Receives and checks datagrams for the span, and reports their rate.
///
/// # Errors
/// The socket fails, or a datagram arrives that the sender did not send.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a run are far below 2^53"
)]
pub(crate) fn receive(parent: &Parent) -> anyhow::Result<()> {
    let (segments, size, span): (u32, u16, Duration) = parent.receive()?;
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    sys::set_receive_buffer(&socket, RECEIVE_BUFFER)?;
    let size = usize::from(size);
    let mut largest = size;
    if segments > 1 {
        sys::set_gro(&socket).context("the kernel does not join segments (GRO)")?;
        largest = LARGEST;
    }
    parent.say(&socket.local_addr()?)?;
    let mut datagrams = Datagrams::new(BATCH, largest, None);
    let mut count = 0;
    while count < WARM_UP {
        count += take(&socket, &mut datagrams, size)?;
    }
    let begin = Instant::now();
    count = 0;
    while begin.elapsed() < span {
        count += take(&socket, &mut datagrams, size)?;
    }
    parent.say(&(count as f64 / begin.elapsed().as_secs_f64()))
}

/// Takes the datagrams that have arrived, and returns their number.
fn take(socket: &UdpSocket, datagrams: &mut Datagrams, size: usize) -> anyhow::Result<u64> {
    let mut count = 0;
    for index in 0..datagrams.receive(socket)? {
        for datagram in datagrams.received(index).chunks(size) {
            let counter = work::counter(datagram).context("a short datagram")?;
            let is_right = datagram.len() == size;
            let is_right = is_right && work::is_request(datagram, counter);
            ensure!(is_right, "a datagram is not one that was sent");
            count += 1;
        }
    }
    Ok(count)
}
