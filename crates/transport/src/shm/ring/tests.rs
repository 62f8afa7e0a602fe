//! The ring, compared step by step with a queue; words that a hostile other side can write; and
//! words that must not be taken for packets.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::super::cells::CELL;
use super::super::check::{self, Heap};
use super::super::staged::MOST_LINES;
use super::row::{Row, push_lone, push_row};
use super::*;

/// A short packet as it is staged; the bytes after it belong to no packet.
fn in_cell(packet: &[u8]) -> ([u8; ONE_CELL], usize) {
    let mut bytes = [0xEE; ONE_CELL];
    bytes[..packet.len()].copy_from_slice(packet);
    (bytes, packet.len())
}

impl Heap {
    pub(super) fn pop(&mut self) -> Option<Vec<u8>> {
        match self.consumer.next() {
            Next::Packet { at, len } => Some(self.bytes(at, len).to_vec()),
            Next::Nothing => None,
            Next::Reference { .. } | Next::Corrupt => panic!("the ring is corrupt"),
        }
    }

    /// Takes a packet of more than `short` bytes like a receiver with `room` lines.
    fn pop_long(&mut self, short: u32, room: usize) -> Option<Vec<u8>> {
        let packet = self.consumer.take_long(short, room)?;
        assert!(packet.len > short && packet.cells <= room);
        Some(self.packet(packet))
    }

    /// Takes a packet if it is the only one.
    fn pop_lone(&mut self) -> Option<Vec<u8>> {
        let packet = self.consumer.take_by_watch(self.consumer.end_of_run())?;
        assert!(!self.consumer.has_next());
        Some(self.packet(packet))
    }

    fn packet(&self, At { at, len, cells }: At) -> Vec<u8> {
        assert_eq!(cells, cells_of(len) as usize);
        let at = u32::try_from(at).expect("a ring has few cells");
        self.bytes(at, len).to_vec()
    }

    /// Takes up to `most` packets that have the length of the first.
    fn pop_row(&mut self, most: usize) -> Vec<Vec<u8>> {
        // SAFETY: the cells are this test's.
        let Some(len) = (unsafe { self.consumer.watch().next() }) else {
            return Vec::new();
        };
        // A flag makes the length longer than a ring.
        if len > 0xFFFF {
            return Vec::new();
        }
        let cells = cells_of(len) as usize;
        let (first, count) = match cells {
            ..=1 => self.consumer.take_row::<1>(len, most),
            2 => self.consumer.take_row::<2>(len, most),
            _ => self.consumer.take_row::<0>(len, most),
        };
        let at = |place| first + place * cells;
        let packets = (0..count).map(|place| {
            self.packet(At {
                at: at(place),
                len,
                cells,
            })
        });
        packets.collect()
    }

    /// Takes up to `most` packets of up to `longest` bytes.
    fn pop_run(&mut self, most: usize, longest: u32) -> (Vec<Vec<u8>>, bool) {
        let mut places = Vec::new();
        let (count, others) = self.consumer.take_run(most, longest, |place, packet| {
            assert_eq!(place, places.len());
            places.push(packet);
        });
        assert_eq!(count, places.len());
        let packets = places.into_iter().map(|packet| self.packet(packet));
        (packets.collect(), others)
    }

    /// Sends as many of the first packets as fit, together: with `push_run` if `short` is set and
    /// each packet fits into a cell, and as staged packets otherwise, in a row if all have one
    /// length.
    fn push_run(&mut self, packets: &[Vec<u8>], short: bool) -> usize {
        let short = short && packets.iter().all(|packet| packet.len() <= ONE_CELL);
        let row = Row::new(packets);
        let (count, sum) = match (short, row.packets.as_slice()) {
            (true, _) => {
                let cells: Vec<_> = packets.iter().map(|packet| in_cell(packet)).collect();
                self.producer.push_run(&cells, |(bytes, len)| (bytes, *len))
            }
            (false, [packet]) if push_lone(&mut self.producer, &row, *packet) => {
                (1, packet.1 as u64)
            }
            (false, [(_, len), ..]) if row.is_alike() => {
                let count = push_row(&mut self.producer, &row);
                (count, (count * len) as u64)
            }
            _ => self.producer.push_staged(&row, &row.packets),
        };
        let bytes: usize = packets[..count].iter().map(Vec::len).sum();
        assert_eq!(sum, bytes as u64);
        count
    }

