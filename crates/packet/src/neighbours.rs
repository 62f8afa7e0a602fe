//! Messages that hosts on a link use to find each other's Ethernet addresses: ARP (RFC 826) for
//! IPv4, neighbour discovery (RFC 4861) for IPv6. This file reads and writes only questions for one
//! address, and their answers.
//!
//! Invariants: a question that [`read`] returns asks for our address; an answer names another
//! address than ours, and the Ethernet address of a single interface. The caller decides whether to
//! believe the answer.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::layout::{ETHERNET, Home, IPV6, Mac, TAG, TYPE_IPV6, TYPE_TAG};
use super::parse::{field, may_be_from, number, pseudo_header};

/// Bytes of the longest message: with a VLAN tag and IPv6.
pub const MAX_MESSAGE: usize = ETHERNET + TAG + IPV6 + DISCOVERY;

/// Bytes of the shortest Ethernet frame, without its checksum.
const SHORTEST: usize = 60;
/// The type of an ARP frame.
const TYPE_ARP: u16 = 0x0806;
/// Bytes of an ARP message for IPv4 over Ethernet. The first six are the kinds and lengths of the
/// addresses.
const ARP: usize = 28;
const ARP_KIND: [u8; 6] = [0, 1, 8, 0, 6, 4];
/// The protocol number of ICMPv6 in an IP header.
const PROTOCOL_ICMP: u8 = 58;
/// Types of ICMPv6 messages: neighbour solicitation and neighbour advertisement.
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
/// Bytes of each of them, with the option that has the sender's Ethernet address.
const DISCOVERY: usize = 24 + 8;
/// The hop limit of messages that no router has forwarded.
const FROM_THE_LINK: u8 = 255;
/// Flags of an answer: it answers only the asker; it replaces an older address.
const SOLICITED: u8 = 0x40;
const REPLACES: u8 = 0x20;
const EVERY_INTERFACE: Mac = [0xFF; 6];

/// A message of a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message {
    /// A neighbour asks for our Ethernet address.
    Question {
        /// The address to which the answer goes.
        from: IpAddr,
        /// Its Ethernet address.
        mac: Mac,
    },
    /// A neighbour announces its Ethernet address by asking for its own address (RFC 5227).
    Announcement {
        /// Its address.
        of: IpAddr,
        /// Its Ethernet address.
        mac: Mac,
    },
    /// A neighbour gives the Ethernet address for an IP address.
    Answer {
        /// The address.
        of: IpAddr,
        /// Its Ethernet address.
        mac: Mac,
    },
}

/// Reads a frame that came to `home`. `None` for any other frame, and for one that is malformed.
pub fn read(frame: &[u8], home: &Home) -> Option<Message> {
    let to: Mac = field(frame, 0).ok()?;
    let from: Mac = field(frame, 6).ok()?;
    if !is_of_one(from) || (to[0] & 1 == 0 && to != home.mac) {
        return None;
    }
    let (kind, at) = match number(frame, 12).ok()? {
        TYPE_TAG if number(frame, 14).ok()? & 0x0FFF == home.vlan => {
            (number(frame, 16).ok()?, ETHERNET + TAG)
        }
        TYPE_TAG => return None,
        kind if home.vlan == 0 => (kind, ETHERNET),
        _ => return None,
    };
    match (kind, home.address.ip()) {
        (TYPE_ARP, IpAddr::V4(ip)) => read_arp(frame.get(at..)?, ip),
        (TYPE_IPV6, IpAddr::V6(ip)) => read_discovery(frame.get(at..)?, ip, from),
        _ => None,
    }
}

