//! Copies of short packets, including packets that their sender changes at the same time.

use proptest::prelude::*;

use super::super::super::check::Heap;
use super::super::super::ring::Next;
use super::*;

/// A ring with packets of these lengths. The bytes of each are its number.
fn ring(lens: &[usize]) -> Heap {
    let mut ring = Heap::new(1024, SHORT);
    for (byte, len) in (0..).zip(lens) {
        ring.push(&[], &vec![byte; *len]).expect("there is room");
    }
    ring
}

/// The frames of a burst with this many packets: taken by rows, and by their numbers.
fn frames(shorts: &Shorts, packets: usize) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while frames.len() < packets {
        // SAFETY: the burst has this packet.
        let row = unsafe { shorts.frames(frames.len()) };
        assert_eq!(row.size_hint().0, row.len());
        frames.extend(row.map(<[u8]>::to_vec));
    }
    for (index, frame) in frames.iter().enumerate() {
        // SAFETY: as above.
        let alone = unsafe { shorts.frames(index) }.next();
        assert_eq!(alone, Some(frame.as_slice()));
    }
    frames
}

fn expected(lens: &[usize]) -> Vec<Vec<u8>> {
    let packets = (0..).zip(lens);
    packets.map(|(byte, len)| vec![byte; *len]).collect()
}

/// Takes packets of these lengths as one burst.
fn take(shorts: &mut Shorts, lens: &[usize]) -> Vec<Vec<u8>> {
    let mut ring = ring(lens);
    let took = shorts.take(&mut ring.consumer);
    let bytes: usize = lens.iter().sum();
    assert_eq!((took.packets, took.others), (lens.len(), false));
    assert_eq!(took.bytes, bytes as u64);
    assert_eq!(ring.consumer.next(), Next::Nothing);
    frames(shorts, took.packets)
}

/// Takes a packet of this length as a burst of its own, after `change`.
fn take_lone(shorts: &mut Shorts, len: usize, change: impl FnOnce(&Heap)) -> Vec<u8> {
    let mut ring = ring(&[len]);
    let cell = ring.consumer.watch().cell();
    let packet = ring
        .consumer
        .take_by_watch(ring.consumer.end_of_run())
        .expect("the packet is alone");
    change(&ring);
    let (seen, cells) = (packet.len, packet.cells);
    // SAFETY: the ring has found the packet.
    unsafe {
        match seen {
            ..=ONE => shorts.take_one(cell, seen),
            AFTER_ONE..=TWO => shorts.take_several::<2>(cell, seen, cells),
            _ => shorts.take_several::<0>(cell, seen, cells),
        }
    }
    assert_eq!(frames(shorts, 1), [shorts.first()]);
    shorts.first().to_vec()
}

#[test]
fn copies_are_packets_of_every_short_length() {
    let mut shorts = Shorts::new();
    // Miri takes a second for a few lengths.
    for len in (0..=SHORT as usize).step_by(if cfg!(miri) { 97 } else { 1 }) {
        let lens = [len, len, SHORT as usize - len, len];
        assert_eq!(take(&mut shorts, &lens), expected(&lens));
        assert_eq!(take_lone(&mut shorts, len, |_| {}), vec![0; len]);
    }
}

#[test]
fn a_burst_has_room_for_the_longest_packets() {
    let (mut shorts, lens) = (Shorts::new(), [SHORT as usize; RX_BURST]);
    assert_eq!(take(&mut shorts, &lens), expected(&lens));
    let mut ring = ring(&[8; RX_BURST + 1]);
    let took = shorts.take(&mut ring.consumer);
    assert_eq!((took.packets, took.others), (RX_BURST, false));
    assert_eq!(shorts.take(&mut ring.consumer).packets, 1);
}

#[test]
fn a_packet_that_becomes_longer_after_the_look_shows_nothing_of_earlier_ones() {
    let mut shorts = Shorts::new();
    for len in [
        57,
        100,
        SHORT.into(),
        u64::from(SHORT) + 1,
        1 << 16,
        1 << 31,
    ] {
        let longer = |ring: &Heap| ring.cells().word(0).store(1 | len << 32, Ordering::Relaxed);
        take(&mut shorts, &[1000; RX_BURST]);
        for before in [20, 100, 248] {
            assert_eq!(take_lone(&mut shorts, before, longer), vec![0; before]);
        }
    }
}

#[test]
fn packets_in_no_row_lie_after_those_in_rows() {
    let mut shorts = Shorts::new();
    let mut ring = ring(&[1000, 1000, 40, 1000]);
    let mut places = Vec::new();
    let row = shorts.take(&mut ring.consumer);
    assert_eq!(row.packets, 4);
    let mut others = self::ring(&[7, 900, 56]);
    let cells = *others.cells();
    others.consumer.take_run(RX_BURST, SHORT, |place, packet| {
        // SAFETY: the ring has found the packet.
        let bytes = unsafe { shorts.copy(row.packets + place, &cells, packet) };
        places.push((bytes, packet.len as usize));
    });
    for ((bytes, len), expected) in places.into_iter().zip(expected(&[7, 900, 56])) {
        // SAFETY: the copy lies in `shorts`.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.as_ptr(), len) };
        assert_eq!(bytes, expected);
    }
    assert_eq!(frames(&shorts, 4), expected(&[1000, 1000, 40, 1000]));
}

#[test]
fn where_lengths_change_each_packet_is_a_row_also_across_the_end_of_the_ring() {
    let (mut shorts, mut ring) = (Shorts::new(), ring(&[8; 3]));
    assert_eq!(shorts.take(&mut ring.consumer).packets, 3);
    // These packets take four cells. So some burst has one cell before the ring's end, and three
    // after it.
    let lens = [8, 100, 20];
    for burst in 0..300 {
        for (byte, len) in (0..).zip(lens) {
            ring.push(&[], &vec![byte; len]).expect("there is room");
        }
        ring.consumer.give_back();
        let took = shorts.take(&mut ring.consumer);
        assert_eq!(took.packets, lens.len());
        assert_eq!(frames(&shorts, lens.len()), expected(&lens));
        assert_eq!(shorts.is_singly(), burst > 0);
    }
    let alike = [30; 5];
    for rows_of_one in [true, false] {
        assert_eq!(take(&mut shorts, &alike), expected(&alike));
        assert_eq!(shorts.is_singly(), rows_of_one);
    }
}

#[test]
fn a_long_packet_after_short_ones_is_seen() {
    let mut shorts = Shorts::new();
    let lens = [8, 100, 20];
    for is_singly in [false, true] {
        let mut ring = Heap::new(1024, 2 * SHORT);
        for len in lens.into_iter().chain([SHORT as usize + 1]) {
            ring.push(&[], &vec![7; len]).expect("there is room");
        }
        let took = shorts.take(&mut ring.consumer);
        assert_eq!((took.packets, took.others), (lens.len(), true));
        assert_eq!(shorts.is_singly(), is_singly);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 256 }))]

    #[test]
    fn a_burst_has_the_packets_that_were_sent(
        rows in prop::collection::vec((1..8_usize, prop_oneof![0..60_usize, 0..1080_usize]), 1..12),
    ) {
        let rows = rows.into_iter().flat_map(|(count, len)| vec![len; count]);
        let lens: Vec<_> = rows.take(RX_BURST).collect();
        let mut shorts = Shorts::new();
        for _ in 0..3 {
            prop_assert_eq!(take(&mut shorts, &lens), expected(&lens));
        }
    }
}
