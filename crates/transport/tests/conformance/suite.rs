//! The tests of all transports: delivery, ownership, limits, and peers that come and go.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use dunlin_core::transport::{PeerId, RX_BURST, Rx, Tx, TxSeq};
use dunlin_transport::connect::{Connect, Offer};

use crate::harness::{Endpoint, Harness, NAME, Packet, SOON, whole};
use crate::{harness, lanes, waking};

/// Transports are tested in turn, because descriptors are counted for the whole process.
static TURN: Mutex<()> = Mutex::new(());

/// Runs every test of the suite twice: with all packets in the queue, and with packets staged where
/// they can be.
pub(crate) fn run_all<H: Harness>() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    for staged in [false, true] {
        harness::stage(staged);
        run_each::<H>();
    }
    lanes::run_all::<H>();
}

/// Runs every test but those of lanes, with packets staged or not, as `harness::stage` has set.
pub(crate) fn run_each<H: Harness>() {
    run_few::<H>();
    many_peers::<H>();
    peers_come_and_go::<H>();
}

/// Runs only the tests that need few endpoints, for a transport whose endpoints take long to open.
pub(crate) fn run_few<H: Harness>() {
    every_size_arrives_unchanged::<H>();
    bursts_arrive_whole_and_once::<H>();
    frames_stay_until_the_next_burst::<H>();
    data_taken_back_is_lost_or_arrives_unchanged::<H>();
    a_full_queue_drops_and_never_blocks::<H>();
    done_follows_the_sequence::<H>();
    a_revoked_msgbuf_is_dropped_and_counted::<H>();
    a_packet_too_long_is_dropped::<H>();
    an_unknown_peer_is_dropped_and_counted::<H>();
    a_peer_lives_until_its_last_release::<H>();
    a_removed_peer_is_gone_at_once::<H>();
    if H::REACHES_ITSELF {
        an_endpoint_may_be_its_own_peer::<H>();
    }
    an_abandoned_offer_leaves_nothing::<H>();
    malformed_offers_are_refused::<H>();
    waking::run_all::<H>();
}

fn two<H: Harness>() -> (Endpoint<H>, Endpoint<H>, PeerId, PeerId) {
    let (mut a, mut b) = (Endpoint::<H>::new(1), Endpoint::<H>::new(2));
    let (to_b, to_a) = a.connect(&mut b);
    (a, b, to_b, to_a)
}

/// Asserts that exactly the packets with these numbers and lengths came, each once, in any order.
fn expect(mut got: Vec<Packet>, sender: u16, sent: impl IntoIterator<Item = (u32, usize)>) {
    got.sort_unstable();
    let sent = sent.into_iter().map(|(number, len)| Packet {
        sender,
        number,
        len,
    });
    let mut sent: Vec<_> = sent.collect();
    sent.sort_unstable();
    assert_eq!(got, sent);
}

fn every_size_arrives_unchanged<H: Harness>() {
    let (mut a, mut b, to_b, to_a) = two::<H>();
    let longest = a.longest();
    let sizes = (NAME..300)
        .chain((300..longest).step_by(61))
        .chain([longest - 1, longest]);
    for (number, len) in (0..).zip(sizes) {
        for inline in [0, 24, 56] {
            let packet = a.packet(to_b, number, len, inline);
            if packet.0.data.len() > a.limits.data_size as usize {
                continue;
            }
            a.send(vec![packet]);
            expect(b.receive(1), 1, [(number, len)]);
        }
        b.send_one(to_a, number, len.min(24 + b.limits.data_size as usize));
        assert_eq!(a.receive(1).len(), 1);
    }
    assert_eq!(a.counters().tx_packets, a.tx.done().0);
}

fn bursts_arrive_whole_and_once<H: Harness>() {
    let (mut a, mut b, to_b, _) = two::<H>();
    let mut number = 0;
    for burst in 1..=2 * RX_BURST {
        let sizes = [NAME, 56, 57, 100, 700, 24 + a.limits.data_size as usize];
        let mut sent = Vec::new();
        let mut packets = Vec::new();
        for _ in 0..burst.min(a.limits.rx_queue as usize / 2) {
            let len = sizes[(number as usize * 7 + burst) % sizes.len()];
            packets.push(a.packet(to_b, number, len, 24));
            sent.push((number, len));
            number += 1;
        }
        a.send(packets);
        expect(b.receive(sent.len()), 1, sent);
    }
}

