//! Writes the headers of a frame. Apart from lengths and checksums, all datagrams to a peer have
//! the same headers, so they are made once.
//!
//! Checksums are always complete: the receiver's device may check them. A datagram is never
//! fragmented ("don't fragment" is set); if a datagram is too long for a frame, `xdp` leaves it to
//! the kernel.

use std::net::{IpAddr, SocketAddr};

use super::layout::{
    ETHERNET, Home, IPV4, IPV6, Mac, PROTOCOL_UDP, TAG, TYPE_IPV4, TYPE_IPV6, TYPE_TAG, UDP,
};
use super::parse::pseudo_header;
use super::sum::Sum;

/// Bytes of the longest headers: with a VLAN tag and IPv6.
pub const MAX_HEADER: usize = ETHERNET + TAG + IPV6 + UDP;

/// Bytes of headers with IPv4 and without a VLAN tag.
const PLAIN: usize = ETHERNET + IPV4 + UDP;

const ROOM: &str = "the frame has room for headers and a block";

/// "ECN-capable transport (0)" (RFC 3168).
const ECT_0: u8 = 0b10;
/// Number of routers that may forward a frame.
const HOPS: u8 = 64;

/// The headers of frames from an endpoint to a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    bytes: [u8; MAX_HEADER],
    /// Bytes of all headers.
    len: usize,
    /// Where the IP header begins.
    ip: usize,
    /// The sums over the IPv4 header and over the pseudo header, both without the lengths.
    ip_sum: Sum,
    pseudo: Sum,
}

impl Header {
    /// The headers of frames from `home` to the address `to`, through the neighbour with `mac`.
    ///
    /// # Panics
    /// If the addresses are of different families.
    pub fn new(home: &Home, to: SocketAddr, mac: Mac) -> Self {
        let mut bytes = Writer::default();
        bytes.add(&mac);
        bytes.add(&home.mac);
        if home.vlan != 0 {
            bytes.add(&TYPE_TAG.to_be_bytes());
            bytes.add(&home.vlan.to_be_bytes());
        }
        let ip = bytes.len + 2;
        let mut ip_sum = Sum::default();
        match (home.address.ip(), to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                bytes.add(&TYPE_IPV4.to_be_bytes());
                bytes.add(&[0x45, ECT_0, 0, 0]);
                // Datagrams are never fragmented: there is no identification, and "don't fragment"
                // is set.
                bytes.add(&[0, 0, 0x40, 0, HOPS, PROTOCOL_UDP, 0, 0]);
                bytes.add(&from.octets());
                bytes.add(&to.octets());
                ip_sum.add(&bytes.bytes[ip..bytes.len]);
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                bytes.add(&TYPE_IPV6.to_be_bytes());
                bytes.add(&[0x60, ECT_0 << 4, 0, 0, 0, 0, PROTOCOL_UDP, HOPS]);
                bytes.add(&from.octets());
                bytes.add(&to.octets());
            }
            _ => panic!("the two addresses are of different families"),
        }
        let mut pseudo = pseudo_header(home.address.ip(), to.ip(), PROTOCOL_UDP, 0);
        let ports = [home.address.port().to_be_bytes(), to.port().to_be_bytes()];
        for port in ports {
            bytes.add(&port);
            pseudo.add(&port);
        }
        bytes.add(&[0; 4]);
        Self {
            bytes: bytes.bytes,
            len: bytes.len,
            ip,
            ip_sum,
            pseudo,
        }
    }

    /// Bytes of all headers.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.len
    }

    /// Writes the headers of a datagram with `payload` bytes, whose sum is `sum`, to the start of
    /// `frame`.
    ///
    /// # Panics
    /// If `frame` is shorter than [`Self::bytes`], or the datagram longer than UDP allows.
    #[inline]
    pub fn write(&self, frame: &mut [u8], payload: usize, sum: Sum) {
        self.stamp(payload).write(frame, sum);
    }

    /// The headers of all datagrams with `payload` bytes.
    ///
    /// # Panics
    /// If a datagram is longer than UDP allows.
    #[inline]
    pub fn stamp(&self, payload: usize) -> Stamp {
        let mut bytes = self.bytes;
        let udp = self.len - UDP;
        let most = "a datagram has at most 65 535 bytes";
        let udp_len = u16::try_from(UDP + payload).expect(most).to_be_bytes();
        if udp - self.ip == IPV4 {
            let total = u16::try_from(IPV4 + UDP + payload)
                .expect(most)
                .to_be_bytes();
            bytes[self.ip + 2..self.ip + 4].copy_from_slice(&total);
            let ip_sum = !self.ip_sum.plus(total).folded();
            bytes[self.ip + 10..self.ip + 12].copy_from_slice(&ip_sum.to_be_bytes());
        } else {
            bytes[self.ip + 4..self.ip + 6].copy_from_slice(&udp_len);
        }
        bytes[udp + 4..udp + 6].copy_from_slice(&udp_len);
        // The length is in the pseudo header and in the UDP header.
        let sum = self.pseudo.plus(udp_len).plus(udp_len);
        Stamp {
            bytes,
            len: self.len,
            payload,
            sum: sum.small(),
        }
    }
}

