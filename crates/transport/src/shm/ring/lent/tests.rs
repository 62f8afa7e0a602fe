//! Lent cells, and packets that are taken with nothing but a watch, compared step by step with a
//! queue.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::super::super::check::Heap;
use super::super::longest_packet;
use super::super::row::{Row, push_in_block, push_lent};
use super::*;

#[derive(Clone, Debug)]
enum Step {
    /// Sends packets of one cell in lent cells.
    Lent(Vec<usize>),
    /// Sends packets of any number of cells in a block.
    Block(Vec<usize>),
    /// Sends a packet of any length through the producer.
    Push(usize),
    /// Takes up to this number of packets, one at a time, by the watch.
    Ahead(usize),
    /// Takes a packet through the consumer.
    Pop,
    GiveBack,
}

/// A step has fewer packets than this, and a run fewer steps. Miri takes 30 ms for a packet.
const MOST: usize = if cfg!(miri) { 8 } else { 40 };
const STEPS: usize = if cfg!(miri) { 40 } else { 400 };

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => prop::collection::vec(0..=ONE_CELL, 1..MOST).prop_map(Step::Lent),
        4 => prop::collection::vec(block_len(), 1..MOST).prop_map(Step::Block),
        1 => (0..=300_usize).prop_map(Step::Push),
        4 => (1..MOST).prop_map(Step::Ahead),
        3 => Just(Step::Pop),
        2 => Just(Step::GiveBack),
    ]
}

/// Mostly packets of two cells, and some of every number that a lane carries.
fn block_len() -> impl Strategy<Value = usize> {
    prop_oneof![4 => 0..=120_usize, 1 => 0..=LONGEST]
}

/// Bytes that look like a published word of the present lap or of the next one, which is the worst
/// case.
fn payload(ring: &Heap, number: usize, len: usize) -> Vec<u8> {
    let lap = ring.cells().lap(ring.producer.tail) + number as u64 % 2;
    let word = lap << 1 | 1 | (number as u64 % 57) << 32;
    word.to_le_bytes().into_iter().cycle().take(len).collect()
}

/// Takes packets, one at a time, with nothing but the watch and the end of its run.
fn take_ahead(ring: &mut Heap, most: usize) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    while packets.len() < most
        && let Some(packet) = ring.consumer.take_by_watch(ring.consumer.end_of_run())
    {
        let at = u32::try_from(packet.at).expect("a ring has few cells");
        packets.push(ring.bytes(at, packet.len).to_vec());
    }
    packets
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 256 }))]

    #[test]
    fn lent_cells_and_watches_behave_like_a_queue(
        log in 5..if cfg!(miri) { 6 } else { 9_u32 },
        steps in prop::collection::vec(step(), 1..STEPS),
    ) {
        let longest = longest_packet(1 << log).min(1100);
        let (mut ring, mut model) = (Heap::new(1 << log, longest), VecDeque::new());
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Lent(lens) => {
                    let run: Vec<_> = lens.iter().map(|len| payload(&ring, number, *len)).collect();
                    let sent = push_lent(&mut ring.producer, &Row::new(&run));
                    model.extend(run.into_iter().take(sent));
                }
                Step::Block(lens) => {
                    let run: Vec<_> = lens.iter().map(|len| payload(&ring, number, *len)).collect();
                    let sent = push_in_block(&mut ring.producer, &Row::new(&run));
                    model.extend(run.into_iter().take(sent));
                }
                Step::Push(len) => {
                    let packet = payload(&ring, number, len);
                    if ring.push(&packet, &[]).is_ok() {
                        model.push_back(packet);
                    }
                }
                Step::Ahead(most) => {
                    for packet in take_ahead(&mut ring, most) {
                        prop_assert_eq!(Some(packet), model.pop_front());
                    }
                }
                Step::Pop => prop_assert_eq!(ring.pop(), model.pop_front()),
                Step::GiveBack => ring.consumer.give_back(),
            }
        }
        while let Some(packet) = model.pop_front() {
            prop_assert_eq!(ring.pop(), Some(packet));
        }
        prop_assert_eq!(ring.pop(), None);
    }
}

