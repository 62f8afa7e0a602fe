//! A packet that cannot be sent is dropped and counted by its cause; no sender waits for it, and
//! other packets are sent.

use std::time::{Duration, Instant};

use dunlin_core::transport::{MAX_INLINE, PeerId, Tx};
use dunlin_msgbuf::{Pool, PoolConfig};
use dunlin_transport::connect::Connect;
use dunlin_transport::udp::{Options, Udp};

use crate::endpoint::{Endpoint, bare, connect, ethernet, packets, pair, plain};

#[test]
fn a_closed_port_neither_blocks_nor_poisons_the_socket() {
    for options in [Options::default(), plain()] {
        let (mut a, dead, to_dead) = pair(&options);
        let mut b = Endpoint::new(&options);
        let (to_b, _) = connect(&mut a, &mut b);
        drop(dead);
        let start = Instant::now();
        for round in 0..500 {
            a.send(&packets(to_dead, 64, 100));
            let mut burst = packets(to_dead, 6, 1464);
            burst[1].peer = to_b;
            burst[4].peer = to_b;
            a.send(&burst);
            assert_eq!(b.take_packets(2), [(1, 1464), (4, 1464)], "round {round}");
            a.assert_silent();
        }
        assert!(start.elapsed() < Duration::from_secs(10));
        let counters = a.counters();
        assert_eq!(counters.tx_packets, 500 * 70);
        assert_eq!(counters.rx_corrupt, 0);
    }
}

#[test]
fn a_revoked_msgbuf_is_counted_and_the_rest_is_sent() {
    let (mut a, mut b, to_b) = pair(&ethernet());
    let mut pool = Pool::new(PoolConfig::default()).unwrap();
    let mut buf = pool.alloc(32).unwrap();
    let mut stale = bare(to_b, 24);
    stale.data = buf.lend();
    buf.revoke();
    a.halves.tx.burst(&[bare(to_b, 10), stale, bare(to_b, 11)]);
    assert_eq!(b.take_frames(1), [[0x5A; 21]]);
    assert_eq!(a.counters().tx_dropped_stale, 1);
    assert_eq!(a.counters().tx_packets, 2);
}

#[test]
fn sizes_that_no_packet_has_are_counted_and_the_rest_is_sent() {
    let (mut a, mut b, to_b) = pair(&ethernet());
    let mut pool = Pool::new(PoolConfig::default()).unwrap();
    let long = pool.alloc(65_500).unwrap();
    let mut too_long = bare(to_b, 24);
    too_long.data = long.lend();
    let beyond = u32::try_from(MAX_INLINE).unwrap() + 1;
    let sizes = [
        bare(to_b, 0),
        bare(to_b, beyond),
        bare(to_b, u32::MAX),
        too_long,
    ];
    for item in sizes {
        a.halves.tx.burst(&[bare(to_b, 1), item, bare(to_b, 2)]);
        a.halves.tx.burst(&[item]);
        assert_eq!(b.take_frames(1), [[0x5A; 3]]);
    }
    assert_eq!(a.counters().tx_dropped_size, 8);
}

#[test]
fn a_packet_beyond_the_peer_s_buffers_is_not_sent() {
    let mut a = Endpoint::new(&ethernet());
    let mut b = Endpoint::new(&plain());
    let (to_b, _) = connect(&mut a, &mut b);
    a.send(&[packets(to_b, 1, 1536), packets(to_b, 1, 1537)].concat());
    assert_eq!(b.take_packets(1), [(0, 1536)]);
    assert_eq!(a.counters().tx_dropped_size, 1);
    assert_eq!(b.counters().rx_corrupt, 0);
}

#[test]
fn a_peer_that_was_released_or_never_was_gets_nothing() {
    let (mut a, mut b, to_b) = pair(&ethernet());
    let absent = PeerId(77);
    a.halves
        .tx
        .burst(&[bare(absent, 9), bare(to_b, 10), bare(absent, 9)]);
    assert_eq!(b.take_frames(1), [[0x5A; 10]]);
    assert_eq!(a.counters().tx_dropped_peer, 2);
    Udp::release(&mut a.halves.rx, &mut a.halves.tx, to_b);
    a.halves.tx.burst(&[bare(to_b, 10); 5]);
    b.assert_silent();
    assert_eq!(a.counters().tx_dropped_peer, 7);
}

#[test]
fn counters_show_what_was_sent_and_received() {
    let (mut a, mut b, to_b) = pair(&ethernet());
    a.send(&packets(to_b, 10, 56));
    a.send(&packets(to_b, 3, 1464));
    b.take_packets(13);
    let (sent, got) = (a.counters(), b.counters());
    assert_eq!((sent.tx_packets, sent.tx_bytes), (13, 560 + 3 * 1464));
    assert_eq!((got.rx_packets, got.rx_bytes), (4, 560 + 3 * 1464));
    assert_eq!((sent.rx_packets, got.tx_packets), (0, 0));
}
