//! Control messages of a datagram: the segment size when sending; segment size and ECN bits when
//! receiving.
//!
//! Owns the layout of `cmsghdr` in both directions (`cmsg(3)`). Although the kernel wrote the
//! received messages, the parser checks every length before it uses it. No I/O; called by `tx` and
//! `rx`.

use libc::c_int;

const HEADER: usize = size_of::<libc::cmsghdr>();
/// Control messages start at multiples of this.
const ALIGN: usize = size_of::<usize>();
/// Both ECN bits: "congestion experienced" (RFC 3168).
const ECN_CE: u8 = 0b11;

/// Room for all control messages of one datagram: segment size, `IP_TOS`, `IPV6_TCLASS`.
pub(super) const CONTROL_BYTES: usize = 3 * (HEADER + ALIGN);

/// The `UDP_SEGMENT` control message as `sendmsg` takes it.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub(super) struct SegmentSize {
    len: usize,
    level: c_int,
    kind: c_int,
    size: u16,
    padding: [u8; 6],
}

const _: () = {
    assert!(size_of::<SegmentSize>() == HEADER + ALIGN);
    assert!(std::mem::offset_of!(SegmentSize, size) == HEADER);
    assert!(HEADER == ALIGN + 8, "a length, then two 32-bit numbers");
};

impl SegmentSize {
    /// Asks the kernel to cut the message every `size` bytes.
    pub(super) const fn new(size: u16) -> Self {
        Self {
            len: HEADER + size_of::<u16>(),
            level: libc::SOL_UDP,
            kind: libc::UDP_SEGMENT,
            size,
            padding: [0; 6],
        }
    }
}

/// Room for the kernel to write control messages into.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub(super) struct Control(pub(super) [u8; CONTROL_BYTES]);

/// The contents of the control messages of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Notes {
    /// Bytes of each datagram but the last in the buffer; 0 if the buffer holds one datagram.
    pub(super) segment: usize,
    /// The network marked the datagram "congestion experienced".
    pub(super) congestion: bool,
}

/// Reads the control messages in `bytes`, the part of the room that the kernel filled.
pub(super) fn parse(mut bytes: &[u8]) -> Notes {
    let mut notes = Notes::default();
    while let Some((len, level, kind)) = header(bytes) {
        let Some(data) = bytes.get(HEADER..len) else {
            break;
        };
        match (level, kind) {
            (libc::SOL_UDP, libc::UDP_GRO) => notes.segment = segment_size(data),
            (libc::IPPROTO_IP, libc::IP_TOS) | (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                // The byte of IPv4 and the native-endian number of IPv6 both fit in 8 bits.
                let traffic_class = number(data).unwrap_or(0).to_le_bytes()[0];
                notes.congestion |= traffic_class & ECN_CE == ECN_CE;
            }
            _ => {}
        }
        let next = len.next_multiple_of(ALIGN);
        let Some(rest) = bytes.get(next..) else { break };
        bytes = rest;
    }
    notes
}

/// Length, level and kind of the first control message, or `None` after the last.
fn header(bytes: &[u8]) -> Option<(usize, c_int, c_int)> {
    let len = usize::from_ne_bytes(*bytes.first_chunk()?);
    let level = c_int::from_ne_bytes(*bytes.get(ALIGN..)?.first_chunk()?);
    let kind = c_int::from_ne_bytes(*bytes.get(ALIGN + 4..)?.first_chunk()?);
    (len >= HEADER && len <= bytes.len()).then_some((len, level, kind))
}

fn segment_size(data: &[u8]) -> usize {
    number(data)
        .and_then(|size| usize::try_from(size).ok())
        .unwrap_or(0)
}

/// A number of one, two or four bytes.
fn number(data: &[u8]) -> Option<c_int> {
    match *data {
        [byte] => Some(c_int::from(byte)),
        [a, b] => Some(c_int::from(u16::from_ne_bytes([a, b]))),
        [a, b, c, d, ..] => Some(c_int::from_ne_bytes([a, b, c, d])),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
