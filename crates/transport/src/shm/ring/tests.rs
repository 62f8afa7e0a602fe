//! The ring against a queue, step by step; what a hostile other side can write; the words that
//! must not be taken for packets.

use std::collections::VecDeque;
use std::ptr::NonNull;

use proptest::prelude::*;

use super::super::cells::{Cell, Cells};
use super::*;

/// A ring in ordinary memory, and both of its ends.
pub(in super::super) struct Heap {
    cells: Box<[Cell]>,
    line: Box<ConsumerLine>,
    producer: Producer,
    consumer: Consumer,
}

impl Heap {
    pub(in super::super) fn new(count: u32, longest: u32) -> Self {
        let mut cells: Box<[Cell]> = (0..count).map(|_| Cell::default()).collect();
        let line = Box::<ConsumerLine>::default();
        let first = NonNull::from(&mut *cells).cast::<Cell>();
        let at = NonNull::from(&*line);
        // SAFETY: both ends are dropped with the memory, and there is one of each.
        let (producer, consumer) = unsafe {
            (
                Producer::new(Cells::new(first, count), at, longest),
                Consumer::new(Cells::new(first, count), at, longest),
            )
        };
        Self {
            cells,
            line,
            producer,
            consumer,
        }
    }

    fn push(&mut self, head: &[u8], data: &[u8]) -> Result<(), Refused> {
        // SAFETY: the data is a slice outside of the ring.
        unsafe { self.producer.push(head, data.as_ptr(), data.len()) }
    }

    fn pop(&mut self) -> Option<Vec<u8>> {
        match self.consumer.next() {
            Next::Packet { at, len } => Some(bytes(&self.consumer, at, len)),
            Next::Nothing => None,
            Next::Corrupt => panic!("our own producer wrote this"),
        }
    }

    /// Puts any bytes anywhere, as a hostile peer can.
    fn scribble(&mut self, cell: usize, words: [u64; 8]) {
        let cell = std::ptr::from_mut(&mut self.cells[cell]);
        // SAFETY: a cell is 64 bytes, valid for every content, and nobody else looks now.
        unsafe { cell.cast::<[u64; 8]>().write(words) };
    }
}

fn bytes(consumer: &Consumer, at: u32, len: u32) -> Vec<u8> {
    let first = consumer.cells().bytes(at);
    // SAFETY: the consumer has checked that the packet lies inside the ring.
    unsafe { std::slice::from_raw_parts(first.as_ptr(), len as usize) }.to_vec()
}

/// Bytes that depend on the packet's number, and in which every eight look like a published word
/// of an early lap: the worst that data can be.
fn payload(number: u64, len: usize) -> Vec<u8> {
    let word = (number % 8) << 1 | 1 | (number % 57) << LEN_SHIFT;
    word.to_le_bytes().into_iter().cycle().take(len).collect()
}

#[derive(Clone, Debug)]
enum Step {
    Push { head: usize, data: usize },
    Pop(usize),
    GiveBack,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..=56_usize, 0..=32_usize).prop_map(|(head, data)| Step::Push { head, data }),
        2 => (0..=56_usize, 0..=900_usize).prop_map(|(head, data)| Step::Push { head, data }),
        3 => (1..6_usize).prop_map(Step::Pop),
        2 => Just(Step::GiveBack),
    ]
}

proptest! {
    #[test]
    fn behaves_like_a_queue(log in 5..8_u32, steps in prop::collection::vec(step(), 1..400)) {
        let longest = longest_packet(1 << log).min(956);
        let mut ring = Heap::new(1 << log, longest);
        let mut model = VecDeque::new();
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Push { head, data } => {
                    let whole = payload(number as u64, head + data);
                    let (head, data) = whole.split_at(head);
                    let empty = model.is_empty();
                    match ring.push(head, data) {
                        Ok(()) => model.push_back(whole),
                        Err(Refused::TooLong) => prop_assert!(whole.len() > longest as usize),
                        Err(Refused::Full) => prop_assert!(!empty || lags(&ring)),
                        Err(Refused::Broken) => prop_assert!(false, "nobody broke it"),
                    }
                }
                Step::Pop(count) => for _ in 0..count {
                    prop_assert_eq!(ring.consumer.has_next(), !model.is_empty());
                    prop_assert_eq!(ring.pop(), model.pop_front());
                },
                Step::GiveBack => ring.consumer.give_back(),
            }
        }
        while let Some(expected) = model.pop_front() {
            prop_assert_eq!(ring.pop(), Some(expected));
        }
        prop_assert_eq!(ring.pop(), None);
    }

    #[test]
    fn any_content_is_read_inside_the_ring(
        cells in prop::collection::vec(any::<[u64; 8]>(), 64),
        plausible in prop::collection::vec((0..64_usize, 0..3_u64, 0..3_u64, 0..3000_u64), 0..64),
    ) {
        hostile_ring(&cells, &plausible)?;
    }

    #[test]
    fn any_position_of_the_consumer_is_survived(
        positions in prop::collection::vec(prop_oneof![any::<u64>(), 0..200_u64], 1..20),
        len in 0..900_usize,
    ) {
        let mut ring = Heap::new(64, 900);
        for position in positions {
            ring.line.consumed.store(position, Ordering::Relaxed);
            for _ in 0..70 {
                let _refused_or_not = ring.push(&payload(1, 24), &payload(2, len));
            }
        }
    }
}

