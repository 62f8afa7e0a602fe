//! Reads a received frame. A stranger may have written any of its bytes.
//!
//! Invariant: a frame that [`parse`] accepts was sent to this endpoint's addresses on every layer,
//! from an address that another host can have, and its payload lies within the frame.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::layout::{
    ETHERNET, Home, IPV4, IPV6, PROTOCOL_UDP, TAG, TYPE_IPV4, TYPE_IPV6, TYPE_TAG, UDP,
};
use super::sum::Sum;

/// Names of the counters of refused frames, in the order of [`Refused`].
pub const REFUSALS: [&str; 11] = [
    "rx_truncated",
    "rx_foreign_type",
    "rx_foreign_mac",
    "rx_foreign_vlan",
    "rx_malformed_ip",
    "rx_fragment",
    "rx_foreign_address",
    "rx_wrong_source",
    "rx_malformed_udp",
    "rx_wrong_sum",
    "rx_no_sum",
];

/// Why a frame was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Refused {
    /// It is shorter than its headers or lengths require.
    Truncated,
    /// It holds neither IPv4 nor IPv6 with UDP.
    Type,
    /// It was sent to another Ethernet address or to a group, or it came from a group's address.
    Mac,
    /// It belongs to another VLAN.
    Vlan,
    /// The IP header has another version, options, or a wrong sum.
    Ip,
    /// It is a fragment of a packet.
    Fragment,
    /// It was sent to another IP address or port.
    Destination,
    /// No other host can have its source address, which is ours, loopback, or not unicast.
    Source,
    /// The length in the UDP header is wrong, or there is no payload.
    Udp,
    /// The UDP checksum is wrong.
    Sum,
    /// It has no UDP checksum, which IPv6 requires.
    NoSum,
}

/// How the sender wrote the checksum of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Written {
    /// Complete and correct.
    Whole,
    /// Only over the pseudo header: the sender's kernel left the rest to a device, but two
    /// neighbours in one kernel have no device between them.
    Partial,
    /// Not written, as IPv4 allows.
    Absent,
}

/// The payload of an accepted frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// Where it begins in the frame.
    pub start: usize,
    /// Its bytes, at least 1.
    pub len: usize,
    /// The network marked it "congestion experienced" (ECN).
    pub congestion: bool,
    /// Its checksum.
    pub sum: Written,
    /// Its sender.
    pub from: SocketAddr,
}

/// The parts of the IP header that UDP needs.
struct Ip {
    from: IpAddr,
    to: IpAddr,
    /// Where its payload begins and ends in the frame.
    start: usize,
    end: usize,
    traffic_class: u8,
}

/// Reads the frame that came to `home`.
///
/// # Errors
/// See [`Refused`].
///
/// ```
/// use dunlin_packet::{Header, Home, Refused, Sum, parse};
/// let one = Home { address: "10.0.0.1:7".parse().unwrap(), vlan: 0, mac: [2; 6] };
/// let two = Home { address: "10.0.0.2:8".parse().unwrap(), vlan: 0, mac: [4; 6] };
/// let header = Header::new(&one, two.address, two.mac);
/// let mut frame = vec![0; header.bytes()];
/// frame.extend(b"hello");
/// let mut sum = Sum::default();
/// sum.add(b"hello");
/// header.write(&mut frame, 5, sum);
/// let found = parse(&frame, &two).unwrap();
/// assert_eq!(&frame[found.start..][..found.len], b"hello");
/// assert_eq!(parse(&frame, &one), Err(Refused::Mac));
/// ```
#[inline]
pub fn parse(frame: &[u8], home: &Home) -> Result<Datagram, Refused> {
    match plain(frame, home) {
        Some(datagram) => Ok(datagram),
        None => parse_any(frame, home),
    }
}

/// Reads a frame with IPv4 and without a VLAN tag, with fewer instructions: several fields are
/// compared at a time. `None` for any other frame, and for one with an error.
#[inline]
fn plain(frame: &[u8], home: &Home) -> Option<Datagram> {
    const START: usize = ETHERNET + IPV4;
    // The type of the frame, then version and length of the header; DSCP and ECN may have any
    // value.
    const KIND: [u32; 2] = [0xFFFF_FF00, 0x0800_4500];
    // The datagram must be no fragment and carry UDP. "Don't fragment" and the number of hops may
    // have any value.
    const WHOLE: [u32; 2] = [0x3FFF_00FF, PROTOCOL_UDP as u32];
    let SocketAddr::V4(own) = home.address else {
        return None;
    };
    let head = frame.first_chunk::<{ START + UDP }>()?;
    let (_, ip) = head.split_first_chunk::<ETHERNET>()?;
    let ip = ip.first_chunk::<IPV4>()?;
    let half = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let is = |at: usize, [mask, value]: [u32; 2]| word(at) & mask == value;
    let is_for_us = head[..6] == home.mac && head[6] & 1 == 0 && home.vlan == 0;
    let (from, to) = (word(26), word(30));
    let may_come = may_be_from_ipv4(from) && from != own.ip().to_bits();
    let is_plain = is(12, KIND) && is(20, WHOLE) && to == own.ip().to_bits();
    if !(is_for_us && is_plain && may_come) || Sum::of(ip).folded() != 0xFFFF {
        return None;
    }
    let (total, len) = (usize::from(half(16)), half(38));
    let datagram = frame.get(START..)?.get(..usize::from(len))?;
    if half(36) != own.port() || half(34) == 0 || datagram.len() <= UDP {
        return None;
    }
    if IPV4 + datagram.len() > total || ETHERNET + total > frame.len() {
        return None;
    }
    // Both addresses, and then the rest of the pseudo header.
    let [high, low] = len.to_be_bytes();
    let mut sum = Sum::of(ip[12..].first_chunk::<8>()?);
    sum.append(Sum::of(&[0, PROTOCOL_UDP, high, low]));
    sum.add(datagram);
    let written = match (sum.folded(), half(40)) {
        (_, 0) => Written::Absent,
        (0xFFFF, _) => Written::Whole,
        _ => return None,
    };
    Some(Datagram {
        start: START + UDP,
        len: datagram.len() - UDP,
        // Both bits of ECN (RFC 3168).
        congestion: head[15] & 0b11 == 0b11,
        sum: written,
        from: SocketAddr::new(Ipv4Addr::from_bits(from).into(), half(34)),
    })
}

