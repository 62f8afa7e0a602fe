//! Checks that must hold whatever a hostile peer writes into a ring and a doorbell. The property
//! tests here and the fuzz target `shm_ring` share these checks.
//!
//! Built for tests, for fuzzing, and with the feature `check`.

use std::ptr::NonNull;

use super::cells::{Cell, Cells, cells_of};
use super::doorbell::{Doorbell, MAX_BITS};
use super::ring::{At, Consumer, ConsumerLine, Next, Producer, Refused};
use super::sync::Ordering;

/// Cells of the tested ring.
pub(super) const COUNT: u32 = 64;

/// Longest packet of the tested ring, in bytes.
pub(super) const LONGEST: u32 = 900;

/// Longest packet that the loop copies while it takes packets.
const SHORT: u32 = 1080;

/// A ring in ordinary memory, with both of its ends.
pub(super) struct Heap {
    pub(super) producer: Producer,
    pub(super) consumer: Consumer,
    /// From `Box::leak`, as the cells are: both ends have pointers to them, and moving a box would
    /// assert unique access.
    line: NonNull<ConsumerLine>,
    cells: NonNull<[Cell]>,
}

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: they were boxes, and both ends, which no longer read them, go with this value.
        unsafe {
            drop(Box::from_raw(self.line.as_ptr()));
            drop(Box::from_raw(self.cells.as_ptr()));
        }
    }
}

/// Runs the bytes as a program: both ends do their work, and in between a hostile peer writes
/// words, positions, bodies and bits. Panics if an end reads outside the ring or contradicts
/// itself.
pub fn ring(program: &[u8]) {
    let mut ring = Heap::new(COUNT, LONGEST);
    let bell = Doorbell::default();
    let mut rest = Program(program);
    let mut corrupt = false;
    let mut broken = false;
    while let Some(step) = rest.byte() {
        match step % 8 {
            0 | 1 if !corrupt => corrupt = poll(&mut ring, step >> 3),
            2 => ring.consumer.give_back(),
            3 => broken = push(&mut ring, rest.number(2), broken),
            4 => ring
                .cells()
                .word(rest.cell())
                .store(rest.number(8), Ordering::Relaxed),
            5 => {
                // A word as a producer writes it, for this lap or another.
                let word = rest.number(1) << 1 | 1 | rest.number(2) << 32 | rest.number(1) << 48;
                ring.cells()
                    .word(rest.cell())
                    .store(word, Ordering::Relaxed);
            }
            6 => ring
                .line()
                .pretend(rest.number(u32::from(step >> 3).min(8))),
            7 => {
                scribble(&bell, rest.number(2), rest.number(8));
                take(&bell);
            }
            _ => {}
        }
    }
}

/// Polls up to `times` times. Returns whether the ring is corrupt.
fn poll(ring: &mut Heap, times: u8) -> bool {
    for _ in 0..=times {
        take_in_place(ring, times);
        match ring.consumer.next() {
            Next::Packet { at, len } | Next::Reference { at, len } => read(ring, at, len),
            Next::Nothing => return false,
            Next::Corrupt => return true,
        }
    }
    false
}

/// Takes packets like a receiver that copies them in its loop. Other packets stay.
fn take_in_place(ring: &mut Heap, times: u8) {
    let mut packets = Vec::new();
    packets.extend(ring.consumer.take_by_watch(ring.consumer.end_of_run()));
    // SAFETY: as above.
    if let Some(len) = unsafe { ring.consumer.watch().next() } {
        let cells = cells_of(len.min(2 * LONGEST)) as usize;
        let most = usize::from(times);
        let (first, count) = match cells {
            1 => ring.consumer.take_row::<1>(len, most),
            2 => ring.consumer.take_row::<2>(len, most),
            _ => ring.consumer.take_row::<0>(len, most),
        };
        packets.extend((0..count).map(|place| At {
            at: first + place * cells,
            len,
            cells,
        }));
    }
    let run = |_, packet| packets.push(packet);
    ring.consumer.take_run(usize::from(times), SHORT, run);
    packets.extend(ring.consumer.take_long(SHORT, usize::from(times % 16)));
    for At { at, len, cells } in packets {
        assert_eq!(cells, cells_of(len) as usize);
        read(ring, u32::try_from(at).expect("a ring has few cells"), len);
    }
}

