//! Properties of any received frame, and of any frame that we write, for the fuzz target and
//! property tests.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use super::neighbours::{self, Message};
use super::{Header, Home, MAX_HEADER, Stamp, Sum, Written, parse, port_of};

/// The endpoints used by the checks: one for each family, with and without a VLAN tag.
pub fn homes() -> [Home; 4] {
    let home = |address: &str, vlan| Home {
        address: address.parse().expect("the address is valid"),
        vlan,
        mac: [2, 0, 0, 0, 0, 1],
    };
    [
        home("10.79.0.1:7000", 0),
        home("10.79.0.1:7000", 5),
        home("[fd79::1]:7000", 0),
        home("[fd79::1]:7000", 5),
    ]
}

/// The address of a peer of one of these endpoints.
pub fn peer_of(home: &Home) -> SocketAddr {
    let address = match home.address {
        SocketAddr::V4(_) => "10.79.0.2:7001",
        SocketAddr::V6(_) => "[fd79::2]:7001",
    };
    address.parse().expect("the address is valid")
}

/// Reads any bytes as a frame to each home. The payload of an accepted frame lies within the frame,
/// and a frame that we write with this payload is read in the same way. Checks questions and
/// answers of neighbours, too.
///
/// # Panics
/// If a property does not hold.
pub fn frame(bytes: &[u8]) {
    for home in homes() {
        neighbour(bytes, &home);
        parse::both_ways(bytes, &home);
        let Ok(found) = parse(bytes, &home) else {
            continue;
        };
        assert_eq!(port_of(bytes, &home), Ok(home.address.port()));
        let payload = &bytes[found.start..][..found.len];
        assert!(!payload.is_empty());
        assert_ne!(found.from.ip(), home.address.ip());
        // A frame that we write with the same payload and sender is read in the same way.
        let sender = Home {
            address: found.from,
            vlan: home.vlan,
            mac: [2, 0, 0, 0, 0, 2],
        };
        let again = written(&sender, &home, payload);
        let understood = parse(&again, &home).expect("our own frame is valid");
        assert_eq!(&again[understood.start..][..understood.len], payload);
        assert_eq!(understood.from, found.from);
        assert_eq!(understood.sum, Written::Whole);
        assert!(!understood.congestion);
    }
}

/// Reads any bytes as a message of a neighbour: a question asks for `home`, and the asker
/// understands our answer; an answer names another IP address than ours, and the Ethernet address
/// of a single interface.
fn neighbour(bytes: &[u8], home: &Home) {
    let mut room = [0; neighbours::MAX_MESSAGE];
    match neighbours::read(bytes, home) {
        None => {}
        Some(Message::Answer { of, mac } | Message::Announcement { of, mac }) => {
            assert_ne!(of, home.address.ip());
            assert_eq!(mac[0] & 1, 0);
        }
        Some(Message::Question { from, mac }) => {
            assert!(parse(bytes, home).is_err());
            let len = neighbours::write_answer(home, from, mac, &mut room);
            if from == IpAddr::from(Ipv6Addr::UNSPECIFIED) {
                is_for_all_nodes(&room[..len]);
            }
            let asker = Home {
                address: SocketAddr::new(from, 1),
                mac,
                ..*home
            };
            let (of, mac) = (home.address.ip(), home.mac);
            let understood = neighbours::read(&room[..len], &asker);
            assert_eq!(understood, Some(Message::Answer { of, mac }));
        }
    }
}

/// Checks that an answer goes to all nodes and is not marked as solicited, as required for a sender
/// without an address (RFC 4861, 7.2.4).
fn is_for_all_nodes(answer: &[u8]) {
    const SOLICITED: u8 = 0x40;
    let discovery = answer.len() - 32;
    let to = &answer[discovery - 16..discovery];
    assert_eq!(answer[..6], [0x33, 0x33, 0, 0, 0, 1]);
    assert_eq!(to, Ipv6Addr::new(0xFF02, 0, 0, 0, 0, 0, 0, 1).octets());
    assert_eq!(answer[discovery + 4] & SOLICITED, 0);
}

/// A frame that `sender` would write.
pub fn written(sender: &Home, to: &Home, payload: &[u8]) -> Vec<u8> {
    let header = Header::new(sender, to.address, to.mac);
    let mut frame = vec![0xEE; header.bytes()];
    frame.extend(payload);
    let mut sum = Sum::default();
    sum.add(payload);
    header.write(&mut frame, payload.len(), sum);
    assert_eq!(stamped(&header, payload), frame);
    frame
}

/// The same frame, written in order from the first byte to the last.
fn stamped(header: &Header, payload: &[u8]) -> Vec<u8> {
    let stamp = header.stamp(payload.len());
    let len = header.bytes() + payload.len();
    let mut frame = vec![0xEE; len.max(MAX_HEADER)];
    stamp.begin(&mut frame);
    let mut sum = Sum::default();
    sum.copy(payload, &mut frame[header.bytes()..len]);
    stamp.finish(&mut frame, sum);
    frame.truncate(len);
    is_filled_alike(&stamp, payload, &frame);
    is_long_alike(&stamp, payload, &frame);
    frame
}

/// Checks that a block with zeros after the payload gives the same frame.
fn is_filled_alike(stamp: &Stamp, payload: &[u8], frame: &[u8]) {
    const BLOCK: usize = 56;
    let mut block = [0; BLOCK];
    let Some(place) = block.get_mut(..payload.len()) else {
        return;
    };
    place.copy_from_slice(payload);
    let mut filled = vec![0xEE; MAX_HEADER + BLOCK];
    stamp.fill(&mut filled, &block);
    assert_eq!(&filled[..frame.len()], frame);
}

/// Checks that a block and data after it become the same frame.
fn is_long_alike(stamp: &Stamp, payload: &[u8], frame: &[u8]) {
    const BLOCK: usize = 24;
    let Some((block, data)) = payload.split_first_chunk::<BLOCK>() else {
        return;
    };
    if frame.len() >= MAX_HEADER {
        let mut filled = vec![0xEE; frame.len()];
        stamp.fill_long(&mut filled, block, data);
        assert_eq!(filled, frame);
    }
}
