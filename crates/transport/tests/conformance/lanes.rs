//! Lanes: what is published arrives as it was written, once and in
//! order with what else was sent; what is not published leaves nothing.

use std::time::Instant;

use dunlin_core::transport::{LANE_PACKETS, Lane, PeerId, Tx};
use dunlin_wire::HEADER_LEN;

use crate::harness::{Endpoint, Harness, Packet, SOON, contents};

/// Lengths of packets that go into a lane.
const LENS: std::ops::RangeInclusive<usize> = HEADER_LEN..=56;

/// Runs the tests of lanes.
pub(crate) fn run_all<H: Harness>() {
    every_length_arrives_in_order::<H>();
    lanes_and_bursts_keep_their_order::<H>();
    a_peer_has_one_lane::<H>();
    a_lane_that_is_not_published_leaves_nothing::<H>();
    a_lane_of_a_peer_that_is_gone_is_dropped_and_counted::<H>();
}

fn two<H: Harness>() -> (Endpoint<H>, Endpoint<H>, PeerId) {
    let (mut a, mut b) = (Endpoint::<H>::new(1), Endpoint::<H>::new(2));
    let (to_b, _) = a.connect(&mut b);
    (a, b, to_b)
}

/// Writes the packet with this number and length.
pub(crate) fn push<H: Harness>(a: &mut Endpoint<H>, lane: &mut Lane, number: u32, len: usize) {
    let bytes = contents(a.number, number, len);
    let (header, data) = bytes.split_at(HEADER_LEN);
    let (words, _) = header.as_chunks();
    let mut message = a.pool.alloc(data.len()).unwrap();
    message.data_mut().copy_from_slice(data);
    assert!(lane.push(
        [0, 1, 2].map(|at: usize| u64::from_le_bytes(words[at])),
        &message
    ));
}

fn packets(sent: impl IntoIterator<Item = (u32, usize)>) -> Vec<Packet> {
    let packet = |(number, len)| Packet {
        sender: 1,
        number,
        len,
    };
    sent.into_iter().map(packet).collect()
}

fn every_length_arrives_in_order<H: Harness>() {
    let (mut a, mut b, to_b) = two::<H>();
    let sent: Vec<_> = (0..)
        .zip(LENS.chain(LENS).chain(LENS).chain(LENS))
        .collect();
    for burst in [1, 2, 7, LANE_PACKETS] {
        for part in sent.chunks(burst) {
            let mut lane = a.tx.lend(to_b, part.len()).unwrap();
            assert_eq!(lane.room(), part.len());
            for &(number, len) in part {
                push(&mut a, &mut lane, number, len);
            }
            a.tx.publish(to_b, lane);
            assert_eq!(b.receive(part.len()), packets(part.iter().copied()));
        }
    }
    assert_eq!(a.counters().tx_packets, 4 * sent.len() as u64);
    assert_eq!(a.tx.done().0, 0, "a lane is no part of the sequence");
}

fn lanes_and_bursts_keep_their_order<H: Harness>() {
    let (mut a, mut b, to_b) = two::<H>();
    for round in 0..300 {
        let number = 4 * round;
        let mut lane = a.tx.lend(to_b, 2).unwrap();
        push(&mut a, &mut lane, number + 1, 56);
        push(&mut a, &mut lane, number + 2, 40);
        // A lane that is lent holds up nothing.
        let long = 100 + round as usize % 900;
        a.send_one(to_b, number, long);
        a.tx.publish(to_b, lane);
        a.send_one(to_b, number + 3, 56);
        let lens = [long, 56, 40, 56];
        assert_eq!(b.receive(4), packets((number..).zip(lens)));
    }
}

fn a_peer_has_one_lane<H: Harness>() {
    let (mut a, mut b, to_b) = two::<H>();
    let lane = a.tx.lend(to_b, 3).unwrap();
    assert!(a.tx.lend(to_b, 3).is_none(), "it is lent");
    a.tx.publish(to_b, lane);
    let lane = a.tx.lend(to_b, usize::MAX).unwrap();
    assert_eq!((lane.room(), lane.packets().len()), (LANE_PACKETS, 0));
    assert!(a.tx.lend(PeerId(77), 1).is_none(), "there is no such peer");
    assert!(b.nothing_comes());
}

fn a_lane_that_is_not_published_leaves_nothing<H: Harness>() {
    let (mut a, mut b, to_b) = two::<H>();
    let mut lane = a.tx.lend(to_b, 8).unwrap();
    for number in 0..8 {
        push(&mut a, &mut lane, number, 56);
    }
    // All but two are taken back, and one of these is written again.
    lane.truncate(1);
    push(&mut a, &mut lane, 9, 30);
    a.tx.flush();
    assert!(b.nothing_comes());
    a.tx.publish(to_b, lane);
    assert_eq!(b.receive(2), packets([(0, 56), (9, 30)]));
    // A lane that is lost is the last one, and packets go on.
    let mut lane = a.tx.lend(to_b, 8).unwrap();
    push(&mut a, &mut lane, 10, 56);
    drop(lane);
    a.send_one(to_b, 11, 56);
    assert_eq!(b.receive(1), packets([(11, 56)]));
}

fn a_lane_of_a_peer_that_is_gone_is_dropped_and_counted<H: Harness>() {
    let (mut a, mut b, to_b) = two::<H>();
    let mut lane = a.tx.lend(to_b, 8).unwrap();
    push(&mut a, &mut lane, 1, 56);
    push(&mut a, &mut lane, 2, 56);
    a.remove(to_b);
    a.tx.publish(to_b, lane);
    assert_eq!(a.counters().tx_dropped_peer, 2);
    // Neither does it reach the next peer that has the same place.
    let begin = Instant::now();
    let (again, _) = a.connect(&mut b);
    assert!(a.tx.lend(again, 1).is_some());
    assert!(b.nothing_comes() && begin.elapsed() < 10 * SOON);
}
