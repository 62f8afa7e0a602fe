//! Lent cells under loom: packets of one and of two cells, over cells that hold data, to a consumer
//! that has only its watch, and to one that parks.

use super::super::lent::Lent;
use super::super::row::push_in;
use super::*;

/// Lends cells.
type Lend = fn(&mut Producer) -> Lent;

const RUN: Lend = |producer| producer.lend();
const BLOCK: Lend = |producer| producer.lend_block();

/// Takes a packet like a receiver that has only the watch: up to the ring's last cell.
fn pop_by_watch(consumer: &mut Consumer) -> Option<Vec<u8>> {
    let end = consumer.cells().word_ptr(COUNT - 1).addr().get();
    let packet = consumer.take_by_watch(end)?;
    let at = u32::try_from(packet.at).expect("a ring has few cells");
    Some(consumer.cells().read(at, packet.len as usize))
}

/// Sends the packets in lent cells from another thread, while this thread polls, with its watch and
/// without. Before that, the packets `before` were sent and taken one by one. All must arrive in
/// order.
fn in_lent_cells(lend: Lend, before: &[fn() -> Vec<u8>], packets: &'static [&'static [u8]]) {
    sent_by(lend, false, before.to_vec(), packets);
}

fn sent_by(
    lend: Lend,
    shows_first: bool,
    before: Vec<fn() -> Vec<u8>>,
    packets: &'static [&'static [u8]],
) {
    loom::model(move || {
        let shared = shared();
        let sender = shared.clone();
        let (mut producer, mut consumer) = (shared.producer(), shared.consumer());
        producer.shows_first = shows_first;
        for packet in &before {
            assert!(push(&mut producer, &packet()));
            assert_eq!(pop(&mut consumer), Some(packet()));
            consumer.give_back();
        }
        // The producer learns how far the consumer is.
        producer.room(COUNT as usize - 1);
        let sending = thread::spawn(move || {
            let row = Row::new(packets);
            let cells = lend(&mut producer);
            let sent = push_in(&mut producer, cells, &row, &row.packets);
            drop(sender);
            sent
        });
        let mut received = Vec::new();
        for poll in 0..3 {
            match poll {
                1 => received.extend(pop(&mut consumer)),
                _ => received.extend(pop_by_watch(&mut consumer)),
            }
        }
        let sent = sending.join().expect("a model that panics has failed");
        assert_eq!(sent, packets.len());
        while let Some(packet) = pop(&mut consumer) {
            received.push(packet);
        }
        assert_eq!(received, packets);
    });
}

#[test]
fn packets_in_a_clean_run_come_in_order() {
    in_lent_cells(RUN, &[], &[&[1; 56], &[2; 30]]);
    // A clean run ends before the ring's last cell, which the last packet's claim reaches.
    in_lent_cells(RUN, &[|| vec![0]], &[&[2; 8]]);
}

#[test]
fn packets_in_a_block_come_in_order() {
    in_lent_cells(BLOCK, &[], &[&[1; 56], &[2; 57]]);
    in_lent_cells(BLOCK, &[], &[&[1; 100], &[2; 8]]);
    in_lent_cells(BLOCK, &[|| vec![0], || vec![1]], &[&[2; 100]]);
}

#[test]
fn a_block_over_continuation_bytes_is_not_read_too_early() {
    // The second cell holds a word of the second lap. The tail is there after the first packet.
    let before: [fn() -> Vec<u8>; 3] = [|| looks_published(1), || vec![1], || vec![2]];
    in_lent_cells(BLOCK, &before, &[&[3], &[4; 57]]);
    // A run is not clean, so a block is lent instead.
    in_lent_cells(RUN, &before, &[&[3], &[4]]);
    // The third cell holds that word, and the tail is there after a packet of two cells.
    let before: [fn() -> Vec<u8>; 3] = [|| vec![0], || looks_published(1), || vec![1]];
    in_lent_cells(BLOCK, &before, &[&[2; 57]]);
}

#[test]
fn the_cell_after_a_block_is_clean() {
    // The first cell holds data that look like a word of the second lap: the block, which ends with
    // the ring, is full, and the tail is there.
    loom::model(|| {
        let shared = shared();
        let (mut producer, mut consumer) = (shared.producer(), shared.consumer());
        // This ring cannot get such data by sending, because a packet of the first lap begins in
        // the first cell. A ring whose cells lie in several words of the set can, so the data is
        // planted.
        producer.dirty.set_word_of(0, 1);
        producer.dirty.reach(u64::from(COUNT) + 1);
        for packet in [1, 2] {
            assert!(push(&mut producer, &[packet]));
            assert_eq!(pop(&mut consumer), Some(vec![packet]));
            consumer.give_back();
        }
        shared
            .cells()
            .word(0)
            .store(3 | 5 << LEN_SHIFT, Ordering::Relaxed);
        producer.room(COUNT as usize - 1);
        let row = Row::new(&[[7; 72]]);
        let cells = producer.lend_block();
        assert_eq!(push_in(&mut producer, cells, &row, &row.packets), 1);
        assert_eq!(pop(&mut consumer), Some(vec![7; 72]));
        assert_eq!(pop(&mut consumer), None);
    });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_word_that_is_stored_before_the_body_in_a_clean_run_is_found() {
    sent_by(RUN, true, Vec::new(), &[&[1; 30]]);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_word_that_is_stored_before_the_body_in_a_block_is_found() {
    sent_by(BLOCK, true, Vec::new(), &[&[1; 100]]);
}

/// A consumer that falls asleep while packets leave in lent cells is woken: a packet that finds the
/// ring parked wakes it, or the pause after the last packet, which comes with a fence.
fn wakes(lend: Lend, packets: &'static [&'static [u8]]) {
    loom::model(move || {
        let shared = shared();
        let sender = shared.clone();
        let sending = thread::spawn(move || {
            let mut producer = sender.producer();
            let (row, mut cells) = (Row::new(packets), lend(&mut producer));
            for packet in &row.packets {
                // SAFETY: the ring is alive, and its producer only looks at marks meanwhile.
                let needs_care = unsafe { row.push_to(&mut cells, *packet) };
                if needs_care.expect("there is room") {
                    sender.notify(&producer, 70);
                }
            }
            producer.take_back(&cells);
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

#[test]
fn a_receiver_that_falls_asleep_is_woken_by_packets_in_lent_cells() {
    wakes(RUN, &[&[1], &[2]]);
    wakes(BLOCK, &[&[1], &[2]]);
    wakes(BLOCK, &[&[1; 72], &[2]]);
}