/// Cells that have been read but not yet given back.
fn lags(ring: &Heap) -> bool {
    ring.consumer.head != ring.consumer.given_back
}

/// A consumer on a ring of 64 cells with these contents stops after bounded work, and never reads
/// outside. The body of the fuzz target `shm_ring`.
fn hostile_ring(
    cells: &[[u64; 8]],
    plausible: &[(usize, u64, u64, u64)],
) -> Result<(), TestCaseError> {
    let mut ring = Heap::new(64, 900);
    for (at, words) in cells.iter().enumerate() {
        ring.scribble(at, *words);
    }
    for &(at, lap, flags, len) in plausible {
        let word = lap << 1 | 1 | len << LEN_SHIFT | flags << FLAGS_SHIFT;
        ring.cells_word(at).store(word, Ordering::Relaxed);
    }
    for _ in 0..1000 {
        match ring.consumer.next() {
            Next::Packet { at, len } => {
                prop_assert!(len <= 900);
                prop_assert!(at + cells_of(len) <= 64);
                let _read = bytes(&ring.consumer, at, len);
            }
            Next::Nothing | Next::Corrupt => break,
        }
        ring.consumer.give_back();
    }
    Ok(())
}

impl Heap {
    fn cells_word(&self, at: usize) -> &AtomicU64 {
        self.consumer.cells.word(u32::try_from(at).unwrap())
    }
}

#[test]
fn a_full_ring_refuses_at_once_and_recovers() {
    let mut ring = Heap::new(64, 900);
    let sent = (0..1000)
        .take_while(|_| ring.push(&[7; 24], &[8; 32]).is_ok())
        .count();
    assert_eq!(sent, 63, "one cell stays free");
    assert_eq!(ring.push(&[7; 24], &[]), Err(Refused::Full));
    while ring.pop().is_some() {}
    assert_eq!(
        ring.push(&[7; 24], &[]),
        Err(Refused::Full),
        "nothing was given back yet"
    );
    ring.consumer.give_back();
    assert_eq!(ring.push(&[7; 24], &[]), Ok(()));
}

#[test]
fn the_longest_packet_always_finds_room_in_an_empty_ring() {
    for before in 0..64 {
        let longest = longest_packet(64);
        let mut ring = Heap::new(64, longest);
        for _ in 0..before {
            assert_eq!(ring.push(&[1], &[]), Ok(()));
            assert_eq!(ring.pop(), Some(vec![1]));
        }
        ring.line.consumed.store(before, Ordering::Relaxed);
        let data = vec![9; longest as usize];
        assert_eq!(ring.push(&[], &data), Ok(()), "after {before} cells");
        assert_eq!(ring.pop(), Some(data));
    }
}

#[test]
fn data_that_looks_like_a_word_is_not_taken_for_a_packet() {
    // Every continuation cell claims to be a packet of the next lap.
    let mut ring = Heap::new(64, 900);
    let word = (3_u64 | 5 << LEN_SHIFT).to_le_bytes();
    let data: Vec<u8> = word.into_iter().cycle().take(600).collect();
    for _ in 0..100 {
        assert_eq!(ring.push(&data[..56], &data), Ok(()));
        assert_eq!(ring.pop().map(|packet| packet.len()), Some(656));
        assert_eq!(ring.pop(), None, "the tail shows a packet that nobody sent");
        ring.consumer.give_back();
        for _ in 0..3 {
            assert_eq!(ring.push(&[1; 24], &[]), Ok(()));
            assert_eq!(ring.pop(), Some(vec![1; 24]));
            assert_eq!(ring.pop(), None, "the tail shows a packet that nobody sent");
        }
    }
}

#[test]
fn a_chain_of_markers_ends() {
    let mut ring = Heap::new(64, 900);
    for at in 0..64 {
        let word = 1 | WRAP;
        ring.cells_word(at).store(word, Ordering::Relaxed);
    }
    assert_eq!(ring.consumer.next(), Next::Corrupt);
}

#[test]
fn an_impossible_position_closes_the_ring_for_good() {
    let mut ring = Heap::new(64, 900);
    for _ in 0..63 {
        ring.push(&[0; 24], &[]).unwrap();
    }
    ring.line.consumed.store(64, Ordering::Relaxed);
    assert_eq!(ring.push(&[0; 24], &[]), Err(Refused::Broken));
    ring.line.consumed.store(10, Ordering::Relaxed);
    assert_eq!(ring.push(&[0; 24], &[]), Err(Refused::Broken));
}

#[test]
fn too_long_is_not_sent() {
    let mut ring = Heap::new(64, 900);
    assert_eq!(ring.push(&[0; 56], &[0; 845]), Err(Refused::TooLong));
    assert_eq!(ring.push(&[0; 56], &[0; 844]), Ok(()));
}
