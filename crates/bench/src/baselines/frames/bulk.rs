//! Large packets in one direction over AF_XDP or DPDK. The sender copies each packet from its place
//! in a buffer. The receiver copies it to its place in another buffer, checks its number and its
//! sum, and acknowledges every few packets. So the sender never has more in flight than the link
//! can hold, and no packet is lost.
//!
//! Each buffer is as large as the messages that the library has in flight, up to 256 MiB. With
//! smaller buffers, packets would be read from, and written to, caches that are too small for
//! messages of that size.

use std::hint;
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde::{Deserialize, Serialize};

use super::{Form, HEADERS, LIBRARY_HEADER, LOST, Side, UDP, is_ours, is_right, sum};
use crate::harness::link::{self, End, Kind};
use crate::harness::probe::{Against, Measurement, Metric, Probe, patience};
use harness::process::{Parent, Process, Role};
use harness::seat::{Seat, Seats};

/// Sends.
pub(crate) const SEND: Role = Role::new("frame-send", send);

/// Receives and acknowledges.
pub(crate) const RECEIVE: Role = Role::new("frame-receive", receive);

/// Packets that may be in flight.
const WINDOW: u64 = 128;

/// Packets between two acknowledgements.
const EVERY: u64 = 16;

/// The most bytes of a buffer, more than the last cache of a processor has.
const MOST: u64 = 256 << 20;

/// Bytes of the payload of an acknowledgement.
const ACK: usize = 32;

/// The most pieces taken from the ring at once.
const BURST: u32 = 64;

/// Packets before the first one that counts, unless the buffers have more places.
const WARM_UP: u64 = 2_000;

const METRICS: [Metric; 1] = [Metric {
    name: "gbps",
    unit: "Gbit/s",
    against: Against::Baseline(0),
}];

/// The rate of data in packets with the library's header and `data` bytes, from a buffer of about
/// `buffer` bytes to another one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameBulk {
    pub(crate) data: u32,
    pub(crate) buffer: u64,
    pub(crate) kind: Kind,
}

#[derive(Serialize, Deserialize)]
struct Params {
    end: End,
    seat: Seat,
    data: u32,
    /// Packets for which each buffer has room.
    places: u64,
    span: Duration,
}

impl Probe for FrameBulk {
    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Dpdk => "raw DPDK transfer",
            Kind::Xdp(_) | Kind::Kernel => "raw AF_XDP transfer",
        }
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let seats = Seats::pick();
        let [near, far] = link::ends(self.kind)?;
        let params = |end, seat| Params {
            end,
            seat,
            data: self.data,
            places: self.places(),
            span,
        };
        let mut receiver = Process::spawn(RECEIVE, Seat::default(), &params(far, seats.server))?;
        receiver.receive::<()>(patience(Duration::ZERO))?;
        let mut sender = Process::spawn(SEND, Seat::default(), &params(near, seats.client))?;
        Ok(vec![sender.receive::<f64>(patience(span))?].into())
    }
}

impl FrameBulk {
    /// Packets for which each buffer has room.
    fn places(&self) -> u64 {
        let buffer = self.buffer.min(MOST);
        buffer.div_ceil(self.data.into()).max(1)
    }
}

/// A buffer of packets. They are used in order, and after the last one again from the first.
struct Buffer {
    bytes: Vec<u8>,
    data: usize,
    places: u64,
}

impl Buffer {
    /// Room for `places` packets of `data` bytes. The bytes are written now, so the system has
    /// mapped all memory.
    fn new(data: usize, places: u64) -> anyhow::Result<Self> {
        Ok(Self {
            bytes: vec![0xA5; data * usize::try_from(places)?],
            data,
            places,
        })
    }

    /// Where a packet begins.
    #[inline]
    fn start(&self, number: u64) -> usize {
        usize::try_from(number % self.places).unwrap_or(0) * self.data
    }

    /// The bytes of a packet.
    #[inline]
    fn packet(&self, number: u64) -> &[u8] {
        &self.bytes[self.start(number)..][..self.data]
    }
}

/// The number in the payload of a packet.
#[inline]
fn number(payload: &[u8]) -> Option<u64> {
    payload.first_chunk().copied().map(u64::from_le_bytes)
}

/// The sender.
///
/// # Errors
/// Packets are lost, or the interface or device cannot be opened.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a run are far below 2^53"
)]
pub(crate) fn send(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    let data = params.data as usize;
    let side = Side::open(&params.end, params.seat, LIBRARY_HEADER + data, ACK)?;
    let mut sender = Sender {
        side,
        source: Buffer::new(data, params.places)?,
        sent: 0,
        acknowledged: 0,
    };
    let warm_up = WARM_UP.max(params.places);
    sender.run_until(|sender, _| sender.acknowledged >= warm_up)?;
    let (begin, before) = (Instant::now(), sender.acknowledged);
    sender.run_until(|_, elapsed| elapsed >= params.span)?;
    let bytes = (sender.acknowledged - before) as f64 * data as f64;
    parent.say(&(bytes * 8.0 / begin.elapsed().as_secs_f64() / 1e9))
}

