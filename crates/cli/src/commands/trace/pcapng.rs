//! Packets as a pcapng file: one interface for each endpoint, times in nanoseconds, the direction
//! and the number of packets lost before as options, and drops as comments.

use std::collections::BTreeMap;
use std::io::{self, Write};

use dunlin_insight::Packet;

use crate::commands::headers;

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
/// Tells readers the byte order.
const MAGIC: u32 = 0x1a2b_3c4d;

const END: u16 = 0;
const COMMENT: u16 = 1;
/// Options of an interface.
const NAME: u16 = 2;
const RESOLUTION: u16 = 9;
/// Options of a packet.
const FLAGS: u16 = 2;
const LOST: u16 = 4;

/// Directions in the form of the flags.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

/// A file to which packets are written.
#[derive(Debug)]
pub(super) struct Writer<W> {
    out: W,
    /// The most bytes of a packet that are kept, headers included.
    longest: u32,
    /// Numbers of the endpoints' interfaces.
    interfaces: BTreeMap<u16, u32>,
    /// Number of lost packets that the file reports already.
    lost: u64,
}

impl<W: Write> Writer<W> {
    /// # Errors
    /// It cannot be written.
    pub(super) fn begin(mut out: W, bytes: u32) -> io::Result<Self> {
        let mut body = MAGIC.to_le_bytes().to_vec();
        body.extend_from_slice(&[1, 0, 0, 0]);
        body.extend_from_slice(&u64::MAX.to_le_bytes());
        out.write_all(&block(SECTION, body))?;
        Ok(Self {
            out,
            longest: bytes + u32::try_from(headers::LEN).unwrap_or(0),
            interfaces: BTreeMap::new(),
            lost: 0,
        })
    }

    /// Writes a packet. `lost`: the number of packets lost so far.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn write(&mut self, packet: &Packet, lost: u64) -> io::Result<()> {
        let interface = self.interface(packet.endpoint)?;
        let [us, peer] = addresses(packet);
        let (from, to) = if packet.sent { (us, peer) } else { (peer, us) };
        let len = usize::try_from(packet.len).unwrap_or(usize::MAX);
        let headers = headers::of(from, to, len, packet.congestion);
        let kept = u32::try_from(headers.len() + packet.bytes.len()).unwrap_or(u32::MAX);
        let whole =
            packet.len.saturating_add(kept) - u32::try_from(packet.bytes.len()).unwrap_or(0);
        let (high, low) = (packet.at_ns >> 32, packet.at_ns & 0xffff_ffff);
        let mut body = Vec::with_capacity(256);
        for word in [u64::from(interface), high, low, kept.into(), whole.into()] {
            body.extend_from_slice(&u32::try_from(word).unwrap_or(u32::MAX).to_le_bytes());
        }
        body.extend_from_slice(&headers);
        body.extend_from_slice(&packet.bytes);
        pad(&mut body);
        let direction = if packet.sent { OUTBOUND } else { INBOUND };
        option(&mut body, FLAGS, &direction.to_le_bytes());
        if lost > self.lost {
            option(&mut body, LOST, &(lost - self.lost).to_le_bytes());
            self.lost = lost;
        }
        if let Some(reason) = &packet.dropped {
            option(&mut body, COMMENT, format!("dropped: {reason}").as_bytes());
        }
        option(&mut body, END, &[]);
        self.out.write_all(&block(PACKET, body))
    }

    /// # Errors
    /// It cannot be written.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Returns the number of an endpoint's interface. If it is new, first writes it to the file.
    fn interface(&mut self, endpoint: u16) -> io::Result<u32> {
        if let Some(known) = self.interfaces.get(&endpoint) {
            return Ok(*known);
        }
        let mut body = headers::ETHERNET.to_le_bytes().to_vec();
        body.extend_from_slice(&[0; 2]);
        body.extend_from_slice(&self.longest.to_le_bytes());
        option(&mut body, NAME, format!("endpoint {endpoint}").as_bytes());
        option(&mut body, RESOLUTION, &[9]);
        option(&mut body, END, &[]);
        self.out.write_all(&block(INTERFACE, body))?;
        let number = u32::try_from(self.interfaces.len()).unwrap_or(u32::MAX);
        self.interfaces.insert(endpoint, number);
        Ok(number)
    }
}

/// The addresses of this endpoint and of its peer.
fn addresses(packet: &Packet) -> [[u8; 4]; 2] {
    let [high, low] = packet.endpoint.to_be_bytes();
    let peer = packet.peer.map_or([10, 255, 255, 255], |peer| {
        let [_, a, b, c] = peer.to_be_bytes();
        [10, 128 | a, b, c]
    });
    [[10, 0, high, low], peer]
}

/// A block with its type, and its length at both ends.
fn block(kind: u32, body: Vec<u8>) -> Vec<u8> {
    let len = u32::try_from(body.len() + 12).unwrap_or(u32::MAX);
    let mut out = kind.to_le_bytes().to_vec();
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&body);
    out.extend_from_slice(&len.to_le_bytes());
    out
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    let len = u16::try_from(value.len()).unwrap_or(u16::MAX);
    body.extend_from_slice(&code.to_le_bytes());
    body.extend_from_slice(&len.to_le_bytes());
    body.extend_from_slice(value);
    pad(body);
}

/// Pads to a multiple of 4 bytes, at which every field begins.
fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}
