//! The rings of two endpoints of a queue, and the kernel that plays their other ends: honestly, or
//! as a hostile one that writes any entry and any position.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use dunlin_packet::check::{homes, peer_of};
use dunlin_packet::{Header, Home, parse};

use crate::device::{Device, Kicked, Statistics};
use crate::receive::arrivals::{Arrivals, fill};
use crate::ring::{Consumer, Desc, Memory, Producer, RingEntry};
use crate::shared::{SharedRings, Shares};
use crate::transmit::frames::{Frames, PIECES};
use crate::umem::{FRAME, Ledger, MIN_FRAMES, Umem};

/// Endpoints of the queue.
pub(super) const SIDES: usize = 2;

/// Bytes that the kernel leaves free in front of a received packet.
const HEADROOM: u64 = 256;

/// Frames of the half for receiving, and of the half for sending.
const HALF: u32 = MIN_FRAMES / 2;

/// A device whose answer to a kick is set.
#[derive(Debug, Default)]
pub(super) struct Answering(AtomicU8);

/// One endpoint, and the rings that are its own.
pub(super) struct Side {
    pub(super) arrivals: Arrivals,
    /// `None` only while another value takes its place.
    pub(super) frames: Option<Frames>,
    pub(super) rx: Memory<Desc>,
    pub(super) tx: Memory<Desc>,
    pub(super) device: Arc<Answering>,
    /// Where the unchecked entries begin.
    checked: u32,
    /// Where the kernel reads next.
    pub(super) sent: u32,
}

/// The queue.
pub(super) struct Queue {
    pub(super) sides: [Side; SIDES],
    umem: Arc<Umem>,
    receiving: Ledger,
    sending: Vec<Ledger>,
    shared: Arc<SharedRings>,
    pub(super) fill: Memory<u64>,
    pub(super) completion: Memory<u64>,
    was_broken: [bool; 2],
    /// Whether the kernel gave back only frames with which it was done.
    is_honest: bool,
    /// The receiver of all datagrams, and their headers.
    to: Home,
    pub(super) header: Header,
}

/// The memory of a ring, for both of its sides.
fn ring<E: RingEntry>(count: u32) -> Memory<E> {
    Memory::anonymous(count).expect("memory for a ring")
}

impl Queue {
    pub(super) fn new() -> Self {
        let umem = Umem::new(MIN_FRAMES).expect("memory for a region");
        let (receiving, sending) = umem.split(2);
        let (empty, completion) = (ring(HALF), ring(HALF));
        let share = sending[0].count();
        let shape = Shares {
            start: sending[0].start(),
            bytes: u64::from(share) * FRAME as u64,
            count: SIDES,
            frames: share as usize,
        };
        let shared = Arc::new(SharedRings::new(
            Producer::new(empty.clone()),
            Consumer::new(completion.clone()),
            shape,
        ));
        fill(&receiving, &shared, 0..HALF);
        let side = |number: usize| {
            let (rx, tx) = (ring(share), ring(share));
            let device = Arc::new(Answering::default());
            let (part, reader) = (receiving.shared(), Consumer::new(rx.clone()));
            let supply = sending[number].own();
            let writer = Producer::new(tx.clone());
            Side {
                arrivals: Arrivals::new(part, reader, shared.clone(), device.clone()),
                frames: Some(Frames::new(
                    supply,
                    number,
                    writer,
                    shared.clone(),
                    device.clone(),
                )),
                rx,
                tx,
                device,
                checked: 0,
                sent: 0,
            }
        };
        let to = homes()[0];
        let from = Home {
            address: peer_of(&to),
            ..to
        };
        Self {
            sides: [side(0), side(1)],
            receiving: receiving.clone(),
            shared: shared.clone(),
            umem,
            sending,
            fill: empty,
            completion,
            was_broken: [false; 2],
            is_honest: true,
            to,
            header: Header::new(&from, to.address, to.mac),
        }
    }

    /// Notes that from now on the kernel may give back a frame before it has sent it. The endpoint
    /// may then use the frame again, so no check expects a whole datagram in a frame for sending.
    pub(super) fn on_lie(&mut self) {
        self.is_honest = false;
    }

    /// Writes `addr` as the kernel to a place of the ring of an endpoint, and ends its sending
    /// half. Then a new sending half begins, with the same share of the frames.
    pub(super) fn replace(&mut self, number: usize, at: u32, addr: u64) {
        let side = &mut self.sides[number];
        let place = at % side.tx.capacity();
        side.tx.put(
            place,
            Desc {
                addr,
                len: 60,
                options: 0,
            },
        );
        // Otherwise dropping the frames would wait for the kernel.
        side.device.answer(0);
        side.frames = None;
        // A new endpoint has a new ring.
        side.tx = ring(side.tx.capacity());
        (side.checked, side.sent) = (0, 0);
        side.frames = Some(Frames::new(
            self.sending[number].own(),
            number,
            Producer::new(side.tx.clone()),
            self.shared.clone(),
            side.device.clone(),
        ));
    }

