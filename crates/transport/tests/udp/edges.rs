//! Boundaries of packing, segmentation and bursts, and the descriptors that announce packets.

use std::os::fd::RawFd;

use dunlin_core::transport::{RX_BURST, Rx, Tx, TxSeq};
use dunlin_transport::connect::{Arm, Connect};
use dunlin_transport::udp::{Options, Udp};

use crate::endpoint::{Endpoint, Packet, connect, cut, ethernet, packets, pair, plain};

/// True if the descriptor from `Connect::fds` becomes readable within this time.
fn is_readable(endpoint: &Endpoint, within_ms: i32) -> bool {
    let mut fds: Vec<RawFd> = Vec::new();
    Udp::fds(&endpoint.halves.rx, &endpoint.halves.tx, &mut fds);
    assert_eq!(fds.len(), 1);
    let mut poll = libc::pollfd {
        fd: fds[0],
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one live pollfd.
    unsafe { libc::poll(&raw mut poll, 1, within_ms) == 1 }
}

fn arm(endpoint: &mut Endpoint) -> Arm {
    let (rx, tx) = (&mut endpoint.halves.rx, &mut endpoint.halves.tx);
    let found = Udp::arm(rx, tx);
    Udp::disarm(rx, tx);
    found
}

#[test]
fn sixteen_packets_of_56_bytes_are_one_datagram_of_896_and_one_call() {
    let (mut a, mut b, to_b) = pair(&ethernet());
    a.send(&packets(to_b, 16, 56));
    let frames = b.frames();
    assert_eq!(frames.iter().map(Vec::len).collect::<Vec<_>>(), [896]);
    assert_eq!(cut(&frames[0]).len(), 16);
    assert_eq!(a.counters().syscalls, 1);
}

#[test]
fn full_packets_are_one_call_and_arrive_as_frames_of_their_own() {
    let (mut a, mut b, to_b) = pair(&ethernet());
    // The receiver begins sparse. When the second burst comes, it is dense, so it gets merged
    // datagrams.
    for most_calls in [u64::MAX, 20] {
        let (calls, b_calls) = (a.counters().syscalls, b.counters().syscalls);
        let mut burst = packets(to_b, 40, 1464);
        burst.push(Packet {
            peer: to_b,
            number: 40,
            len: 700,
            inline: 0,
        });
        a.send(&burst);
        assert_eq!(a.counters().syscalls, calls + 1);
        let frames = b.take_frames(41);
        let numbers: Vec<_> = frames.iter().flat_map(|frame| cut(frame)).collect();
        assert_eq!(frames.len(), 41, "each datagram is a frame");
        assert_eq!(numbers.len(), 41);
        assert_eq!(numbers[40], (40, 700));
        assert!(b.counters().syscalls - b_calls <= most_calls);
    }
}

#[test]
fn a_burst_to_several_peers_is_one_call() {
    let (mut a, mut b, to_b) = pair(&ethernet());
    let mut c = Endpoint::new(&ethernet());
    let (to_c, _) = connect(&mut a, &mut c);
    let mut burst = packets(to_b, 10, 100);
    for (number, packet) in (0..).zip(&mut burst) {
        packet.peer = if number % 2 == 0 { to_b } else { to_c };
    }
    a.send(&burst);
    assert_eq!(a.counters().syscalls, 1);
    let even = [0, 2, 4, 6, 8].map(|number| (number, 100));
    let odd = [1, 3, 5, 7, 9].map(|number| (number, 100));
    assert_eq!(b.take_packets(5), even);
    assert_eq!(c.take_packets(5), odd);
}

#[test]
fn a_packet_beyond_the_datagram_size_is_sent_whole() {
    let (mut a, mut b, to_b) = pair(&ethernet());
    a.send(&[packets(to_b, 1, 60_000), packets(to_b, 2, 30_000)].concat());
    assert_eq!(b.take_packets(3), [(0, 60_000), (0, 30_000), (1, 30_000)]);
}

#[test]
fn a_burst_shows_at_most_its_limit_and_loses_nothing() {
    for options in [
        Options {
            pack: false,
            ..Options::default()
        },
        plain(),
    ] {
        let (mut a, mut b, to_b) = pair(&options);
        // Each round finds the receiver in another state: sparse, dense, dense with more left over.
        for _ in 0..3 {
            a.send(&packets(to_b, 128, 56));
            let mut numbers = Vec::new();
            while numbers.len() < 128 {
                let frames = b.frames();
                assert!(frames.len() <= RX_BURST);
                numbers.extend(frames.iter().flat_map(|frame| cut(frame)));
            }
            assert!(numbers.iter().map(|(number, _)| *number).eq(0..128));
        }
        b.assert_silent();
    }
}

#[test]
fn datagrams_left_over_from_a_burst_keep_the_thread_awake() {
    let (mut a, mut b, to_b) = pair(&Options {
        pack: false,
        ..Options::default()
    });
    // After some traffic, the receiver takes merged datagrams.
    a.send(&packets(to_b, 50, 56));
    b.take_frames(50);
    assert_eq!(arm(&mut b), Arm::Wait);
    assert!(!is_readable(&b, 0));
    a.send(&packets(to_b, 60, 56));
    assert!(is_readable(&b, 5000));
    assert_eq!(arm(&mut b), Arm::Ready);
    assert_eq!(b.halves.rx.burst(), RX_BURST);
    assert!(!is_readable(&b, 0), "the kernel has given everything away");
    assert_eq!(arm(&mut b), Arm::Ready);
    assert_eq!(b.halves.rx.burst(), 60 - RX_BURST);
    assert_eq!(arm(&mut b), Arm::Wait);
}

#[test]
fn frames_stay_as_they_are_until_the_next_burst() {
    let (mut a, mut b, to_b) = pair(&plain());
    a.send(&packets(to_b, 20, 300));
    let mut count = 0;
    while count == 0 {
        count = b.halves.rx.burst();
    }
    let before: Vec<_> = (0..count)
        .map(|i| b.halves.rx.frame(i).bytes.to_vec())
        .collect();
    a.send(&packets(to_b, 20, 400));
    for (index, bytes) in before.iter().enumerate() {
        assert_eq!(b.halves.rx.frame(index).bytes, bytes);
    }
}

#[test]
fn the_sequence_counts_items_whether_sent_or_dropped() {
    let (mut a, _b, to_b) = pair(&ethernet());
    assert_eq!(a.halves.tx.burst(&[]), TxSeq(0));
    assert_eq!(a.send(&packets(to_b, 3, 56)), TxSeq(3));
    assert_eq!(
        a.send(&packets(dunlin_core::transport::PeerId(999), 2, 56)),
        TxSeq(5)
    );
    a.halves.tx.flush();
    assert_eq!(a.halves.tx.done(), TxSeq(5));
}

#[test]
fn a_ping_pong_costs_two_calls_a_side_and_no_more() {
    let (mut a, mut b) = (Endpoint::new(&ethernet()), Endpoint::new(&ethernet()));
    let (to_b, to_a) = connect(&mut a, &mut b);
    for _ in 0..100 {
        a.send(&packets(to_b, 1, 56));
        assert_eq!(b.take_packets(1), [(0, 56)]);
        b.assert_silent();
        b.send(&packets(to_a, 1, 56));
        assert_eq!(a.take_packets(1), [(0, 56)]);
        a.assert_silent();
    }
    // One to send, one to receive, and the ten of `assert_silent`.
    assert_eq!(a.counters().syscalls, 1200);
    assert_eq!(b.counters().syscalls, 1200);
}