/// Writes the question for the Ethernet address of `of`, and returns its length. If `at` is given,
/// the question goes only to that Ethernet address, so that the neighbour confirms it; otherwise it
/// goes to all neighbours that may have the address.
///
/// # Panics
/// If `of` and `home` have different families, or `out` is shorter than [`MAX_MESSAGE`].
pub fn write_question(home: &Home, of: IpAddr, at: Option<Mac>, out: &mut [u8]) -> usize {
    match (home.address.ip(), of) {
        (IpAddr::V4(from), IpAddr::V4(of)) => {
            let to = at.unwrap_or(EVERY_INTERFACE);
            let at = write_ethernet(home, to, TYPE_ARP, out);
            write_arp(out, at, [0, 1], (home.mac, from), ([0; 6], of))
        }
        (IpAddr::V6(from), IpAddr::V6(of)) => {
            let group = group_of(of);
            let [.., a, b, c, d] = group.octets();
            let (to, mac) = match at {
                Some(mac) => (of, mac),
                None => (group, [0x33, 0x33, a, b, c, d]),
            };
            let at = write_ethernet(home, mac, TYPE_IPV6, out);
            write_discovery(out, at, (from, to), [SOLICITATION, 0, 1], of, home.mac)
        }
        _ => panic!("the two addresses are of different families"),
    }
}

/// Writes the answer to a question, and returns its length.
///
/// # Panics
/// Like [`write_question`], for the address `to`.
pub fn write_answer(home: &Home, to: IpAddr, mac: Mac, out: &mut [u8]) -> usize {
    match (home.address.ip(), to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let at = write_ethernet(home, mac, TYPE_ARP, out);
            write_arp(out, at, [0, 2], (home.mac, from), (mac, to))
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            // The answer to an asker without an address goes to all nodes (RFC 4861, 7.2.4).
            let (to, mac, flags) = match to.is_unspecified() {
                true => (ALL_NODES, [0x33, 0x33, 0, 0, 0, 1], REPLACES),
                false => (to, mac, SOLICITED | REPLACES),
            };
            let at = write_ethernet(home, mac, TYPE_IPV6, out);
            let kind = [ADVERTISEMENT, flags, 2];
            write_discovery(out, at, (from, to), kind, from, home.mac)
        }
        _ => panic!("the two addresses are of different families"),
    }
}

fn read_arp(arp: &[u8], own: Ipv4Addr) -> Option<Message> {
    let arp: [u8; ARP] = field(arp, 0).ok()?;
    if arp[..6] != ARP_KIND {
        return None;
    }
    let mac: Mac = field(&arp, 8).ok()?;
    let from = Ipv4Addr::from(field::<4>(&arp, 14).ok()?);
    let of = Ipv4Addr::from(field::<4>(&arp, 24).ok()?);
    if !is_of_one(mac) || from == own {
        return None;
    }
    match [arp[6], arp[7]] {
        // A sender without an address asks whether ours is free (RFC 5227).
        [0, 1] if of == own && (from.is_unspecified() || may_be_from(from.into())) => {
            let from = from.into();
            Some(Message::Question { from, mac })
        }
        [0, 1] if of == from && may_be_from(from.into()) => Some(Message::Announcement {
            of: from.into(),
            mac,
        }),
        [0, 2] if may_be_from(from.into()) => Some(Message::Answer {
            of: from.into(),
            mac,
        }),
        _ => None,
    }
}

fn read_discovery(packet: &[u8], own: Ipv6Addr, sender: Mac) -> Option<Message> {
    let header: [u8; IPV6] = field(packet, 0).ok()?;
    if header[0] >> 4 != 6 || header[6] != PROTOCOL_ICMP || header[7] != FROM_THE_LINK {
        return None;
    }
    let from = Ipv6Addr::from(field::<16>(&header, 8).ok()?);
    let to = Ipv6Addr::from(field::<16>(&header, 24).ok()?);
    let len = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let message = packet[IPV6..].get(..len)?;
    let mut sum = pseudo_header(from.into(), to.into(), PROTOCOL_ICMP, len);
    sum.add(message);
    let is_for_us = to == own || to == group_of(own) || to == ALL_NODES;
    if sum.folded() != 0xFFFF || !is_for_us || from == own {
        return None;
    }
    let of = Ipv6Addr::from(field::<16>(message, 8).ok()?);
    let options = message.get(24..)?;
    match (message[0], message[1]) {
        (SOLICITATION, 0) if of == own => {
            // A sender without an address asks whether ours is free (RFC 4862).
            if !from.is_unspecified() && !may_be_from(from.into()) {
                return None;
            }
            let mac = option_of(options, 1)?.unwrap_or(sender);
            let from = from.into();
            is_of_one(mac).then_some(Message::Question { from, mac })
        }
        (ADVERTISEMENT, 0) if of != own && may_be_from(of.into()) => {
            let mac = option_of(options, 2)?.unwrap_or(sender);
            let of = of.into();
            is_of_one(mac).then_some(Message::Answer { of, mac })
        }
        _ => None,
    }
}

