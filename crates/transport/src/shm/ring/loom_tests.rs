//! The ring and the doorbell under loom: every interleaving of a few steps.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=3 \
//!     cargo test --release -p dunlin-transport --lib loom
//! ```

use std::ptr::NonNull;

use loom::sync::Arc;
use loom::thread;

use super::super::cells::{Cell, Cells, ONE_CELL, cells_of};
use super::super::doorbell::Doorbell;
use super::row::{Row, push_lone, push_row};
use super::*;

mod lent;

const COUNT: u32 = 4;
const LONGEST: u32 = 120;

/// The memory that two sides share.
struct Shared {
    cells: Vec<Cell>,
    line: ConsumerLine,
    bell: Doorbell,
    /// The wake-up line: 1 if a sender wrote to it.
    woken: AtomicU32,
}

fn shared() -> Arc<Shared> {
    Arc::new(Shared {
        cells: (0..COUNT).map(|_| Cell::default()).collect(),
        line: ConsumerLine::default(),
        bell: Doorbell::default(),
        woken: AtomicU32::new(0),
    })
}

impl Shared {
    fn cells(&self) -> Cells {
        let first = NonNull::from(self.cells.as_slice()).cast();
        // SAFETY: every thread that uses the cells holds the `Arc`.
        unsafe { Cells::new(first, COUNT) }
    }

    fn producer(&self) -> Producer {
        // SAFETY: as above, and each test makes one.
        unsafe { Producer::new(self.cells(), NonNull::from(&self.line), LONGEST) }
    }

    fn consumer(&self) -> Consumer {
        // SAFETY: as above, and each test makes one.
        unsafe { Consumer::new(self.cells(), NonNull::from(&self.line), LONGEST) }
    }

    /// Does the work of the sending half after a run of packets.
    fn notify(&self, producer: &Producer, bit: u32) {
        if producer.is_parked() && self.bell.ring(bit) {
            self.woken.store(1, Ordering::SeqCst);
        }
    }
}

fn push(producer: &mut Producer, data: &[u8]) -> bool {
    // SAFETY: the data is a slice.
    unsafe { producer.push(&[], data.as_ptr(), data.len()) }.is_ok()
}

fn pop(consumer: &mut Consumer) -> Option<Vec<u8>> {
    match consumer.next() {
        Next::Packet { at, len } => Some(consumer.cells().read(at, len as usize)),
        Next::Nothing => None,
        Next::Reference { .. } | Next::Corrupt => panic!("the ring is corrupt"),
    }
}

/// A packet of two cells, of which the second looks like a published packet in some lap.
fn looks_published(lap: u64) -> Vec<u8> {
    let word = (lap << 1 | 1) | 3 << LEN_SHIFT;
    // The word of the second cell follows the body of the first.
    let mut data = vec![0xAA; 72];
    data[56..64].copy_from_slice(&word.to_le_bytes());
    data
}

/// Sends the packets from another thread, as many as there is room for, while this thread polls.
/// Checks that they arrive in order.
fn in_order(packets: &'static [fn() -> Vec<u8>], polls: usize) {
    loom::model(move || {
        let shared = shared();
        let sender = shared.clone();
        let sending = thread::spawn(move || {
            let mut producer = sender.producer();
            let packets = packets.iter().map(|packet| packet());
            packets
                .filter(|packet| push(&mut producer, packet))
                .collect::<Vec<_>>()
        });
        let mut consumer = shared.consumer();
        let mut received = Vec::new();
        for _ in 0..polls {
            received.extend(pop(&mut consumer));
            consumer.give_back();
        }
        let sent = sending.join().expect("a model that panics has failed");
        while let Some(packet) = pop(&mut consumer) {
            received.push(packet);
        }
        assert_eq!(received, sent);
    });
}

#[test]
fn small_packets_come_in_order_over_the_wrap() {
    in_order(
        &[|| vec![1], || vec![2], || vec![3], || vec![4], || vec![5]],
        3,
    );
}

#[test]
fn long_packets_and_markers_come_in_order() {
    in_order(&[|| vec![1], || vec![2; 72], || vec![3; 72], || vec![4]], 3);
}

