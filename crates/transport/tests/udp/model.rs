//! Random bursts against a model: each endpoint gets the packets that were sent to it, each one
//! once, byte for byte, and in order.

use std::net::Ipv6Addr;

use dunlin_core::transport::MAX_INLINE;
use dunlin_testkit::random::Random;
use dunlin_transport::udp::{Ecn, Options};

use crate::endpoint::{Endpoint, Packet, SHORTEST, connect, plain};

const BURSTS: u32 = 2000;

/// A length as it comes in practice, or one that sits at a limit.
fn draw_len(random: &mut Random) -> usize {
    match random.below(6) {
        0 | 1 => 56,
        2 => 1464,
        3 => SHORTEST + random.below(500),
        4 => 505 + random.below(16),
        _ => SHORTEST + random.below(1472 - SHORTEST),
    }
}

fn run(options: &Options, seed: u64) {
    let mut random = Random::new(seed);
    let mut from = Endpoint::new(options);
    let mut to: Vec<Endpoint> = (0..3).map(|_| Endpoint::new(options)).collect();
    let peers: Vec<_> = to.iter_mut().map(|to| connect(&mut from, to).0).collect();
    let mut number = 0;
    for burst in 0..BURSTS {
        let only = if random.below(3) > 0 {
            Some(random.below(3))
        } else {
            None
        };
        let mut expected = [const { Vec::new() }; 3];
        let mut packets = Vec::new();
        for _ in 0..1 + random.below(if burst % 10 == 0 { 200 } else { 40 }) {
            let index = only.unwrap_or_else(|| random.below(3));
            let len = draw_len(&mut random);
            let inline = (SHORTEST + random.below(MAX_INLINE + 1 - SHORTEST)).min(len);
            packets.push(Packet {
                peer: peers[index],
                number,
                len,
                inline,
            });
            expected[index].push((number, len));
            number += 1;
        }
        from.send(&packets);
        for (to, expected) in to.iter_mut().zip(expected) {
            let got = to.take_packets(expected.len());
            assert_eq!(got, expected, "burst {burst} of seed {seed}");
        }
    }
    for to in &mut to {
        to.assert_silent();
        assert_eq!(to.counters().rx_corrupt, 0);
    }
    let counters = from.counters();
    assert_eq!(counters.tx_packets, u64::from(number));
    assert_eq!(counters.tx_dropped_full + counters.tx_dropped_error, 0);
}

#[test]
fn random_bursts_arrive_with_everything_on() {
    run(&Options::default(), 1);
}

#[test]
fn random_bursts_arrive_with_everything_off() {
    run(&plain(), 2);
}

#[test]
fn random_bursts_arrive_without_packing() {
    run(
        &Options {
            pack: false,
            ecn: Ecn::On,
            ..Options::default()
        },
        3,
    );
}

#[test]
fn random_bursts_arrive_without_segmentation() {
    run(
        &Options {
            gso: false,
            gro: false,
            ..Options::default()
        },
        4,
    );
}

#[test]
fn random_bursts_arrive_when_only_the_sender_segments() {
    run(
        &Options {
            gro: false,
            ..Options::default()
        },
        5,
    );
}

#[test]
fn random_bursts_arrive_over_ipv6() {
    let ip = Ipv6Addr::LOCALHOST.into();
    run(
        &Options {
            ip,
            ecn: Ecn::On,
            ..Options::default()
        },
        6,
    );
}

#[test]
fn random_bursts_arrive_in_datagrams_of_loopback_size() {
    run(
        &Options {
            datagram_bytes: Some(60_000),
            ..Options::default()
        },
        7,
    );
}
