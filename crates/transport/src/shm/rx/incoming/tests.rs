//! Copies of short packets, including packets that their sender changes at the same time.

use super::super::super::check::Heap;
use super::*;

/// A ring with a packet of this length and these bytes at its first cell.
fn ring(len: usize, byte: u8) -> (Heap, At) {
    let mut ring = Heap::new(64, SHORT);
    ring.push(&[], &vec![byte; len]).expect("there is room");
    let mut packet = None;
    let (count, others) = ring.consumer.take_run(1, SHORT, |_, at| packet = Some(at));
    assert_eq!((count, others), (1, false));
    (ring, packet.expect("it was just sent"))
}

/// Copies the packet as number `index` of a burst.
fn copy(shorts: &mut Shorts, index: usize, (ring, packet): &(Heap, At)) {
    // SAFETY: the ring has found the packet.
    unsafe { shorts.copy(index, ring.cells(), *packet) };
}

#[test]
fn copies_are_packets_of_every_short_length() {
    let mut shorts = Shorts::new();
    for len in 0..=SHORT as usize {
        shorts.begin();
        copy(&mut shorts, 31, &ring(len, 7));
        copy(&mut shorts, 0, &ring(SHORT as usize - len, 8));
        assert_eq!(shorts.packet(31), vec![7; len]);
        assert_eq!(shorts.packet(0), vec![8; SHORT as usize - len]);
    }
}

#[test]
fn a_packet_that_becomes_longer_after_the_look_shows_nothing_of_earlier_ones() {
    let mut shorts = Shorts::new();
    let change = |ring: &Heap, len: u64| {
        let word = ring.cells().word(0);
        word.store(1 | len << 32, Ordering::Relaxed);
    };
    for len in [
        57,
        100,
        SHORT.into(),
        u64::from(SHORT) + 1,
        1 << 16,
        1 << 31,
    ] {
        for lone in [false, true] {
            shorts.begin();
            copy(&mut shorts, 0, &ring(248, 7));
            assert_eq!(shorts.packet(0), [7; 248]);
            let short = ring(20, 8);
            change(&short.0, len);
            match lone {
                false => shorts.begin(),
                true => shorts.begin_lone(),
            };
            copy(&mut shorts, 0, &short);
            assert_eq!(shorts.packet(0), [], "{len}");
        }
        // A packet of several cells keeps the length that it had when the ring looked.
        let long = ring(100, 9);
        change(&long.0, len);
        copy(&mut shorts, 0, &long);
        assert_eq!(shorts.packet(0), [9; 100]);
    }
}