fn frames_stay_until_the_next_burst<H: Harness>() {
    let (mut a, mut b, to_b, _) = two::<H>();
    for round in 0..20 {
        let sizes = [NAME, 56, 300, 1400];
        for (number, len) in (0..).zip(sizes) {
            a.send_one(to_b, number, len);
        }
        let start = Instant::now();
        let mut frames = 0;
        while frames == 0 && start.elapsed() < SOON {
            frames = b.rx.burst();
        }
        let before: Vec<_> = (0..frames).map(|i| whole(&b.rx.frame(i))).collect();
        // Packets that come now must not change the frames of the burst.
        for number in 0..30 {
            a.send_one(to_b, 1000 + number, 500 + round);
        }
        for (index, before) in before.iter().enumerate() {
            assert_eq!(
                &whole(&b.rx.frame(index)),
                before,
                "a frame changed while it was shown"
            );
        }
        assert!(!before.is_empty());
        while !b.rest().is_empty() {}
    }
}

fn data_taken_back_is_lost_or_arrives_unchanged<H: Harness>() {
    let (mut a, mut b, to_b, _) = two::<H>();
    for len in [100, 1400, a.longest()] {
        let inline = 24.max(len.saturating_sub(a.limits.data_size as usize));
        let packet = a.packet(to_b, 1, len, inline);
        a.send(vec![packet]);
        a.take_back();
        // The memory is reused before the other side looks.
        let mut other = a.packet(to_b, 2, len, inline);
        other.1.as_mut().unwrap().data_mut().fill(0xAA);
        let got = b.rest();
        assert!(got.len() <= 1, "{got:?}");
        expect(got.clone(), 1, got.iter().map(|_| (1, len)));
        a.send_one(to_b, 3, 64);
        expect(b.receive(1), 1, [(3, 64)]);
    }
}

fn many_peers<H: Harness>() {
    const PEERS: u16 = 70;
    let mut hub = Endpoint::<H>::new(999);
    let mut spokes: Vec<_> = (0..PEERS)
        .map(|number| {
            let mut spoke = Endpoint::<H>::new(number);
            let (to_hub, to_spoke) = spoke.connect(&mut hub);
            (spoke, to_hub, to_spoke)
        })
        .collect();
    for round in 0..40_u32 {
        // In some rounds all endpoints send, in others few, so that the receiver may stop polling
        // the quiet ones.
        let sends = |index: usize| round % 4 == 0 || index % 16 == round as usize % 16;
        let mut expected = HashSet::new();
        for (index, (spoke, to_hub, _)) in spokes.iter_mut().enumerate() {
            if sends(index) {
                spoke.send_one(*to_hub, round, 24 + index);
                expected.insert((spoke.number, round));
            }
        }
        let got = hub.receive(expected.len());
        assert_eq!(got.len(), expected.len(), "round {round}");
        for packet in got {
            assert!(
                expected.remove(&(packet.sender, packet.number)),
                "{packet:?} came twice, or was not sent"
            );
        }
        for _ in 0..1000 {
            assert_eq!(hub.poll(), []);
        }
    }
    let packets = spokes
        .iter()
        .map(|(_, _, to_spoke)| *to_spoke)
        .collect::<Vec<_>>();
    let packets = packets
        .into_iter()
        .map(|peer| hub.packet(peer, 7, 40, 24))
        .collect();
    hub.send(packets);
    for (spoke, ..) in &mut spokes {
        expect(spoke.receive(1), 999, [(7, 40)]);
    }
}

fn a_full_queue_drops_and_never_blocks<H: Harness>() {
    let (mut a, mut b, to_b, _) = two::<H>();
    let packet = a.packet(to_b, 1, 24 + a.limits.data_size as usize, 24);
    let items = [packet.0; 32];
    let start = Instant::now();
    let mut sent = 0;
    while sent < 4 * u64::from(a.limits.rx_queue) {
        sent = a.tx.burst(&items).0;
    }
    a.tx.flush();
    assert!(start.elapsed() < SOON, "a full queue held the sender up");
    assert_eq!(a.tx.done(), TxSeq(sent), "dropped packets count as done");
    let mut received = 0;
    loop {
        let rest = b.rest().len() as u64;
        received += rest;
        if rest == 0 {
            break;
        }
    }
    assert!(received <= sent);
    assert!(
        received >= u64::from(a.limits.rx_queue.min(8)),
        "{received} of {sent}"
    );
    if H::COUNTS_FULL {
        let counters = a.counters();
        assert_eq!(counters.tx_dropped_full, sent - received);
        assert_eq!(counters.tx_packets, received);
        assert_eq!(b.counters().rx_packets, received);
    }
    a.send_one(to_b, 2, 50);
    expect(b.receive(1), 1, [(2, 50)]);
}

