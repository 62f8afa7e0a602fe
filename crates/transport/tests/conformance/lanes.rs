//! Lanes: a staged packet arrives unchanged, once, and before the items that follow it.

use dunlin_core::transport::{InLane, LANE_PACKET, Lane, PeerId, Tx, TxSeq};
use dunlin_wire::HEADER_LEN;

use crate::harness::{Endpoint, Harness, Packet, contents};

/// Packets that fit into the smallest ring.
const MANY: u32 = 96;

/// Runs the tests of lanes.
pub(crate) fn run_all<H: Harness>() {
    every_length_arrives_in_order::<H>();
    a_lone_packet_of_every_length_arrives::<H>();
    lanes_and_items_keep_their_order::<H>();
    a_lane_for_several_peers_reaches_each::<H>();
    a_lane_that_is_not_sent_leaves_nothing::<H>();
    packets_of_a_peer_that_is_gone_are_dropped_and_counted::<H>();
}

fn two<H: Harness>() -> (Endpoint<H>, Endpoint<H>, PeerId) {
    let (mut a, mut b) = (Endpoint::<H>::new(1), Endpoint::<H>::new(2));
    let (to_b, _) = a.connect(&mut b);
    (a, b, to_b)
}

/// Stages the packet with this number and length.
pub(crate) fn push<H: Harness>(
    a: &mut Endpoint<H>,
    lane: &mut Lane,
    peer: PeerId,
    number: u32,
    len: usize,
) {
    let bytes = contents(a.number, number, len);
    assert!(a.stage(lane, peer, &bytes), "there is room");
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
    assert_eq!(a.tx.lane(), LANE_PACKET);
    let (each, some) = (HEADER_LEN..=256, (256..=LANE_PACKET).step_by(8));
    let lens = each.chain(some);
    let lens = lens.flat_map(|len| [len, 56, HEADER_LEN + len % 33]);
    let sent: Vec<_> = (0..).zip(lens).collect();
    let mut lane = Lane::new(LANE_PACKET);
    for (part, burst) in sent.chunks(7).zip([1, 2, 7].into_iter().cycle()) {
        for part in part.chunks(burst) {
            for &(number, len) in part {
                push(&mut a, &mut lane, to_b, number, len);
            }
            a.tx.send(&lane, &[]);
            lane.clear();
            assert_eq!(b.receive(part.len()), packets(part.iter().copied()));
        }
    }
    assert_eq!(a.counters().tx_packets, sent.len() as u64);
    assert_eq!(a.tx.done(), TxSeq(sent.len() as u64), "all of them count");
    // A small ring has room again once the receiver has seen a later packet.
    push(&mut a, &mut lane, to_b, 0, 56);
    a.tx.send(&lane, &[]);
    lane.clear();
    assert_eq!(b.receive(1), packets([(0, 56)]));
    // These are more packets than a burst has.
    for number in 0..MANY {
        push(&mut a, &mut lane, to_b, number, 56);
    }
    a.tx.send(&lane, &[]);
    let all = (0..MANY).map(|number| (number, 56));
    assert_eq!(b.receive(MANY as usize), packets(all));
}

fn a_lone_packet_of_every_length_arrives<H: Harness>() {
    let (mut a, mut b, to_b) = two::<H>();
    let mut lane = Lane::new(LANE_PACKET);
    let (each, some) = (HEADER_LEN..=128, (128..=LANE_PACKET).step_by(40));
    let mut count = 0;
    for (number, len) in (0..).zip(each.chain(some)) {
        push(&mut a, &mut lane, to_b, number, len);
        let packet = lane.lone().expect("it is alone");
        count += 1;
        assert_eq!(a.tx.send_lone(&lane, packet, InLane), TxSeq(count));
        lane.clear();
        assert_eq!(b.receive(1), packets([(number, len)]));
    }
    assert_eq!(a.counters().tx_packets, count);
}

fn lanes_and_items_keep_their_order<H: Harness>() {
    let (mut a, mut b, to_b) = two::<H>();
    let mut lane = Lane::new(LANE_PACKET);
    for round in 0..300 {
        let number = 4 * round;
        let long = 100 + round as usize % 900;
        push(&mut a, &mut lane, to_b, number, 56);
        push(
            &mut a,
            &mut lane,
            to_b,
            number + 1,
            HEADER_LEN + round as usize % 225,
        );
        let (item, _data) = a.packet(to_b, number + 2, long, 24);
        let end = a.tx.send(&lane, &[item]);
        assert_eq!(end, TxSeq(4 * u64::from(round) + 3));
        a.tx.flush();
        lane.clear();
        a.send_one(to_b, number + 3, 56);
        let lens = [56, HEADER_LEN + round as usize % 225, long, 56];
        assert_eq!(b.receive(4), packets((number..).zip(lens)));
    }
}

fn a_lane_for_several_peers_reaches_each<H: Harness>() {
    let (mut a, mut b, to_b) = two::<H>();
    let mut c = Endpoint::<H>::new(3);
    let (to_c, _) = a.connect(&mut c);
    let mut lane = Lane::new(LANE_PACKET);
    for round in 0..100 {
        let peers = [to_b, to_b, to_c, to_b, to_c, to_c, PeerId(77)];
        for (number, peer) in (0..).zip(peers) {
            push(
                &mut a,
                &mut lane,
                peer,
                7 * round + number,
                40 + round as usize,
            );
        }
        let (item, _data) = a.packet(to_c, 7 * round + 6, 200, 24);
        a.tx.send(&lane, &[item]);
        a.tx.flush();
        lane.clear();
        let of =
            |numbers: [u32; 3]| numbers.map(|number| (7 * round + number, 40 + round as usize));
        assert_eq!(b.receive(3), packets(of([0, 1, 3])));
        let last = (7 * round + 6, 200);
        assert_eq!(
            c.receive(4),
            packets(of([2, 4, 5]).into_iter().chain([last]))
        );
    }
    assert_eq!(a.counters().tx_dropped_peer, 100, "there is no peer 77");
}

fn a_lane_that_is_not_sent_leaves_nothing<H: Harness>() {
    let (mut a, mut b, to_b) = two::<H>();
    let mut lane = Lane::new(LANE_PACKET);
    for number in 0..8 {
        push(&mut a, &mut lane, to_b, number, 56);
    }
    a.tx.flush();
    drop(lane);
    assert!(b.nothing_comes());
    a.send_one(to_b, 11, 56);
    assert_eq!(b.receive(1), packets([(11, 56)]));
}

fn packets_of_a_peer_that_is_gone_are_dropped_and_counted<H: Harness>() {
    let (mut a, mut b, to_b) = two::<H>();
    let mut lane = Lane::new(LANE_PACKET);
    push(&mut a, &mut lane, to_b, 1, 56);
    push(&mut a, &mut lane, to_b, 2, 56);
    a.remove(to_b);
    // The staged packets do not reach the next peer that gets the same slot, either.
    let (again, _) = a.connect(&mut b);
    a.tx.send(&lane, &[]);
    assert_eq!(a.counters().tx_dropped_peer, 2);
    assert!(b.nothing_comes());
    lane.clear();
    push(&mut a, &mut lane, again, 3, 56);
    a.tx.send(&lane, &[]);
    assert_eq!(b.receive(1), packets([(3, 56)]));
}