/// Like [`may_be_from`], for the bits of an IPv4 address.
#[inline]
fn may_be_from_ipv4(bits: u32) -> bool {
    let is_multicast = bits >> 28 == 0xE;
    let is_loopback = bits >> 24 == 127;
    !(is_multicast || is_loopback || bits == 0 || bits == u32::MAX)
}

/// Checks that the fast path accepts only frames that the slow path accepts, reads them in the same
/// way, and accepts all frames for which it was made.
///
/// # Panics
/// If the check fails.
#[cfg(any(test, fuzzing, feature = "check"))]
pub(super) fn both_ways(frame: &[u8], home: &Home) {
    let (short, long) = (plain(frame, home), parse_any(frame, home).ok());
    if short.is_some() {
        assert_eq!(short, long);
    }
    let is_meant = home.address.is_ipv4() && frame.get(12..14) == Some(&TYPE_IPV4.to_be_bytes());
    if is_meant && home.vlan == 0 && long.is_some_and(|it| it.sum != Written::Partial) {
        assert_eq!(short, long);
    }
    // A frame that is read again, also after one that differs in a byte, is read in the same way.
    let mut seen = super::Seen::default();
    for at in (0..frame.len()).step_by(7) {
        assert_eq!(seen.parse(frame, home), parse(frame, home));
        let again = seen.again(frame);
        if let Some(found) = again {
            let long = parse(frame, home).expect("the frame is valid");
            let payload = &frame[long.start..][..long.len];
            assert_eq!(found, (payload, long.congestion));
        } else {
            let is_whole = long.is_some_and(|it| it.sum == Written::Whole);
            assert!(
                !(is_meant && home.vlan == 0 && is_whole),
                "a frame like the last one is recognized"
            );
        }
        let mut other = frame.to_vec();
        other[at] ^= 1;
        assert_eq!(seen.parse(&other, home), parse(&other, home));
        other[at] ^= 1;
        assert_eq!(seen.parse(&other[..at], home), parse(&other[..at], home));
    }
}

/// Reads any frame.
#[cold]
fn parse_any(frame: &[u8], home: &Home) -> Result<Datagram, Refused> {
    udp(frame, &ip(frame, home)?, home)
}

/// The UDP port to which a frame was sent, if it was sent to the IP address of `home`; the port of
/// `home` does not matter. The rest of UDP is not checked.
///
/// # Errors
/// See [`Refused`].
pub fn port_of(frame: &[u8], home: &Home) -> Result<u16, Refused> {
    number(frame, ip(frame, home)?.start + 2)
}

/// Reads a frame up to the IP header.
fn ip(frame: &[u8], home: &Home) -> Result<Ip, Refused> {
    let (kind, start) = ethernet(frame, home)?;
    let ip = match kind {
        TYPE_IPV4 => ipv4(frame, start)?,
        TYPE_IPV6 => ipv6(frame, start)?,
        _ => return Err(Refused::Type),
    };
    if ip.to != home.address.ip() {
        return Err(Refused::Destination);
    }
    if !may_be_from(ip.from) || ip.from == home.address.ip() {
        return Err(Refused::Source);
    }
    Ok(ip)
}

/// The type of an Ethernet frame's contents, and the offset where they begin.
fn ethernet(frame: &[u8], home: &Home) -> Result<(u16, usize), Refused> {
    let to: [u8; 6] = field(frame, 0)?;
    let from: [u8; 6] = field(frame, 6)?;
    let is_group = |mac: [u8; 6]| mac[0] & 1 != 0;
    if to != home.mac || is_group(from) {
        return Err(Refused::Mac);
    }
    let kind = number(frame, 12)?;
    if kind != TYPE_TAG {
        return match home.vlan {
            0 => Ok((kind, ETHERNET)),
            _ => Err(Refused::Vlan),
        };
    }
    // The upper bits are a priority; with VLAN number 0, the tag means nothing else.
    if number(frame, 14)? & 0x0FFF != home.vlan {
        return Err(Refused::Vlan);
    }
    Ok((number(frame, 16)?, ETHERNET + TAG))
}