fn done_follows_the_sequence<H: Harness>() {
    let (mut a, _b, to_b, _) = two::<H>();
    assert_eq!(a.tx.done(), TxSeq(0));
    let mut handed_over = 0;
    for burst in [1, 5, 0, 32, 2] {
        let packet = a.packet(to_b, 1, 40, 24);
        handed_over += burst as u64;
        assert_eq!(a.tx.burst(&vec![packet.0; burst]), TxSeq(handed_over));
        assert!(a.tx.done() <= TxSeq(handed_over));
        a.tx.flush();
        assert_eq!(a.tx.done(), TxSeq(handed_over));
    }
}

fn a_revoked_msgbuf_is_dropped_and_counted<H: Harness>() {
    let (mut a, mut b, to_b, _) = two::<H>();
    let (item, buf) = a.packet(to_b, 1, 200, 24);
    drop(buf);
    let good = a.packet(to_b, 2, 200, 24);
    a.tx.burst(&[item, good.0, item]);
    a.tx.flush();
    expect(b.receive(1), 1, [(2, 200)]);
    assert_eq!(a.counters().tx_dropped_stale, 2);
    assert_eq!(a.tx.done(), TxSeq(3));
}

fn a_packet_too_long_is_dropped<H: Harness>() {
    let (mut a, mut b, to_b, _) = two::<H>();
    let mut inline = a.packet(to_b, 1, 24, 24);
    inline.0.inline_len = u32::MAX;
    a.tx.burst(&[inline.0]);
    let long = a.packet(to_b, 2, 70_000, 24);
    a.tx.burst(&[long.0]);
    a.tx.flush();
    assert_eq!(b.rest(), []);
    let counters = a.counters();
    assert_eq!(counters.tx_packets, 0);
    assert_eq!(counters.tx_dropped_size, 2);
}

fn an_unknown_peer_is_dropped_and_counted<H: Harness>() {
    let (mut a, mut b, to_b, _) = two::<H>();
    let strangers = [0, 1, to_b.0 + 1, to_b.0 ^ 1 << 20, u32::MAX >> 1, u32::MAX];
    let strangers = strangers
        .map(PeerId)
        .into_iter()
        .filter(|peer| *peer != to_b);
    let mut sent = 0;
    for stranger in strangers {
        a.send_one(stranger, 1, 100);
        sent += 1;
        assert_eq!(a.counters().tx_dropped_peer, sent);
    }
    assert_eq!(b.rest(), []);
    a.send_one(to_b, 2, 100);
    expect(b.receive(1), 1, [(2, 100)]);
}

fn a_peer_lives_until_its_last_release<H: Harness>() {
    let (mut a, mut b, to_b, to_a) = two::<H>();
    assert_eq!(
        a.connect(&mut b),
        (to_b, to_a),
        "one channel serves all sessions"
    );
    assert_eq!(
        b.connect(&mut a),
        (to_a, to_b),
        "the channel serves both directions"
    );
    for left in [2, 1] {
        a.release(to_b);
        b.release(to_a);
        a.send_one(to_b, left, 100);
        expect(b.receive(1), 1, [(left, 100)]);
        b.send_one(to_a, left, 100);
        expect(a.receive(1), 2, [(left, 100)]);
    }
    a.release(to_b);
    b.release(to_a);
    // Releasing a stale id has no effect.
    b.release(to_a);
    a.release(to_b);
    let (again, back) = a.connect(&mut b);
    a.send_one(again, 9, 100);
    expect(b.receive(1), 1, [(9, 100)]);
    b.send_one(back, 9, 100);
    expect(a.receive(1), 2, [(9, 100)]);
}

