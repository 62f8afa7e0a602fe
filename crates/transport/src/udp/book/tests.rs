//! The sizes on which an endpoint that bypasses the kernel agrees with its peers.

use super::*;
use crate::connect::EndpointUid;

/// Bytes of a datagram in an Ethernet frame with IPv4, and in one of 9000 bytes.
const ETHERNET: u32 = 1472;
const JUMBO: u32 = 8972;

fn peer() -> PeerInfo {
    PeerInfo {
        endpoint: EndpointUid([7; 16]),
        same_host: false,
        same_process: false,
        proves: true,
        local: None,
        remote: Some([10, 0, 0, 2].into()),
    }
}

fn book(buffer: u32, options: &Options) -> Book {
    Book::new("10.0.0.1:7".parse().unwrap(), buffer, options).unwrap()
}

/// The largest datagram, packet and data size of a peer with these terms.
fn sizes(book: &mut Book, buffer: u32, data_size: u32) -> (u32, u32, u32) {
    let terms = Terms {
        data_size,
        buffer,
        addresses: vec!["10.0.0.2:8".parse().unwrap()],
    };
    let (id, _) = book.accept(&peer(), &terms.encode()).unwrap();
    let reach = book.reach(id).unwrap();
    (reach.datagram, reach.packet, book.data_size_of(id))
}

#[test]
fn a_peer_with_large_buffers_may_have_a_link_with_a_short_mtu() {
    let mut book = book(JUMBO, &Options::default());
    let (datagram, _, data_size) = sizes(&mut book, MAX_DATAGRAM_BYTES, 1440);
    assert_eq!((datagram, data_size), (ETHERNET, 1440));
}

#[test]
fn datagrams_are_no_longer_than_a_short_mtu_allows() {
    let mut here = book(972, &Options::default());
    assert_eq!(here.data_size(), 972 - MAX_FRAMING);
    let (datagram, _, data_size) = sizes(&mut here, MAX_DATAGRAM_BYTES, 1440);
    assert_eq!((datagram, data_size), (972, 972 - MAX_FRAMING));
    let mut there = book(ETHERNET, &Options::default());
    let (datagram, packet, data_size) = sizes(&mut there, 972, 900);
    assert_eq!((datagram, packet, data_size), (972, 972, 900));
}

#[test]
fn long_packets_and_datagrams_are_used_if_both_sides_want_them() {
    let options = Options {
        data_size: 8000,
        ..Options::default()
    };
    let (datagram, _, data_size) = sizes(&mut book(JUMBO, &options), JUMBO, 8000);
    assert_eq!((datagram, data_size), (8000 + HEADER_BYTES, 8000));
    let options = Options {
        datagram_bytes: Some(JUMBO),
        ..options
    };
    let (datagram, ..) = sizes(&mut book(JUMBO, &options), JUMBO, 1440);
    assert_eq!(datagram, JUMBO);
}