#[test]
fn continuation_bytes_are_never_taken_for_a_packet() {
    // The first packet leaves bytes in the second cell that look like a word of the second lap.
    // When the tail comes round to that cell, a consumer that is awake must find nothing there.
    loom::model(|| {
        let shared = shared();
        let sender = shared.clone();
        let (mut producer, mut consumer) = (shared.producer(), shared.consumer());
        for packet in [looks_published(1), vec![1], vec![2]] {
            assert!(push(&mut producer, &packet));
            assert_eq!(pop(&mut consumer), Some(packet));
            consumer.give_back();
        }
        let sending = thread::spawn(move || {
            assert!(push(&mut producer, &[3]));
            drop(sender);
        });
        let received: Vec<_> = (0..3).filter_map(|_| pop(&mut consumer)).collect();
        sending.join().expect("a model that panics has failed");
        assert!(received.is_empty() || received == [vec![3]], "{received:?}");
    });
}

#[test]
fn a_receiver_that_falls_asleep_is_woken() {
    loom::model(|| {
        let shared = shared();
        let sender = shared.clone();
        let sending = thread::spawn(move || {
            let mut producer = sender.producer();
            assert!(push(&mut producer, &[1]));
            sender.notify(&producer, 70);
        });
        let consumer = shared.consumer();
        let asleep = fall_asleep(&shared, &consumer);
        sending.join().expect("a model that panics has failed");
        assert!(
            !asleep || shared.woken.load(Ordering::SeqCst) == 1,
            "a wake-up was lost"
        );
    });
}

fn pop_run(consumer: &mut Consumer) -> Vec<Vec<u8>> {
    let (cells, mut packets) = (*consumer.cells(), Vec::new());
    consumer.take_run(COUNT as usize, LONGEST, |_, packet| {
        let at = u32::try_from(packet.at).expect("a model that panics has failed");
        packets.push(cells.read(at, packet.len as usize));
    });
    packets
}

/// Takes packets that have the length of the first.
fn pop_row(consumer: &mut Consumer) -> Vec<Vec<u8>> {
    // SAFETY: the cells are the model's.
    let Some(len) = (unsafe { consumer.watch().next() }) else {
        return Vec::new();
    };
    let cells = cells_of(len);
    let (first, count) = match cells {
        1 => consumer.take_row::<1>(len, COUNT as usize),
        2 => consumer.take_row::<2>(len, COUNT as usize),
        // This is a marker.
        _ => return Vec::new(),
    };
    let first = u32::try_from(first).expect("a model that panics has failed");
    let count = u32::try_from(count).expect("a model that panics has failed");
    let at = |place| first + place * cells;
    let read = |place| consumer.cells().read(at(place), len as usize);
    (0..count).map(read).collect()
}

/// Sends as many of the first packets as fit, together, like packets of a lane.
fn push_run(producer: &mut Producer, packets: &'static [&'static [u8]]) -> usize {
    let row = Row::new(packets);
    match row.packets.as_slice() {
        [packet] if push_lone(producer, &row, *packet) => 1,
        packets => producer.push_staged(&row, packets).0,
    }
}

/// Sends as many of the first packets as fit, all of one length, together, like alike packets of a
/// lane.
fn push_alike(producer: &mut Producer, packets: &'static [&'static [u8]]) -> usize {
    push_row(producer, &Row::new(packets))
}

/// Sends as many of the first packets as fit, each of one cell, together, like items.
fn push_items(producer: &mut Producer, packets: &'static [&'static [u8]]) -> usize {
    let in_cell = |packet: &&[u8]| {
        let mut bytes = [0; ONE_CELL];
        bytes[..packet.len()].copy_from_slice(packet);
        (bytes, packet.len())
    };
    let cells: Vec<_> = packets.iter().map(in_cell).collect();
    producer.push_run(&cells, |(bytes, len)| (bytes, *len)).0
}