    /// Whether some cells have been read but not yet given back.
    fn lags(&self) -> bool {
        self.consumer.head != self.consumer.given_back()
    }
}

/// Bytes that depend on the packet's number. Every eight of them look like a published word of an
/// early lap, which is the worst case.
fn payload(number: u64, len: usize) -> Vec<u8> {
    let word = (number % 8) << 1 | 1 | (number % 57) << LEN_SHIFT;
    word.to_le_bytes().into_iter().cycle().take(len).collect()
}

#[derive(Clone, Debug)]
enum Step {
    Push { head: usize, data: usize },
    PushRun(Vec<usize>, bool),
    Pop(usize),
    PopRow(usize),
    PopRun(usize, u32),
    PopLong(u32, usize),
    PopLone,
    GiveBack,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..=56_usize, 0..=32_usize).prop_map(|(head, data)| Step::Push { head, data }),
        2 => (0..=56_usize, 0..=900_usize).prop_map(|(head, data)| Step::Push { head, data }),
        2 => run(prop_oneof![2 => Just(56), 1 => 0..=56_usize], 40),
        2 => run(prop_oneof![Just(56), 57..=120_usize, 57..=200_usize, 0..=1000_usize], 20),
        2 => alike(prop_oneof![Just(56), 0..=56_usize, 57..=120_usize, 57..=1000_usize], 20),
        3 => (1..6_usize).prop_map(Step::Pop),
        3 => (1..40_usize).prop_map(Step::PopRow),
        3 => (1..40_usize, prop_oneof![Just(56), Just(1080), Just(2000)])
            .prop_map(|(most, longest)| Step::PopRun(most, longest)),
        3 => (prop_oneof![Just(56_u32), Just(248), Just(1080)], 0..16_usize)
            .prop_map(|(short, room)| Step::PopLong(short, room)),
        2 => Just(Step::PopLone),
        2 => Just(Step::GiveBack),
    ]
}

fn run(len: impl Strategy<Value = usize>, most: usize) -> impl Strategy<Value = Step> {
    let lens = prop::collection::vec(len, 1..most);
    (lens, any::<bool>()).prop_map(|(lens, short)| Step::PushRun(lens, short))
}

fn alike(len: impl Strategy<Value = usize>, most: usize) -> impl Strategy<Value = Step> {
    (len, 1..most).prop_map(|(len, count)| Step::PushRun(vec![len; count], false))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

    #[test]
    fn the_ring_behaves_like_a_queue(
        log in 5..8_u32,
        steps in prop::collection::vec(step(), 1..400),
    ) {
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
                        Err(Refused::Full) => prop_assert!(!empty || ring.lags()),
                        Err(Refused::Broken) => prop_assert!(false, "the ring is not broken"),
                    }
                }
                Step::PushRun(lens, short) => {
                    let run: Vec<_> = lens.iter().map(|len| payload(number as u64, *len)).collect();
                    let empty = model.is_empty();
                    let sent = ring.push_run(&run, short);
                    // A run sends nothing only if the ring may lack room even for a single packet,
                    // or if the run's first packet is too long for the ring or for the cells before
                    // the ring's end.
                    let long = lens[0] > ONE_CELL;
                    prop_assert!(sent > 0 || long || !empty || ring.lags());
                    model.extend(run.into_iter().take(sent));
                    prop_assert_eq!(ring.consumer.has_next(), !model.is_empty());
                }
                Step::PopRow(most) => {
                    let row = ring.pop_row(most);
                    prop_assert!(row.len() <= most);
                    for packet in row {
                        prop_assert_eq!(Some(packet), model.pop_front());
                    }
                }
                Step::PopRun(most, longest) => {
                    let (run, others) = ring.pop_run(most, longest);
                    prop_assert!(run.len() <= most);
                    for packet in run {
                        prop_assert!(packet.len() <= longest as usize);
                        prop_assert_eq!(Some(packet), model.pop_front());
                    }
                    prop_assert!(!others || !model.is_empty());
                }
                Step::PopLong(short, room) => if let Some(packet) = ring.pop_long(short, room) {
                    prop_assert_eq!(Some(packet), model.pop_front());
                },
                Step::PopLone => if let Some(packet) = ring.pop_lone() {
                    prop_assert_eq!(Some(packet), model.pop_front());
                    prop_assert!(model.is_empty());
                },
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
    fn any_content_is_survived(program in prop::collection::vec(any::<u8>(), 0..2000)) {
        check::ring(&program);
    }

    #[test]
    fn any_position_of_the_consumer_is_survived(
        positions in prop::collection::vec(prop_oneof![any::<u64>(), 0..200_u64], 1..20),
        len in 0..900_usize,
    ) {
        let mut ring = Heap::new(64, 900);
        for position in positions {
            ring.line().pretend(position);
            for _ in 0..70 {
                let _refused_or_not = ring.push(&payload(1, 24), &payload(2, len));
            }
        }
    }
}