struct Sender {
    side: Side,
    source: Buffer,
    sent: u64,
    acknowledged: u64,
}

impl Sender {
    fn run_until(&mut self, is_over: impl Fn(&Self, Duration) -> bool) -> anyhow::Result<()> {
        let (begin, mut last) = (Instant::now(), (self.acknowledged, Instant::now()));
        while !is_over(self, begin.elapsed()) {
            self.turn();
            if self.acknowledged != last.0 {
                last = (self.acknowledged, Instant::now());
            }
            ensure!(last.1.elapsed() < LOST, "packets were lost");
        }
        Ok(())
    }

    /// Sends the packets that the window allows, and takes acknowledgements.
    #[inline]
    fn turn(&mut self) {
        let before = self.sent;
        while self.sent < self.acknowledged + WINDOW && self.push() {
            self.sent += 1;
        }
        if self.sent > before {
            self.side.port.kick();
        }
        let acknowledged = &mut self.acknowledged;
        self.side.receive(BURST, |payload| {
            *acknowledged = number(payload).unwrap_or(0).max(*acknowledged);
        });
    }

    #[inline]
    fn push(&mut self) -> bool {
        let number = self.sent;
        let message = self.source.packet(number);
        self.side.push(|payload| {
            payload[..8].copy_from_slice(&number.to_le_bytes());
            let data = &mut payload[LIBRARY_HEADER..];
            data.copy_from_slice(message);
            data[..8].copy_from_slice(&number.to_le_bytes());
        })
    }
}

/// The receiver; runs until the parent kills it.
///
/// # Errors
/// A packet is wrong, or the interface or device cannot be opened.
pub(crate) fn receive(parent: &Parent) -> anyhow::Result<()> {
    let params: Params = parent.receive()?;
    let data = params.data as usize;
    let mut side = Side::open(&params.end, params.seat, ACK, LIBRARY_HEADER + data)?;
    let mut receiver = Receiver {
        form: side.into,
        packet: Packet::default(),
        target: Buffer::new(data, params.places)?,
        taken: 0,
        wrong: false,
    };
    parent.say(&())?;
    let mut acknowledged = 0;
    loop {
        if side
            .port
            .receive(BURST, |piece, ends| receiver.take(piece, ends))
            == 0
        {
            hint::spin_loop();
        }
        ensure!(!receiver.wrong, "packet {} is wrong", receiver.taken);
        if receiver.taken >= acknowledged + EVERY {
            acknowledged = receiver.taken;
            side.send(|payload| payload[..8].copy_from_slice(&acknowledged.to_le_bytes()));
        }
    }
}

/// The packet whose pieces are arriving.
#[derive(Clone, Copy, Debug, Default)]
struct Packet {
    /// Bytes so far; 0 before the first piece.
    len: usize,
    sum: u64,
    number: u64,
    /// Whether the packet comes from the sender.
    is_ours: bool,
}

struct Receiver {
    form: Form,
    packet: Packet,
    target: Buffer,
    taken: u64,
    wrong: bool,
}

impl Receiver {
    /// Copies a piece to its place in the buffer.
    #[inline]
    fn take(&mut self, piece: &[u8], ends: bool) {
        const START: usize = HEADERS + LIBRARY_HEADER;
        let at = self.packet.len;
        if at == 0 {
            self.packet.is_ours = piece.len() >= START && is_ours(piece);
            self.packet.number = piece.get(HEADERS..).and_then(number).unwrap_or(0);
        }
        self.packet.len += piece.len();
        if self.packet.is_ours && self.packet.len <= START + self.target.data {
            let (skip, sum_from) = if at == 0 { (START, UDP) } else { (0, 0) };
            self.packet.sum += sum(&piece[sum_from..]);
            let place = self.target.start(self.packet.number) + (at + skip).saturating_sub(START);
            let bytes = &piece[skip..];
            self.target.bytes[place..place + bytes.len()].copy_from_slice(bytes);
        }
        if ends {
            self.on_end();
        }
    }

    fn on_end(&mut self) {
        let packet = std::mem::take(&mut self.packet);
        if packet.is_ours {
            let is_whole = packet.len == HEADERS + LIBRARY_HEADER + self.target.data
                && packet.number == self.taken
                && is_right(self.form.pseudo + packet.sum)
                && number(self.target.packet(packet.number)) == Some(packet.number);
            self.wrong |= !is_whole;
            self.taken += 1;
        }
    }
}