/// All nodes on a link.
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xFF02, 0, 0, 0, 0, 0, 0, 1);

/// The multicast group of an address: a question to this group reaches few hosts.
fn group_of(ip: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = ip.octets();
    Ipv6Addr::new(
        0xFF02,
        0,
        0,
        0,
        0,
        1,
        0xFF00 | u16::from(a),
        u16::from_be_bytes([b, c]),
    )
}

/// The Ethernet address in the first option of this kind; `Some(None)` if there is no such option,
/// `None` if the options are malformed.
#[expect(clippy::option_option, reason = "malformed options differ from none")]
fn option_of(mut options: &[u8], kind: u8) -> Option<Option<Mac>> {
    while let [this, words, ..] = *options {
        let len = 8 * usize::from(words);
        if len == 0 || len > options.len() {
            return None;
        }
        if this == kind {
            return field(options, 2).ok().map(Some);
        }
        options = &options[len..];
    }
    Some(None)
}

/// Whether an Ethernet address belongs to a single interface.
fn is_of_one(mac: Mac) -> bool {
    mac[0] & 1 == 0 && mac != [0; 6]
}

fn write_ethernet(home: &Home, to: Mac, kind: u16, out: &mut [u8]) -> usize {
    let at = put(out, 0, &to);
    let mut at = put(out, at, &home.mac);
    if home.vlan != 0 {
        at = put(out, at, &TYPE_TAG.to_be_bytes());
        at = put(out, at, &home.vlan.to_be_bytes());
    }
    put(out, at, &kind.to_be_bytes())
}

fn write_arp(
    out: &mut [u8],
    at: usize,
    kind: [u8; 2],
    from: (Mac, Ipv4Addr),
    to: (Mac, Ipv4Addr),
) -> usize {
    let mut at = put(out, at, &ARP_KIND);
    at = put(out, at, &kind);
    for (mac, ip) in [from, to] {
        at = put(out, at, &mac);
        at = put(out, at, &ip.octets());
    }
    let len = at.max(SHORTEST);
    out[at..len].fill(0);
    len
}

/// Writes a message of neighbour discovery, and returns its end. The array has the type of the
/// ICMPv6 message, its flags, and the type of the option.
fn write_discovery(
    out: &mut [u8],
    start: usize,
    (from, to): (Ipv6Addr, Ipv6Addr),
    [kind, flags, option]: [u8; 3],
    of: Ipv6Addr,
    mac: Mac,
) -> usize {
    let len = u16::try_from(DISCOVERY).expect("32 bytes").to_be_bytes();
    let mut at = put(out, start, &[0x60, 0, 0, 0, len[0], len[1]]);
    at = put(out, at, &[PROTOCOL_ICMP, FROM_THE_LINK]);
    at = put(out, at, &from.octets());
    let message = put(out, at, &to.octets());
    at = put(out, message, &[kind, 0, 0, 0, flags, 0, 0, 0]);
    at = put(out, at, &of.octets());
    at = put(out, at, &[option, 1]);
    at = put(out, at, &mac);
    let mut sum = pseudo_header(from.into(), to.into(), PROTOCOL_ICMP, DISCOVERY);
    sum.add(&out[message..at]);
    put(out, message + 2, &(!sum.folded()).to_be_bytes());
    at
}

fn put(out: &mut [u8], at: usize, bytes: &[u8]) -> usize {
    out[at..at + bytes.len()].copy_from_slice(bytes);
    at + bytes.len()
}

#[cfg(test)]
mod tests;