#[test]
fn a_packet_whose_message_has_the_wrong_length_leaves_with_a_header_of_zeros() {
    let mut ring = Heap::new(64, 900);
    let mut lines = [[0xEE; CELL]; MOST_LINES];
    assert_eq!(ring.producer.push_messages(&lines[..7], 400, |_| &[]), 1);
    lines[1] = [7; CELL];
    assert!(ring.producer.push_lone_message(&lines, 400, || &[7; 375]));
    for _ in 0..2 {
        let packet = ring.pop().expect("it was sent");
        assert_eq!((packet.len(), &packet[..24]), (400, [0; 24].as_slice()));
    }
    assert_eq!(ring.pop(), None);
}

#[test]
fn a_packet_that_would_pass_the_end_of_the_ring_or_is_too_long_is_not_taken() {
    // The valid packets end before the ring's last cell, where the watch takes no packet.
    let two = [(61, 100, true), (63, 100, false), (61, 110, false)];
    let three = [(60, 140, true), (62, 140, false), (60, 150, false)];
    for (at, len, is_taken) in two.into_iter().chain(three) {
        let mut ring = Heap::new(64, if len > 120 { 145 } else { 105 });
        for _ in 0..at {
            assert_eq!(ring.push(&[1], &[]), Ok(()));
            assert_eq!(ring.pop(), Some(vec![1]));
        }
        ring.consumer.give_back();
        let word = sequence(ring.cells(), at) | len << LEN_SHIFT;
        let cell = u32::try_from(at).expect("a ring has few cells");
        ring.cells().word(cell).store(word, Ordering::Relaxed);
        if !is_taken {
            assert!(ring.pop_row(8).is_empty());
        }
        assert_eq!(ring.pop_lone().is_some(), is_taken);
        assert_eq!(ring.consumer.next() == Next::Corrupt, !is_taken);
    }
}