/// The headers of datagrams of one length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    bytes: [u8; MAX_HEADER],
    len: usize,
    payload: usize,
    /// The sum over the pseudo header and the UDP header.
    sum: Sum,
}

impl Stamp {
    /// Bytes of the payload.
    #[inline]
    pub fn payload(&self) -> usize {
        self.payload
    }

    /// Bytes of all headers.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.len
    }

    /// Writes the headers to the start of `frame`, without the UDP checksum. This also overwrites
    /// the bytes after them, up to [`MAX_HEADER`], so write the payload later.
    ///
    /// # Panics
    /// If `frame` is shorter than [`MAX_HEADER`].
    #[inline]
    pub fn begin(&self, frame: &mut [u8]) {
        let room = frame.first_chunk_mut::<MAX_HEADER>();
        *room.expect("the frame has room for headers") = self.bytes;
    }

    /// Writes all headers to the start of `frame`; the payload after them has the sum `sum`.
    ///
    /// # Panics
    /// If `frame` is shorter than [`Self::bytes`].
    #[inline]
    pub fn write(&self, frame: &mut [u8], sum: Sum) {
        match frame.first_chunk_mut::<PLAIN>() {
            // Most headers have this length, which tells the compiler the number of moves.
            Some(head) if self.len == PLAIN => head.copy_from_slice(&self.bytes[..PLAIN]),
            _ => frame[..self.len].copy_from_slice(&self.bytes[..self.len]),
        }
        self.finish(frame, sum);
    }

    /// Writes the UDP checksum into a frame that has the headers; `sum` is the payload's sum.
    ///
    /// # Panics
    /// If `frame` is shorter than [`Self::bytes`].
    #[inline]
    pub fn finish(&self, frame: &mut [u8], sum: Sum) {
        let mut whole = self.sum;
        whole.append(sum);
        let at = self.len - 2;
        frame[at..self.len].copy_from_slice(&checksum_of(whole));
    }

    /// Writes a whole frame: the headers, and then a block that begins with the payload. The block
    /// has zeros after the payload, which change no sum. They are written too, but the caller does
    /// not send them.
    ///
    /// # Panics
    /// If `frame` is shorter than the headers and the block, or than [`MAX_HEADER`].
    #[inline]
    pub fn fill<const N: usize>(&self, frame: &mut [u8], block: &[u8; N]) {
        // Most headers have this length, which tells the compiler the place of each byte.
        if self.len == PLAIN {
            return self.fill_plain(frame, block);
        }
        self.begin(frame);
        let (head, rest) = frame.split_at_mut(self.len);
        *rest
            .first_chunk_mut()
            .expect("the frame has room for the block") = *block;
        if let Some(place) = head.last_chunk_mut() {
            *place = checksum_of(self.sum.with(block));
        }
    }

    /// Writes a whole frame: the headers, and then the payload, which is a block of whole words and
    /// long data. The data is read once.
    ///
    /// # Panics
    /// If `frame` is shorter than [`MAX_HEADER`], or not as long as the headers and the payload.
    #[inline]
    pub fn fill_long<const N: usize>(&self, frame: &mut [u8], block: &[u8; N], data: &[u8]) {
        self.begin(frame);
        let (head, rest) = frame.split_at_mut(self.len);
        let (first, rest) = rest.split_first_chunk_mut().expect("there is room");
        *first = *block;
        let mut sum = self.sum.with(block);
        sum.copy(data, rest);
        if let Some(place) = head.last_chunk_mut() {
            *place = checksum_of(sum);
        }
    }

    #[inline]
    fn fill_plain<const N: usize>(&self, frame: &mut [u8], block: &[u8; N]) {
        let (head, rest) = frame.split_first_chunk_mut::<PLAIN>().expect(ROOM);
        *rest.first_chunk_mut().expect(ROOM) = *block;
        let (bytes, _) = self.bytes.split_at(PLAIN);
        head.copy_from_slice(bytes);
        let [.., high, low] = head;
        [*high, *low] = checksum_of(self.sum.with(block));
    }
}

/// The checksum of a datagram, in network byte order; `sum` covers its other bytes.
#[inline]
fn checksum_of(sum: Sum) -> [u8; 2] {
    // The remainder is the sum as 16 bits, except that 0xFFFF becomes 0. Therefore, its complement
    // is never 0, which would mean that there is no checksum (RFC 768).
    (!sum.remainder()).to_ne_bytes()
}

/// Headers under construction.
struct Writer {
    bytes: [u8; MAX_HEADER],
    len: usize,
}

impl Default for Writer {
    fn default() -> Self {
        Self {
            bytes: [0; MAX_HEADER],
            len: 0,
        }
    }
}

impl Writer {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}
