//! Baselines over AF_XDP and DPDK. Their packets are as long as the library's packets and use the
//! same link, and both sides write and check checksums.
//!
//! [`Side`] writes and reads these packets; `rtt`, `exchange`, `bulk` and `wake` measure. The
//! addresses are made up, because the side takes every packet. The sides over DPDK use one type of
//! the library, [`Bare`], which receives or sends a burst with one call of a C function.

pub(crate) mod bulk;
pub(crate) mod exchange;
pub(crate) mod rtt;
pub(crate) mod wake;

use std::io;
use std::time::{Duration, Instant};

use dunlin_dpdk::Bare;

use super::sys::xdp;
use crate::harness::link::End;
use harness::seat::Seat;

/// Bytes of the headers of Ethernet, IPv4 and UDP.
const HEADERS: usize = 14 + 20 + 8;
/// Where the IP and UDP headers begin. The UDP checksum covers all bytes from `UDP` on.
const IP: usize = 14;
const UDP: usize = IP + 20;
/// Bytes of the library's header. The message begins at this offset in the payload.
pub(crate) const LIBRARY_HEADER: usize = 24;
/// The port of both sides, which tells their packets from others on the link, such as ARP packets.
const PORT: u16 = 7_771;

/// How long a side tries to send when the device takes no packets, because its peer may have just
/// opened.
const ALONE: Duration = LOST;

/// A packet without an answer is lost after this time. On a busy machine, the other process may not
/// run for seconds.
const LOST: Duration = Duration::from_secs(8);

/// The interface or the device of a side.
#[derive(Debug)]
enum Port {
    Xdp(Box<xdp::Port>),
    Dpdk(Box<Bare>),
}

impl Port {
    /// Opens it for packets of up to `longest` bytes.
    fn open(end: &End, longest: usize) -> io::Result<Self> {
        match end {
            End::Interface(place) => {
                let port = xdp::Port::open(place.interface(), place.is_native(), longest)?;
                Ok(Self::Xdp(Box::new(port)))
            }
            End::Device(device) => Ok(Self::Dpdk(Box::new(Bare::open(&device.site())?))),
        }
    }

    /// Shows up to `most` pieces of received packets to `take`, whose second argument is true if
    /// the packet ends with this piece. Returns the number of pieces.
    #[inline]
    fn receive(&mut self, most: u32, mut take: impl FnMut(&[u8], bool)) -> u32 {
        match self {
            Self::Xdp(port) => port.receive(most, take),
            Self::Dpdk(bare) => bare.receive(most, |packet| take(packet, true)),
        }
    }

    /// Writes a packet of `len` bytes, which leaves with the next [`Self::kick`]. False if no frame
    /// is free.
    #[inline]
    fn push(&mut self, len: usize, write: impl FnOnce(&mut [u8])) -> bool {
        match self {
            Self::Xdp(port) => port.push(len, write),
            Self::Dpdk(bare) => bare.push(len, write),
        }
    }