#[test]
fn the_second_cell_of_a_lone_packet_is_not_taken_for_a_packet() {
    let mut ring = Heap::new(64, 900);
    for round in 0..if cfg!(miri) { 40 } else { 200 } {
        // Every cell claims to be a packet of the next lap.
        let lap = ring.cells().lap(ring.producer.tail) + 1;
        let word = (lap << 1 | 1) | 5 << LEN_SHIFT;
        let data: Vec<u8> = word.to_le_bytes().into_iter().cycle().take(120).collect();
        // There may be no room before the ring's end; then the packet begins at the first cell, and
        // only `push` can send it.
        if ring.push_run(std::slice::from_ref(&data), false) == 0 {
            assert_eq!(ring.push(&data[..24], &data[24..]), Ok(()));
        }
        assert_eq!(ring.pop(), Some(data));
        // Shifts the packets of each lap, so that some begin where an earlier lap had second cells.
        for _ in 0..round % 2 {
            assert_eq!(ring.push(&[1], &[]), Ok(()));
            assert_eq!(ring.pop(), Some(vec![1]));
        }
        assert_eq!(
            ring.pop(),
            None,
            "the tail shows a packet that was not sent"
        );
        ring.consumer.give_back();
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
    for before in (0..64).step_by(if cfg!(miri) { 9 } else { 1 }) {
        let longest = longest_packet(64);
        let mut ring = Heap::new(64, longest);
        for _ in 0..before {
            assert_eq!(ring.push(&[1], &[]), Ok(()));
            assert_eq!(ring.pop(), Some(vec![1]));
        }
        ring.line().pretend(before);
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
        assert_eq!(
            ring.pop(),
            None,
            "the tail shows a packet that was never sent"
        );
        ring.consumer.give_back();
        for _ in 0..3 {
            assert_eq!(ring.push(&[1; 24], &[]), Ok(()));
            assert_eq!(ring.pop(), Some(vec![1; 24]));
            assert_eq!(
                ring.pop(),
                None,
                "the tail shows a packet that was never sent"
            );
        }
    }
}

#[test]
fn a_run_over_dirty_cells_leaves_nothing_that_looks_like_a_packet() {
    // Every continuation cell claims to be a packet of a coming lap. Miri would take minutes for
    // the full number of laps and rounds.
    let (laps, rounds) = if cfg!(miri) { (2_u64, 20) } else { (6, 200) };
    for lap in 1..laps {
        let mut ring = Heap::new(64, 900);
        let word = (lap << 1 | 1 | 5 << LEN_SHIFT).to_le_bytes();
        let data: Vec<u8> = word.into_iter().cycle().take(600).collect();
        for round in 0..rounds {
            if round % 7 == 0 {
                assert_eq!(ring.push(&data[..56], &data), Ok(()));
                assert_eq!(ring.pop().map(|packet| packet.len()), Some(656));
            }
            ring.consumer.give_back();
            let run = vec![vec![1; 56]; round % 9];
            let sent = ring.push_run(&run, round % 2 == 0);
            assert_eq!(ring.pop_run(9, 56), (run[..sent].to_vec(), false));
            assert_eq!(
                ring.pop(),
                None,
                "the tail shows a packet that was never sent"
            );
        }
    }
}

#[test]
fn a_run_ends_at_the_last_cell_and_goes_on_at_the_first() {
    let mut ring = Heap::new(64, 900);
    let packets: Vec<_> = (0..63).map(|number| vec![number; 56]).collect();
    assert_eq!(ring.push_run(&packets[..40], true), 40);
    assert_eq!(ring.pop_run(64, 56).0, packets[..40]);
    ring.consumer.give_back();
    assert_eq!(ring.push_run(&packets, true), 24);
    assert_eq!(
        ring.push_run(&packets[24..], true),
        39,
        "one cell stays free"
    );
    assert_eq!(ring.push_run(&packets, true), 0, "the ring is full");
    assert_eq!(ring.pop_run(64, 56).0, packets[..24]);
    assert_eq!(ring.pop_run(64, 56).0, packets[24..]);
}

#[test]
fn a_packet_that_reaches_beyond_the_ring_is_not_shown() {
    let mut ring = Heap::new(64, 900);
    for at in 0..64 {
        let len = if at == 63 { 100 } else { 0 };
        let word = 1 | len << LEN_SHIFT;
        ring.cells().word(at).store(word, Ordering::Relaxed);
    }
    assert_eq!(ring.pop_run(64, 248), (vec![vec![]; 63], true));
    assert_eq!(ring.pop_long(56, 64), None);
    assert_eq!(ring.consumer.next(), Next::Corrupt);
}

#[test]
fn a_chain_of_markers_ends() {
    let mut ring = Heap::new(64, 900);
    for at in 0..64 {
        let word = 1 | WRAP;
        ring.cells().word(at).store(word, Ordering::Relaxed);
    }
    assert_eq!(ring.consumer.next(), Next::Corrupt);
}

#[test]
fn an_impossible_position_closes_the_ring_for_good() {
    let mut ring = Heap::new(64, 900);
    for _ in 0..63 {
        ring.push(&[0; 24], &[]).unwrap();
    }
    ring.line().pretend(64);
    assert_eq!(ring.push(&[0; 24], &[]), Err(Refused::Broken));
    ring.line().pretend(10);
    assert_eq!(ring.push(&[0; 24], &[]), Err(Refused::Broken));
}

#[test]
fn a_packet_that_is_too_long_is_not_sent() {
    let mut ring = Heap::new(64, 900);
    assert_eq!(ring.push(&[0; 56], &[0; 845]), Err(Refused::TooLong));
    assert_eq!(ring.push(&[0; 56], &[0; 844]), Ok(()));
}

#[test]
fn cells_are_given_back_by_eighths_or_by_a_given_number() {
    let mut ring = Heap::new(64, longest_packet(64));
    let mut lag_after = |part, packets| {
        ring.consumer.set_part(part);
        for _ in 0..packets {
            ring.push(b"x", b"").unwrap();
            ring.pop().unwrap();
            ring.consumer.give_back();
        }
        ring.consumer.head - ring.consumer.given_back()
    };
    assert_eq!(lag_after(None, 7), 7);
    assert_eq!(lag_after(None, 1), 0);
    assert_eq!(lag_after(Some(1), 1), 0);
    assert_eq!(lag_after(Some(3), 2), 2);
    // The number is clamped to the range from 1 to the default.
    assert_eq!(lag_after(Some(1000), 5), 7);
    assert_eq!(lag_after(Some(0), 1), 0);
}