fn ipv4(frame: &[u8], at: usize) -> Result<Ip, Refused> {
    let header: [u8; IPV4] = field(frame, at)?;
    // Version 4, and a header of five words, which has no options.
    if header[0] != 0x45 {
        return Err(Refused::Ip);
    }
    let mut sum = Sum::default();
    sum.add(&header);
    if sum.folded() != 0xFFFF {
        return Err(Refused::Ip);
    }
    // "More fragments", or the offset of a later fragment.
    if u16::from_be_bytes([header[6], header[7]]) & 0x3FFF != 0 {
        return Err(Refused::Fragment);
    }
    if header[9] != PROTOCOL_UDP {
        return Err(Refused::Type);
    }
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let end = at + total;
    if total < IPV4 || end > frame.len() {
        return Err(Refused::Truncated);
    }
    Ok(Ip {
        from: Ipv4Addr::from(field::<4>(frame, at + 12)?).into(),
        to: Ipv4Addr::from(field::<4>(frame, at + 16)?).into(),
        start: at + IPV4,
        end,
        traffic_class: header[1],
    })
}

fn ipv6(frame: &[u8], at: usize) -> Result<Ip, Refused> {
    let header: [u8; IPV6] = field(frame, at)?;
    if header[0] >> 4 != 6 {
        return Err(Refused::Ip);
    }
    match header[6] {
        PROTOCOL_UDP => {}
        44 => return Err(Refused::Fragment),
        _ => return Err(Refused::Type),
    }
    let start = at + IPV6;
    let end = start + usize::from(u16::from_be_bytes([header[4], header[5]]));
    if end > frame.len() {
        return Err(Refused::Truncated);
    }
    Ok(Ip {
        from: Ipv6Addr::from(field::<16>(frame, at + 8)?).into(),
        to: Ipv6Addr::from(field::<16>(frame, at + 24)?).into(),
        start,
        end,
        traffic_class: header[0] << 4 | header[1] >> 4,
    })
}

fn udp(frame: &[u8], ip: &Ip, home: &Home) -> Result<Datagram, Refused> {
    let whole = frame.get(ip.start..ip.end).ok_or(Refused::Truncated)?;
    let [from, to] = [number(whole, 0)?, number(whole, 2)?];
    if to != home.address.port() {
        return Err(Refused::Destination);
    }
    let len = usize::from(number(whole, 4)?);
    let datagram = whole.get(..len).ok_or(Refused::Truncated)?;
    if len <= UDP || from == 0 {
        return Err(Refused::Udp);
    }
    Ok(Datagram {
        start: ip.start + UDP,
        len: len - UDP,
        // Both bits of ECN (RFC 3168).
        congestion: ip.traffic_class & 0b11 == 0b11,
        sum: written(datagram, ip)?,
        from: SocketAddr::new(ip.from, from),
    })
}

/// How the sender wrote this datagram's checksum.
fn written(datagram: &[u8], ip: &Ip) -> Result<Written, Refused> {
    let found = number(datagram, 6)?;
    if found == 0 {
        return match ip.to {
            IpAddr::V4(_) => Ok(Written::Absent),
            IpAddr::V6(_) => Err(Refused::NoSum),
        };
    }
    let mut sum = pseudo_header(ip.from, ip.to, PROTOCOL_UDP, datagram.len());
    let partial = sum.folded();
    sum.add(datagram);
    match sum.folded() {
        0xFFFF => Ok(Written::Whole),
        _ if found == partial => Ok(Written::Partial),
        _ => Err(Refused::Sum),
    }
}

/// The sum over the parts of IP that a checksum of this protocol covers; the packet has `len` bytes
/// after the IP header (RFC 768; RFC 8200, 8.1).
pub(super) fn pseudo_header(from: IpAddr, to: IpAddr, protocol: u8, len: usize) -> Sum {
    let mut sum = Sum::default();
    for ip in [from, to] {
        match ip {
            IpAddr::V4(v4) => sum.add(&v4.octets()),
            IpAddr::V6(v6) => sum.add(&v6.octets()),
        }
    }
    sum.add(&[0, protocol]);
    let len = u16::try_from(len).expect("a datagram has at most 65 535 bytes");
    sum.add(&len.to_be_bytes());
    sum
}

/// Whether another host can send from this address.
#[inline]
pub(super) fn may_be_from(ip: IpAddr) -> bool {
    let is_broadcast = ip == IpAddr::V4(Ipv4Addr::BROADCAST);
    !(is_broadcast || ip.is_unspecified() || ip.is_loopback() || ip.is_multicast())
}

pub(super) fn number(bytes: &[u8], at: usize) -> Result<u16, Refused> {
    field(bytes, at).map(u16::from_be_bytes)
}

pub(super) fn field<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], Refused> {
    let rest = bytes.get(at..).ok_or(Refused::Truncated)?;
    rest.first_chunk().copied().ok_or(Refused::Truncated)
}

#[cfg(test)]
mod tests;