    /// Receives a packet in pieces, as an honest kernel: into frames of the fill ring.
    pub(super) fn deliver(&self, number: usize, packet: &[u8], piece: usize) {
        let rx = &self.sides[number].rx;
        let (mut from, mut to) = (self.fill.consumed(), rx.produced());
        let count = packet.len().div_ceil(piece);
        for (index, bytes) in packet.chunks(piece).enumerate() {
            let is_full = to.wrapping_sub(rx.consumed()) >= rx.capacity();
            if from == self.fill.produced() || is_full {
                return;
            }
            let frame = self.fill.entry(from);
            // A hostile step before may have changed the entry; the kernel checks it, too.
            if frame < u64::from(MIN_FRAMES) * FRAME as u64 {
                let addr = frame - frame % FRAME as u64 + HEADROOM;
                self.umem.copy_in(addr, bytes);
                let desc = Desc {
                    addr,
                    len: u32::try_from(bytes.len()).expect("a piece"),
                    options: u32::from(index + 1 < count),
                };
                rx.put(to, desc);
                to = to.wrapping_add(1);
            }
            from = from.wrapping_add(1);
        }
        self.fill.consume(from);
        rx.produce(to);
    }

    /// Takes up to `most` entries of a transmit ring and completes their frames, as an honest
    /// kernel, or in reverse order.
    pub(super) fn complete(&mut self, number: usize, most: u32, reverse: bool) {
        let side = &mut self.sides[number];
        let waiting = side.tx.produced().wrapping_sub(side.sent).min(most);
        let room = self.completion.capacity();
        let at = self.completion.produced();
        for index in 0..waiting.min(room) {
            let index = if reverse { waiting - 1 - index } else { index };
            let desc = side.tx.entry(side.sent.wrapping_add(index));
            let place = if reverse { waiting - 1 - index } else { index };
            self.completion.put(at.wrapping_add(place), desc.addr);
        }
        side.sent = side.sent.wrapping_add(waiting);
        side.tx.consume(side.sent);
        self.completion.produce(at.wrapping_add(waiting));
    }

    /// Writes bytes to any place of the region. The kernel may do so with frames that it has. In
    /// another frame, a reader sees other bytes than before, and nothing else changes.
    pub(super) fn scribble(&self, frame: u64, bytes: &[u8]) {
        let frame = frame % u64::from(HALF);
        self.umem.copy_in(frame * FRAME as u64 + HEADROOM, bytes);
    }

    /// A frame with this payload for the endpoints.
    pub(super) fn frame(&self, payload: &[u8]) -> Vec<u8> {
        let from = Home {
            address: peer_of(&self.to),
            ..self.to
        };
        dunlin_packet::check::written(&from, &self.to, payload)
    }

    /// Checks everything that must hold after any step.
    pub(super) fn check(&mut self) {
        let mut held = Vec::new();
        for side in &self.sides {
            self.check_shown(&side.arrivals);
            held.extend(side.arrivals.held());
            let frames = side.frames.as_ref().expect("it is there between steps");
            frames.check();
        }
        held.sort_unstable();
        let kept = self.receiving.shared().kept();
        assert_eq!(held, kept, "a frame is an endpoint's or the kernel's");
        let broken = self.shared.broken();
        for (was, is) in self.was_broken.into_iter().zip(broken) {
            assert!(is || !was, "a broken ring stays broken");
        }
        self.was_broken = broken;
        (0..SIDES).for_each(|number| self.check_sent(number));
    }

    /// Checks that all that an endpoint shows lies in a frame for receiving.
    fn check_shown(&self, arrivals: &Arrivals) {
        let base = self.umem.base().addr();
        for index in 0..arrivals.shown() {
            let bytes = arrivals.shown_bytes(index).expect("it is shown");
            if bytes.is_empty() {
                continue;
            }
            let start = bytes.as_ptr().addr().wrapping_sub(base);
            let frame = start / FRAME;
            assert!(frame < HALF as usize, "outside of the half");
            assert!(start % FRAME + bytes.len() <= FRAME, "beyond its frame");
            std::hint::black_box(bytes.iter().fold(0, |sum, byte| sum ^ byte));
        }
    }

    /// Checks the entries that an endpoint has published since the last time.
    fn check_sent(&mut self, number: usize) {
        let (start, bytes) = {
            let share = &self.sending[number];
            (share.start(), u64::from(share.count()) * FRAME as u64)
        };
        let side = &mut self.sides[number];
        let end = side.tx.produced();
        let (mut pieces, mut sent) = (0, Vec::new());
        while side.checked != end {
            let desc = side.tx.entry(side.checked);
            let is_own = (start..start + bytes).contains(&desc.addr);
            assert!(is_own, "a frame of another endpoint");
            assert_eq!(desc.addr % FRAME as u64, 0, "not the beginning of a frame");
            assert!((1..=FRAME).contains(&(desc.len as usize)), "no such piece");
            sent.extend(self.umem.copy_out(desc.addr, desc.len));
            pieces += 1;
            assert!(pieces <= PIECES, "too many pieces");
            if !desc.continues() {
                let is_datagram = parse(&sent, &self.to).is_ok();
                assert!(is_datagram || !self.is_honest, "no datagram");
                sent.clear();
                pieces = 0;
            }
            side.checked = side.checked.wrapping_add(1);
        }
        assert_eq!(pieces, 0, "a datagram is whole in the ring");
    }
}

impl Answering {
    /// Sets the answer to the next kicks.
    pub(super) fn answer(&self, answer: u8) {
        self.0.store(answer, Ordering::Relaxed);
    }
}

impl Device for Answering {
    fn kick(&self) -> Kicked {
        match self.0.load(Ordering::Relaxed) % 3 {
            0 => Kicked::Done,
            1 => Kicked::Again,
            _ => Kicked::Down,
        }
    }

    fn kick_fill(&self) {}

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn statistics(&self) -> Statistics {
        Statistics::default()
    }

    fn take_error(&self) -> bool {
        false
    }
}