/// Sends `packets` in runs from another thread, while this thread polls. Before that, the packets
/// `before` were sent and taken one by one. All must arrive in order, whichever words become
/// visible first.
fn runs_in_order(before: &'static [fn() -> Vec<u8>], packets: &'static [&'static [u8]]) {
    runs_by(push_run, before, packets);
    if packets.iter().all(|packet| packet.len() <= ONE_CELL) {
        runs_by(push_items, before, packets);
    }
    if Row::new(packets).is_alike() {
        runs_by(push_alike, before, packets);
    }
}

fn runs_by(
    push: fn(&mut Producer, &'static [&'static [u8]]) -> usize,
    before: &'static [fn() -> Vec<u8>],
    packets: &'static [&'static [u8]],
) {
    loom::model(move || {
        let shared = shared();
        let sender = shared.clone();
        let (mut producer, mut consumer) = (shared.producer(), shared.consumer());
        for packet in before {
            assert!(self::push(&mut producer, &packet()));
            assert_eq!(pop(&mut consumer), Some(packet()));
            consumer.give_back();
        }
        let sending = thread::spawn(move || {
            let (mut sent, mut tries) = (0, 0);
            while sent < packets.len() && tries < 2 {
                sent += push(&mut producer, &packets[sent..]);
                tries += 1;
            }
            drop(sender);
            sent
        });
        let mut received = Vec::new();
        for poll in 0..3 {
            match poll {
                1 => received.extend(pop(&mut consumer)),
                2 => received.extend(pop_row(&mut consumer)),
                _ => received.extend(pop_run(&mut consumer)),
            }
            consumer.give_back();
        }
        let sent = sending.join().expect("a model that panics has failed");
        while let Some(packet) = pop(&mut consumer) {
            received.push(packet);
        }
        assert_eq!(received, packets[..sent]);
    });
}

