//! Datagrams from a socket that is not a peer's, and datagrams that no peer sends.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use dunlin_core::transport::Rx;
use dunlin_transport::udp::{Ecn, Options};

use crate::endpoint::{Endpoint, cut, packets, pair, plain};

fn stranger(to: &Endpoint) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(to.halves.rx.local_addr()).unwrap();
    socket
}

#[test]
fn a_stranger_s_datagram_is_a_frame_like_any_other() {
    for ecn in [Ecn::Off, Ecn::On] {
        let (mut a, mut b, to_b) = pair(&Options {
            ecn,
            ..Options::default()
        });
        let stranger = stranger(&b);
        stranger.send(b"not a packet").unwrap();
        a.send(&packets(to_b, 1, 56));
        stranger.send(&[0xFF; 3000]).unwrap();
        let frames = b.take_frames(3);
        assert_eq!(frames[0], b"not a packet");
        assert_eq!(frames[1].len(), 56);
        assert_eq!(frames[2], [0xFF; 3000]);
    }
}

#[test]
fn a_datagram_beyond_the_buffers_is_dropped_and_counted() {
    for ecn in [Ecn::Off, Ecn::On] {
        let (mut a, mut b, to_b) = pair(&Options { ecn, ..plain() });
        let stranger = stranger(&b);
        stranger.send(&[1; 60_000]).unwrap();
        a.send(&packets(to_b, 1, 1496));
        stranger.send(&[1; 1537]).unwrap();
        stranger.send(&[1; 1536]).unwrap();
        let frames = b.take_frames(2);
        assert_eq!(cut(&frames[0]), [(0, 1496)]);
        assert_eq!(frames[1], [1; 1536]);
        b.assert_silent();
        assert_eq!(b.counters().rx_corrupt, 2);
    }
}

#[test]
fn the_longest_datagram_fits_where_datagrams_are_merged() {
    let mut b = Endpoint::new(&Options::default());
    stranger(&b).send(&[7; 65_507]).unwrap();
    assert_eq!(b.take_frames(1), [[7; 65_507]]);
}

#[test]
fn an_empty_datagram_is_dropped_and_counted() {
    for ecn in [Ecn::Off, Ecn::On] {
        let mut b = Endpoint::new(&Options {
            ecn,
            ..Options::default()
        });
        let stranger = stranger(&b);
        for _ in 0..40 {
            stranger.send(&[]).unwrap();
        }
        stranger.send(&[9]).unwrap();
        assert_eq!(b.take_frames(1), [[9]]);
        b.assert_silent();
        assert_eq!(b.counters().rx_corrupt, 40);
    }
}

#[test]
fn a_flood_beyond_the_receive_buffer_is_counted_and_ends() {
    let mut b = Endpoint::new(&Options {
        rcvbuf_bytes: 64 << 10,
        ..Options::default()
    });
    let stranger = stranger(&b);
    for _ in 0..2000 {
        stranger.send(&[3; 1000]).unwrap();
    }
    let mut got = 0_u64;
    let start = Instant::now();
    while got + b.counters().rx_overflow < 2000 && start.elapsed() < Duration::from_secs(5) {
        got += b.halves.rx.burst() as u64;
    }
    assert!(0 < got && got < 2000);
    assert_eq!(b.counters().rx_overflow, 2000 - got);
    assert!(
        u64::from(b.halves.limits.rx_queue) <= got,
        "the limit promises no more than fits"
    );
}
