//! Frames in hand under a kernel that is honest, and one that is not.

use std::sync::Arc;

use super::*;
use crate::ring::Memory;
use crate::umem::{Ledger, MIN_FRAMES, Umem};

/// A hand, the ends of its rings, and the frames.
struct World {
    hand: Hand,
    rx: Consumer<Desc>,
    received: Producer<Desc>,
    fill: Producer<u64>,
    empty: Consumer<u64>,
    umem: Arc<Umem>,
    receiving: Ledger,
}

/// A hand whose rings have `count` entries. The kernel has all frames but the last.
fn world(count: u32) -> World {
    let umem = Umem::new(MIN_FRAMES).unwrap();
    let (receiving, _) = umem.split(1);
    let mut part = receiving.shared();
    for frame in 0..receiving.count() - 1 {
        part.lend(frame).unwrap();
    }
    let (rx, fill) = (
        Memory::anonymous(count).unwrap(),
        Memory::anonymous(count).unwrap(),
    );
    World {
        hand: Hand::new(part),
        rx: Consumer::new(rx.clone()),
        received: Producer::new(rx),
        fill: Producer::new(fill.clone()),
        empty: Consumer::new(fill),
        umem,
        receiving,
    }
}

impl World {
    /// Receives entries, and shows two bytes of each. Returns how many are shown.
    fn show(&mut self, entries: &[Desc]) -> usize {
        for entry in entries {
            assert!(self.received.push(*entry));
        }
        self.received.publish();
        self.rx.available(u32::MAX);
        let before = self.hand.shown();
        // Once more after the end of the ring's memory.
        while self.hand.show_while(&mut self.rx, |bytes| bytes.get(1..3)) > 0 {}
        self.rx.release();
        self.hand.shown() - before
    }

    /// The frames that come back into the fill ring.
    fn lend(&mut self) -> Vec<u64> {
        self.hand.lend(&mut self.fill);
        self.fill.publish();
        self.empty.available(u32::MAX);
        let all = std::iter::from_fn(|| self.empty.pop()).collect();
        self.empty.release();
        all
    }

    /// Frames that the kernel does not have.
    fn kept(&self) -> usize {
        self.receiving.shared().kept().len() - 1
    }

    fn write(&self, addr: u64, bytes: &[u8]) {
        let addr = usize::try_from(addr).unwrap();
        assert!(addr + bytes.len() <= self.umem.bytes());
        // SAFETY: within the region; nothing shows the place.
        unsafe {
            let to = self.umem.base().add(addr);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
    }
}

fn entry(frame: u64, at: u64, len: u32) -> Desc {
    Desc {
        addr: frame * FRAME as u64 + at,
        len,
        options: 0,
    }
}

fn addresses(frames: impl Iterator<Item = u64>) -> Vec<u64> {
    frames.map(|frame| frame * FRAME as u64).collect()
}

#[test]
fn packets_are_shown_and_their_frames_lent_again() {
    let mut world = world(8);
    for round in 0..if cfg!(miri) { 3 } else { 20 } {
        let frames = [round, round + 5, round + 3];
        let entries = frames.map(|frame| entry(frame, 256, 5));
        for (entry, text) in entries.iter().zip([b"alpha", b"bravo", b"chars"]) {
            world.write(entry.addr, text);
        }
        assert_eq!(world.show(&entries), 3);
        let shown = |index| world.hand.bytes(index);
        let wanted = [b"lp", b"ra", b"ha"].map(|it| Some(&it[..]));
        assert_eq!([0, 1, 2].map(shown), wanted);
        assert_eq!(world.hand.bytes(3), None);
        assert_eq!(world.kept(), 3);
        assert_eq!(world.lend(), addresses(frames.into_iter()));
        assert_eq!((world.hand.bytes(0), world.kept()), (None, 0));
    }
}

#[test]
fn an_entry_that_is_not_plain_and_good_stays_in_the_ring() {
    let last = u64::from(MIN_FRAMES / 2 - 1);
    let several = Desc {
        options: Desc::CONTINUES,
        ..entry(1, 0, 9)
    };
    let strange = Desc {
        options: 1 << 31,
        ..entry(1, 0, 9)
    };
    let bad = [
        // Beyond the frames for receiving, and beyond the region.
        entry(last + 1, 0, 9),
        entry(u64::from(MIN_FRAMES), 0, 9),
        entry(u64::MAX / FRAME as u64, 0, 9),
        // Not the kernel's.
        entry(last, 0, 9),
        // Longer than the frame.
        entry(1, 0, 4097),
        entry(1, 4090, 7),
        entry(1, 1, u32::MAX),
        several,
        strange,
        // Without the bytes that are looked for.
        entry(1, 0, 2),
        entry(1, 0, 0),
    ];
    for lie in bad {
        let mut world = world(8);
        assert_eq!(world.show(&[entry(2, 0, 9), lie, entry(3, 0, 9)]), 1);
        assert_eq!(world.rx.peek(0), Some(lie));
        assert_eq!((world.hand.shown(), world.kept()), (1, 1), "{lie:?}");
        // The general way decides about it.
        let _ = world.hand.take(world.rx.pop().unwrap());
        assert_eq!(world.show(&[]), 1, "the next one is good");
    }
}

#[test]
fn a_frame_is_shown_and_lent_once() {
    let mut world = world(8);
    assert_eq!(world.show(&[entry(2, 0, 9), entry(2, 0, 9)]), 1);
    let again = world.rx.pop().unwrap();
    assert_eq!(world.hand.take(again), Err(Bad::NotLent));
    assert_eq!(world.lend(), addresses(2..3));
    assert_eq!(world.lend(), []);
}

#[test]
fn a_burst_shows_no_more_than_it_has_places() {
    let mut world = world(64);
    let most = RX_BURST as u64;
    let entries: Vec<_> = (0..most + 4).map(|frame| entry(frame, 0, 9)).collect();
    assert_eq!(world.show(&entries), RX_BURST);
    assert_eq!(world.show(&[]), 0);
    assert_eq!(world.lend(), addresses(0..most));
    assert_eq!(world.show(&[]), 4);
    assert_eq!(world.lend(), addresses(most..most + 4));
}

#[test]
fn frames_for_which_the_ring_has_no_room_are_lent_later() {
    let mut world = world(4);
    assert_eq!(world.show(&[0, 1, 2].map(|frame| entry(frame, 0, 9))), 3);
    // Two more, which are not shown, and a place without a frame between them.
    for frame in [3, 4] {
        world.hand.take(entry(frame, 0, 9)).unwrap();
        world.hand.show_nothing();
    }
    assert_eq!((world.hand.shown(), world.kept()), (5, 5));
    assert_eq!(world.hand.bytes(4), Some(&[][..]));
    let first = world.lend();
    assert_eq!(first, addresses(0..4));
    assert_eq!(world.kept(), 1);
    assert_eq!(world.lend(), addresses(4..5));
    assert_eq!(world.kept(), 0);
}

#[test]
fn hidden_packets_keep_their_frames_until_they_are_lent() {
    let mut world = world(8);
    assert_eq!(world.show(&[entry(6, 0, 9), entry(7, 0, 9)]), 2);
    let piece = world.hand.take(entry(8, 16, 9)).unwrap();
    world.hand.show(piece);
    world.hand.hide();
    assert_eq!((world.hand.shown(), world.hand.bytes(0)), (0, None));
    assert_eq!(world.kept(), 3);
    let mut lent = world.lend();
    lent.sort_unstable();
    assert_eq!(lent, addresses(6..9));
}