fn a_removed_peer_is_gone_at_once<H: Harness>() {
    let (mut a, mut b, to_b, to_a) = two::<H>();
    a.connect(&mut b);
    b.send_one(to_a, 1, 1000);
    let start = Instant::now();
    while a.rx.burst() == 0 && start.elapsed() < SOON {}
    let shown = a.rx.frame(0).bytes.to_vec();
    a.remove(to_b);
    assert_eq!(
        a.rx.frame(0).bytes,
        shown,
        "frames outlive their peer until the next burst"
    );
    a.send_one(to_b, 2, 100);
    assert_eq!(a.counters().tx_dropped_peer, 1);
    assert_eq!(b.rest(), []);
    a.remove(to_b);
    // The other side does not know this yet. Its packets must do no harm.
    b.send_one(to_a, 3, 100);
    a.rest();
    let (again, _) = a.connect(&mut b);
    assert_ne!(again, to_b, "a dead peer's id comes back too soon");
    a.send_one(again, 4, 100);
    expect(b.receive(1), 1, [(4, 100)]);
    b.remove(to_a);
    a.send_one(again, 5, 100);
    b.receive(1);
}

fn peers_come_and_go<H: Harness>() {
    let mut hub = Endpoint::<H>::new(999);
    for number in 0..H::VISITORS {
        let mut spoke = Endpoint::<H>::new(number);
        let (to_hub, to_spoke) = spoke.connect(&mut hub);
        spoke.send_one(to_hub, 1, 100);
        expect(hub.receive(1), number, [(1, 100)]);
        match number % 3 {
            0 => hub.remove(to_spoke),
            1 => {
                spoke.release(to_hub);
                hub.release(to_spoke);
            }
            _ => {
                drop(spoke);
                hub.remove(to_spoke);
            }
        }
    }
}

fn an_endpoint_may_be_its_own_peer<H: Harness>() {
    let mut a = Endpoint::<H>::new(5);
    let own = a.info();
    for number in 0..3 {
        let (pending, offer) = H::T::offer(&mut a.rx, &mut a.tx, &own).unwrap();
        let (back, answer) = H::T::accept(&mut a.rx, &mut a.tx, &own, offer).unwrap();
        let there = H::T::complete(&mut a.rx, &mut a.tx, pending, answer).unwrap();
        for peer in [there, back] {
            a.send_one(peer, number, 80);
            expect(a.receive(1), 5, [(number, 80)]);
        }
    }
}

fn an_abandoned_offer_leaves_nothing<H: Harness>() {
    let (mut a, mut b) = (Endpoint::<H>::new(1), Endpoint::<H>::new(2));
    let descriptors = open_descriptors();
    for _ in 0..100 {
        let (pending, offer) = H::T::offer(&mut a.rx, &mut a.tx, &b.info()).unwrap();
        drop(offer);
        H::T::abandon(&mut a.rx, &mut a.tx, pending);
    }
    let (pending, _) = H::T::offer(&mut a.rx, &mut a.tx, &b.info()).unwrap();
    let wrong = Offer {
        bytes: vec![1, 2, 3],
        fds: Vec::new(),
    };
    assert!(H::T::complete(&mut a.rx, &mut a.tx, pending, wrong).is_err());
    // The test runner may open some descriptors at the same time, but not a hundred.
    assert!(open_descriptors() < descriptors + 90, "descriptors leak");
    let (to_b, _) = a.connect(&mut b);
    a.send_one(to_b, 1, 60);
    expect(b.receive(1), 1, [(1, 60)]);
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn malformed_offers_are_refused<H: Harness>() {
    let (mut a, mut b) = (Endpoint::<H>::new(1), Endpoint::<H>::new(2));
    let (pending, offer) = H::T::offer(&mut a.rx, &mut a.tx, &b.info()).unwrap();
    let good = offer.bytes.clone();
    let mut accept = |bytes: Vec<u8>| {
        let offer = Offer {
            bytes,
            fds: Vec::new(),
        };
        H::T::accept(&mut b.rx, &mut b.tx, &a.info(), offer).map(|(peer, _)| peer)
    };
    for len in 0..good.len() {
        assert!(
            accept(good[..len].to_vec()).is_err(),
            "cut after {len} bytes"
        );
    }
    assert!(
        accept([good.as_slice(), &[0]].concat()).is_err(),
        "one byte too many"
    );
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bytes = good.clone();
            bytes[at] ^= 1 << bit;
            // Some changed offers are still valid; they must only do no harm.
            let _accepted_or_not = accept(bytes);
        }
    }
    assert!(accept(vec![0xFF; 256]).is_err());
    H::T::abandon(&mut a.rx, &mut a.tx, pending);
    std::thread::sleep(Duration::from_millis(1));
    let (to_b, _) = a.connect(&mut b);
    a.send_one(to_b, 1, 60);
    expect(b.receive(1), 1, [(1, 60)]);
}