#[test]
fn blocks_are_full_of_packets_and_lie_in_one_word_of_the_set() {
    let mut ring = Heap::new(128, LONGEST.try_into().expect("a short length"));
    // The first block ends with a word of the set, and in the second, one cell stays free.
    for fitting in [32, 31] {
        let run: Vec<_> = (0..40_u8).map(|number| vec![number; 100]).collect();
        assert_eq!(push_in_block(&mut ring.producer, &Row::new(&run)), fitting);
        for packet in run.into_iter().take(fitting) {
            assert_eq!(ring.pop(), Some(packet));
        }
        let lent = ring.producer.lend();
        assert!(
            lent.are_block(),
            "a run with data in its cells is not clean"
        );
    }
    assert!(!ring.producer.lend_block().have(2));
}

#[test]
fn packets_in_blocks_shift_over_cells_with_data() {
    let mut ring = Heap::new(128, LONGEST.try_into().expect("a short length"));
    let lens = [57, 3, 180, 120, 56, 1000, 400];
    for number in 0..if cfg!(miri) { 20 } else { 2000 } {
        let packet = payload(&ring, number, lens[number % lens.len()]);
        let row = Row::new(std::slice::from_ref(&packet));
        if push_in_block(&mut ring.producer, &row) == 0 {
            // A block would pass the end of a word of the set, or the producer does not know yet
            // that there is room.
            assert_eq!(ring.push(&packet, &[]), Ok(()));
        }
        let taken = take_ahead(&mut ring, 1);
        assert_eq!(
            taken.into_iter().next().or_else(|| ring.pop()),
            Some(packet)
        );
        assert_eq!(
            ring.pop(),
            None,
            "the tail shows a packet that was not sent"
        );
        ring.consumer.give_back();
    }
}

#[test]
fn cells_are_lent_up_to_a_pause_and_not_beyond_the_room() {
    let mut ring = Heap::new(64, 100);
    let one = Row::new(&[[7; 20]]);
    let mut sent = 0;
    for (lens, expected) in [(3, 3), (100, 45)] {
        let run = Row::new(&vec![[7; 20]; lens]);
        assert_eq!(push_lent(&mut ring.producer, &run), expected);
        sent += expected;
    }
    assert_eq!(sent, 48, "the last 16 cells include one that stays free");
    assert!(!ring.producer.lend().have(1));
    for _ in 0..sent {
        assert!(ring.pop().is_some());
    }
    ring.consumer.give_back();
    // The producer reads how far the consumer is only when it needs room.
    assert_eq!(push_lent(&mut ring.producer, &one), 0);
    assert!(!Lent::none().have(1) && !Lent::none().are_lent());
}

#[test]
fn the_sender_claims_a_free_cell_after_each_packet() {
    let mut ring = Heap::new(64, 100);
    for _ in 0..64 {
        ring.push(&[0xFF; ONE_CELL], &[]).expect("there is room");
        assert!(ring.pop().is_some());
        ring.consumer.give_back();
    }
    // SAFETY: the cells are this test's, and it asks for the first ones.
    let last_byte = |ring: &Heap, at| unsafe { ring.cells().bytes(at).add(ONE_CELL - 1).read() };
    let first = u32::try_from(AHEAD).expect("few");
    assert_eq!(push_lent(&mut ring.producer, &Row::new(&[[7; 20]; 3])), 3);
    for at in first - 1..first + 4 {
        let is_claimed = (first..first + 3).contains(&at);
        assert_eq!(last_byte(&ring, at) == 0, is_claimed, "cell {at}");
    }
}

#[test]
fn no_claim_reaches_a_packet_that_was_not_read() {
    // With 21 cells read, 16 are lent, and the last claim reaches the last of them.
    for read in 17..=21 {
        let (mut ring, full) = (Heap::new(64, 100), [0xFF; ONE_CELL]);
        ring.consumer.set_part(Some(1));
        let push = |ring: &mut Heap| ring.push(&full, &[]).expect("there is room");
        (0..63).for_each(|_| push(&mut ring));
        for _ in 0..read {
            assert!(ring.pop().is_some());
            ring.consumer.give_back();
        }
        push(&mut ring);
        push_lent(&mut ring.producer, &Row::new(&[full; 16]));
        while let Some(packet) = ring.pop() {
            assert_eq!(packet, full, "{read} cells were free");
        }
    }
}