/// Reads a packet that the consumer has shown.
fn read(ring: &Heap, at: u32, len: u32) {
    assert!(len <= LONGEST, "the packet is longer than the ring permits");
    assert!(
        at + cells_of(len) <= COUNT,
        "the packet reaches beyond the ring"
    );
    std::hint::black_box(ring.bytes(at, len).iter().fold(0, |sum, byte| sum ^ byte));
}

/// Sends a packet. Returns whether the ring is broken; it must stay so.
fn push(ring: &mut Heap, len: u64, was_broken: bool) -> bool {
    let data = [0xA5; 2 * LONGEST as usize];
    let len = usize::try_from(len).expect("two bytes") % data.len();
    let result = ring.push(&data[..len.min(24)], &data[len.min(24)..len]);
    match result {
        Err(Refused::TooLong) => assert!(len > LONGEST as usize),
        Err(Refused::Broken) => return true,
        // The producer of a broken ring may still send as far as the consumer's last valid position
        // permits.
        Err(Refused::Full) => assert!(!was_broken, "a broken ring is full at most once"),
        Ok(()) => assert!(len <= LONGEST as usize),
    }
    was_broken
}

fn scribble(bell: &Doorbell, at: u64, value: u64) {
    let words = size_of::<Doorbell>() / 8;
    let at = usize::try_from(at).expect("two bytes") % words;
    // SAFETY: a doorbell consists of atomics, the index is inside, and only this thread uses it.
    unsafe {
        std::ptr::from_ref(bell)
            .cast::<u64>()
            .cast_mut()
            .add(at)
            .write_volatile(value)
    };
}

fn take(bell: &Doorbell) {
    let mut last = None;
    bell.take(|bit| {
        assert!(bit < MAX_BITS, "the doorbell has no such bit");
        assert!(last < Some(bit), "a bit was taken twice");
        last = Some(bit);
    });
    let _sleeps = bell.fall_asleep();
    bell.wake_up();
}

impl Heap {
    pub(super) fn new(count: u32, longest: u32) -> Self {
        let cells: Box<[Cell]> = (0..count).map(|_| Cell::default()).collect();
        let cells = NonNull::from(Box::leak(cells));
        let line = NonNull::from(Box::leak(Box::<ConsumerLine>::default()));
        let first = cells.cast::<Cell>();
        // SAFETY: both ends are dropped with the memory, and there is one of each.
        let (producer, consumer) = unsafe {
            (
                Producer::new(Cells::new(first, count), line, longest),
                Consumer::new(Cells::new(first, count), line, longest),
            )
        };
        Self {
            producer,
            consumer,
            line,
            cells,
        }
    }

    pub(super) fn line(&self) -> &ConsumerLine {
        // SAFETY: it lives as long as this value, and only atomics in it change.
        unsafe { self.line.as_ref() }
    }

    pub(super) fn cells(&self) -> &Cells {
        self.consumer.cells()
    }

    pub(super) fn push(&mut self, head: &[u8], data: &[u8]) -> Result<(), Refused> {
        // SAFETY: the data is a slice outside of the ring.
        unsafe { self.producer.push(head, data.as_ptr(), data.len()) }
    }

    /// The bytes of a packet that the consumer has shown.
    pub(super) fn bytes(&self, at: u32, len: u32) -> &[u8] {
        assert!(at as usize + cells_of(len) as usize <= self.cells.len());
        let first = self.cells().bytes(at);
        // SAFETY: the packet lies inside the ring, as was just checked, and nothing writes there
        // now.
        unsafe { std::slice::from_raw_parts(first.as_ptr(), len as usize) }
    }
}

/// The rest of a program. Beyond its end there are zeros.
struct Program<'a>(&'a [u8]);

impl Program<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self, bytes: u32) -> u64 {
        (0..bytes).fold(0, |number, _| {
            number << 8 | u64::from(self.byte().unwrap_or(0))
        })
    }

    fn cell(&mut self) -> u32 {
        u32::from(self.byte().unwrap_or(0)) % COUNT
    }
}
