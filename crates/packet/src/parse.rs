//! Reads a received frame. A stranger may have written any of its bytes.
//!
//! Invariant: a frame that [`parse`] accepts was sent to this endpoint's addresses on every layer,
//! from an address that another host can have, and its payload lies within the frame.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::sum::Sum;
use super::{ETHERNET, Home, IPV4, IPV6, PROTOCOL_UDP, TAG, TYPE_IPV4, TYPE_IPV6, TYPE_TAG, UDP};

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

/// Why a frame is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Refused {
    /// It is shorter than its headers or lengths require.
    Truncated,
    /// It holds neither IPv4 nor IPv6 with UDP.
    Type,
    /// It was sent to another Ethernet address, or to a group, or from the address of a group.
    Mac,
    /// It is of another VLAN.
    Vlan,
    /// The IP header has another version, options, or a wrong sum.
    Ip,
    /// It is a fragment of a packet.
    Fragment,
    /// It was sent to another IP address or port.
    Destination,
    /// No other host can have its source address: it is ours, loopback, or not unicast.
    Source,
    /// The length of UDP is wrong, or there is no payload.
    Udp,
    /// The checksum of UDP is wrong.
    Sum,
    /// It has no checksum, which IPv6 demands.
    NoSum,
}

/// How a datagram's checksum was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Written {
    /// Whole, and it is right.
    Whole,
    /// Only over the pseudo header: the sender's kernel left the rest to a device that does not
    /// exist between neighbours in one kernel.
    Partial,
    /// Not at all, as IPv4 allows.
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

/// The parts of IP that UDP needs.
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

/// Reads a frame with IPv4 and without a tag, with fewer instructions. `None`: it is another one,
/// or something is wrong with it.
#[inline]
fn plain(frame: &[u8], home: &Home) -> Option<Datagram> {
    const IP: usize = ETHERNET;
    const START: usize = IP + IPV4;
    let SocketAddr::V4(own) = home.address else {
        return None;
    };
    let head = frame.first_chunk::<{ START + UDP }>()?;
    let number = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let address = |at: usize| Ipv4Addr::from([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let is_for_us = head[..6] == home.mac && head[6] & 1 == 0 && home.vlan == 0;
    // The type of the frame and the version and length of the header; no fragment; UDP.
    let is_plain = number(12) == TYPE_IPV4
        && head[IP] == 0x45
        && number(IP + 6) & 0x3FFF == 0
        && head[IP + 9] == PROTOCOL_UDP;
    let (from, to) = (address(IP + 12), address(IP + 16));
    let may_come = may_be_from(from.into()) && from != *own.ip() && to == *own.ip();
    let mut sum = Sum::default();
    sum.add(&head[IP..START]);
    if !(is_for_us && is_plain && may_come && sum.folded() == 0xFFFF) {
        return None;
    }
    let (total, len) = (number(IP + 2), number(START + 4));
    let datagram = frame.get(START..IP + usize::from(total))?;
    let datagram = datagram.get(..usize::from(len))?;
    let ports = [number(START), number(START + 2)];
    if usize::from(len) <= UDP || ports[0] == 0 || ports[1] != own.port() {
        return None;
    }
    // Both addresses, and then the rest of the pseudo header.
    let mut sum = Sum::default();
    sum.add(&head[IP + 12..START]);
    sum.add(&[0, PROTOCOL_UDP]);
    sum.add(&len.to_be_bytes());
    sum.add(datagram);
    let written = match (sum.folded(), number(START + 6)) {
        (_, 0) => Written::Absent,
        (0xFFFF, _) => Written::Whole,
        _ => return None,
    };
    Some(Datagram {
        start: START + UDP,
        len: datagram.len() - UDP,
        // Both bits of ECN (RFC 3168).
        congestion: head[IP + 1] & 0b11 == 0b11,
        sum: written,
        from: SocketAddr::new(from.into(), ports[0]),
    })
}

/// Checks that the short way to read a frame accepts no other frames than the long one, reads them
/// in the same way, and accepts all of the frames for which it was made.
///
/// # Panics
/// If that is not so.
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
}

/// Reads any frame.
#[cold]
fn parse_any(frame: &[u8], home: &Home) -> Result<Datagram, Refused> {
    udp(frame, &ip(frame, home)?, home)
}

/// The port to which a frame with UDP was sent, if that is at the address of `home`, whatever the
/// port of `home`. The rest of UDP is not checked.
///
/// # Errors
/// See [`Refused`].
pub fn port_of(frame: &[u8], home: &Home) -> Result<u16, Refused> {
    number(frame, ip(frame, home)?.start + 2)
}

/// Reads a frame up to IP.
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

/// The type of an Ethernet frame's contents, and the place where they begin.
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
    // The upper bits are a priority; with number 0 the tag says nothing else.
    if number(frame, 14)? & 0x0FFF != home.vlan {
        return Err(Refused::Vlan);
    }
    Ok((number(frame, 16)?, ETHERNET + TAG))
}

fn ipv4(frame: &[u8], at: usize) -> Result<Ip, Refused> {
    let header: [u8; IPV4] = field(frame, at)?;
    // Version 4, and a header of five words: without options.
    if header[0] != 0x45 {
        return Err(Refused::Ip);
    }
    let mut sum = Sum::default();
    sum.add(&header);
    if sum.folded() != 0xFFFF {
        return Err(Refused::Ip);
    }
    // "More fragments", or the place of a later one.
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

/// How the checksum of a datagram is written.
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

/// The sum over the parts of IP that a checksum of this protocol covers, whose packet has `len`
/// bytes (RFC 768; RFC 8200, 8.1).
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