/// Does the same as [`push_run`], with the planted bug.
fn push_word_first(producer: &mut Producer, packets: &'static [&'static [u8]]) -> usize {
    producer.shows_first = true;
    push_run(producer, packets)
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_word_that_is_stored_before_the_body_of_a_run_is_found() {
    runs_by(push_word_first, &[], &[&[1; 30], &[2; 30]]);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_word_that_is_stored_before_the_body_of_a_lone_packet_is_found() {
    runs_by(push_word_first, &[], &[&[1; 30]]);
}

#[test]
fn a_run_comes_in_order_although_its_last_word_shows_first() {
    runs_in_order(&[], &[&[1], &[2; 56], &[3]]);
}

#[test]
fn a_lone_packet_shows_with_all_of_its_bytes() {
    runs_in_order(&[], &[&[1; 56]]);
    runs_in_order(&[|| vec![1], || vec![2], || vec![3]], &[&[4; 30]]);
}

#[test]
fn a_long_lone_packet_shows_with_all_of_its_bytes() {
    runs_in_order(&[], &[&[1; 100]]);
    runs_in_order(&[|| vec![1], || vec![2], || vec![3]], &[&[4; 57]]);
    // The third cell, which is the tail after the packet, holds a word of the second lap.
    runs_in_order(
        &[|| vec![0], || looks_published(1), || vec![1]],
        &[&[2; 57]],
    );
}

#[test]
fn a_run_of_long_packets_comes_in_order() {
    runs_in_order(&[], &[&[1], &[2; 72]]);
    runs_in_order(&[|| vec![1]], &[&[2; 90], &[3; 5]]);
}

#[test]
fn a_run_of_long_packets_over_continuation_bytes_is_not_read_too_early() {
    // The second cell, which is the tail after the run, holds a word of the second lap.
    runs_in_order(&[|| looks_published(1), || vec![1]], &[&[3], &[4; 57]]);
}

#[test]
fn packets_that_are_alike_come_in_order() {
    runs_in_order(&[], &[&[1; 30], &[2; 30], &[3; 30]]);
    runs_in_order(&[|| vec![1], || vec![2]], &[&[3; 9], &[4; 9], &[5; 9]]);
    runs_in_order(&[], &[&[1; 57], &[2; 57]]);
    // The second cell, which is the tail after the first packet, holds a word of the second lap.
    runs_in_order(
        &[|| looks_published(1), || vec![1], || vec![2]],
        &[&[3; 8], &[4; 8]],
    );
}

#[test]
fn runs_come_in_order_over_the_wrap() {
    runs_in_order(&[|| vec![1], || vec![2]], &[&[3; 56], &[4], &[5; 56]]);
}

#[test]
fn a_run_over_continuation_bytes_is_not_read_too_early() {
    // The second cell, which the tail reaches within the run, holds a word of the second lap.
    runs_in_order(
        &[|| looks_published(1), || vec![1], || vec![2]],
        &[&[3], &[4; 56], &[5]],
    );
}

/// Does the work of the receiving half before it blocks; true if it may.
fn fall_asleep(shared: &Shared, consumer: &Consumer) -> bool {
    consumer.set_parked(Parked::Asleep);
    fence(Ordering::SeqCst);
    if consumer.has_next() || !shared.bell.fall_asleep() {
        shared.bell.wake_up();
        return false;
    }
    true
}

#[test]
fn the_second_packet_after_a_sleep_is_not_lost_either() {
    loom::model(|| {
        let shared = shared();
        let sender = shared.clone();
        let mut consumer = shared.consumer();
        consumer.set_parked(Parked::Awake);
        let sending = thread::spawn(move || {
            let mut producer = sender.producer();
            for packet in 1..3 {
                assert!(push(&mut producer, &[packet]));
                sender.notify(&producer, 70);
            }
        });
        let mut received = 0;
        let mut rung = false;
        shared.bell.take(|_| rung = true);
        if rung {
            consumer.set_parked(Parked::No);
            received += usize::from(pop(&mut consumer).is_some());
        }
        // The consumer has polled for long enough and parks the ring again.
        consumer.set_parked(Parked::Awake);
        fence(Ordering::SeqCst);
        while pop(&mut consumer).is_some() {
            received += 1;
        }
        sending.join().expect("a model that panics has failed");
        let mut rung = false;
        shared.bell.take(|_| rung = true);
        assert!(
            rung || received == 2,
            "a parked ring is not empty, and its bell did not ring"
        );
    });
}

#[test]
fn a_peer_that_zeroes_the_doorbell_takes_no_wake_up() {
    loom::model(|| {
        let shared = shared();
        let sender = shared.clone();
        let consumer = shared.consumer();
        let sending = thread::spawn(move || {
            let mut producer = sender.producer();
            assert!(push(&mut producer, &[1]));
            // Another peer undoes everything that this peer writes into the doorbell.
            if producer.is_parked() && producer.takes_asleep() {
                sender.woken.store(1, Ordering::SeqCst);
            }
        });
        consumer.set_parked(Parked::Asleep);
        fence(Ordering::SeqCst);
        let sleeps = !consumer.has_next();
        sending.join().expect("a model that panics has failed");
        let woken = shared.woken.load(Ordering::SeqCst) == 1;
        assert!(!sleeps || woken, "a wake-up was lost");
    });
}

#[test]
fn a_ring_that_stays_asleep_while_its_consumer_is_awake_loses_no_wake_up() {
    loom::model(|| {
        let shared = shared();
        let sender = shared.clone();
        let mut consumer = shared.consumer();
        consumer.set_parked(Parked::Asleep);
        let sending = thread::spawn(move || {
            let mut producer = sender.producer();
            for packet in 1..3 {
                assert!(push(&mut producer, &[packet]));
                if producer.is_parked() && producer.takes_asleep() {
                    sender.woken.store(1, Ordering::SeqCst);
                }
            }
        });
        // The consumer looks at its parked rings.
        let is_active = consumer.has_next();
        if is_active {
            if consumer.unpark() {
                shared.woken.store(0, Ordering::SeqCst);
            }
            assert!(pop(&mut consumer).is_some());
            consumer.set_parked(Parked::Asleep);
            fence(Ordering::SeqCst);
        }
        let sleeps = !is_active || !consumer.has_next();
        sending.join().expect("a model that panics has failed");
        let woken = shared.woken.load(Ordering::SeqCst) == 1;
        assert!(
            !sleeps || woken || !consumer.has_next(),
            "a wake-up was lost"
        );
    });
}

#[test]
fn two_peers_do_not_hide_each_other() {
    loom::model(|| {
        let shared = shared();
        let rings = [0, 1].map(|bit| {
            let sender = shared.clone();
            thread::spawn(move || {
                if sender.bell.ring(bit) {
                    sender.woken.store(1, Ordering::SeqCst);
                }
            })
        });
        let mut seen = 0;
        shared.bell.take(|bit| seen |= 1 << bit);
        let asleep = shared.bell.fall_asleep();
        for ring in rings {
            ring.join().expect("a model that panics has failed");
        }
        let woken = shared.woken.load(Ordering::SeqCst) == 1;
        assert!(!asleep || seen == 3 || woken, "a wake-up was lost");
        shared.bell.take(|bit| seen |= 1 << bit);
        assert_eq!(seen, 3, "a bit was lost");
    });
}