    /// Sleeps until a packet waits.
    fn wait(&self) -> io::Result<()> {
        match self {
            Self::Xdp(port) => port.wait(),
            Self::Dpdk(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Sends the packets that were written.
    #[inline]
    fn kick(&mut self) {
        match self {
            Self::Xdp(port) => port.kick(),
            Self::Dpdk(bare) => {
                if !bare.send() {
                    send_patiently(bare);
                }
            }
        }
    }
}

/// Repeats the attempt while the device takes no packets, because its ring is full or its peer has
/// just opened.
#[cold]
fn send_patiently(bare: &mut Bare) {
    let begin = Instant::now();
    while !bare.send() && begin.elapsed() < ALONE {}
}

/// One side of a link.
#[derive(Debug)]
struct Side {
    port: Port,
    /// The form of the packets that this side sends, and of those that it receives.
    out: Form,
    into: Form,
}

/// Packets of one length.
#[derive(Clone, Copy, Debug)]
struct Form {
    /// The headers, without the UDP checksum.
    headers: [u8; HEADERS],
    /// The part of the UDP checksum that is the same for all packets.
    pseudo: u64,
    /// Bytes of the payload.
    payload: usize,
}

impl Form {
    /// Packets with a payload of `payload` bytes.
    fn new(payload: usize) -> io::Result<Self> {
        let mut headers = [0; HEADERS];
        headers[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
        let udp_len = u16::try_from(8 + payload).map_err(|_| io::ErrorKind::InvalidInput)?;
        let ip = &mut headers[IP..UDP];
        ip[0] = 0x45;
        ip[2..4].copy_from_slice(&(20 + udp_len).to_be_bytes());
        (ip[8], ip[9]) = (64, 17);
        ip[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        let own = finish(sum(ip));
        ip[10..12].copy_from_slice(&own.to_ne_bytes());
        let udp = &mut headers[UDP..];
        udp[..2].copy_from_slice(&PORT.to_be_bytes());
        udp[2..4].copy_from_slice(&PORT.to_be_bytes());
        udp[4..6].copy_from_slice(&udp_len.to_be_bytes());
        let [high, low] = udp_len.to_be_bytes();
        Ok(Self {
            pseudo: sum(&headers[IP + 12..UDP]) + sum(&[0, 17, high, low]),
            headers,
            payload,
        })
    }

    /// Writes a packet into a frame.
    #[inline]
    fn write(&self, packet: &mut [u8], write: impl FnOnce(&mut [u8])) {
        let (head, payload) = packet.split_at_mut(HEADERS);
        head.copy_from_slice(&self.headers);
        write(payload);
        let all = finish(self.pseudo + sum(&head[UDP..UDP + 6]) + sum(payload));
        head[UDP + 6..].copy_from_slice(&all.to_ne_bytes());
    }

    /// The payload of a packet in one piece; `None` if a sum or the length is wrong, or if the
    /// packet does not come from the other side.
    #[inline]
    fn read<'a>(&self, packet: &'a [u8]) -> Option<&'a [u8]> {
        let is_right = packet.len() == HEADERS + self.payload
            && is_ours(packet)
            && is_right(self.pseudo + sum(&packet[UDP..]));
        is_right.then(|| &packet[HEADERS..])
    }
}

impl Side {
    /// Opens a side that sends and receives payloads of these lengths, and puts the thread on its
    /// seat. DPDK starts its own threads before that, so they may run on any processor.
    fn open(end: &End, seat: Seat, out: usize, into: usize) -> anyhow::Result<Self> {
        end.enter()?;
        seat.prepare()?;
        let port = Port::open(end, HEADERS + out.max(into))?;
        seat.take()?;
        Ok(Self {
            port,
            out: Form::new(out)?,
            into: Form::new(into)?,
        })
    }

    /// Writes a packet. False if no frame is free.
    #[inline]
    fn push(&mut self, write: impl FnOnce(&mut [u8])) -> bool {
        let form = &self.out;
        self.port
            .push(HEADERS + form.payload, |packet| form.write(packet, write))
    }

    /// Writes a packet and sends it.
    #[inline]
    fn send(&mut self, write: impl FnOnce(&mut [u8])) -> bool {
        let is_written = self.push(write);
        self.port.kick();
        is_written
    }

    /// Receives up to `most` packets, each in one piece, and calls `take` with the payload of each
    /// valid one. Returns the number of received packets.
    #[inline]
    fn receive(&mut self, most: u32, mut take: impl FnMut(&[u8])) -> u32 {
        let form = &self.into;
        self.port.receive(most, |packet, _| {
            if let Some(payload) = form.read(packet) {
                take(payload);
            }
        })
    }
}

/// Whether a packet comes from the other side; `packet` may be only its first piece.
#[inline]
fn is_ours(packet: &[u8]) -> bool {
    packet.get(IP + 9) == Some(&17)
        && packet.get(UDP + 2..UDP + 4) == Some(&PORT.to_be_bytes())
        && is_right(sum(&packet[IP..IP + 20]))
}

/// The sum of 32-bit words, not yet folded (RFC 1071); the bytes after the last whole word count as
/// one more.
#[inline]
fn sum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(4);
    let mut last = [0; 4];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    let word = |word: &[u8]| u64::from(u32::from_ne_bytes(word.try_into().expect("four bytes")));
    words.map(word).sum::<u64>() + u64::from(u32::from_ne_bytes(last))
}

#[inline]
fn fold(mut sum: u64) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    u16::try_from(sum).expect("the sum was folded to 16 bits")
}

#[inline]
fn finish(sum: u64) -> u16 {
    !fold(sum)
}

#[inline]
fn is_right(sum: u64) -> bool {
    fold(sum) == 0xFFFF
}

#[cfg(test)]
mod tests;
