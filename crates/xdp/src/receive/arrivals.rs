//! Received packets, from the ring to whole frames, and empty frames back to the kernel.
//!
//! A packet in one piece is used where it lies. A packet of several pieces is copied once, so that
//! it lies in one place; it is a large packet, or several datagrams that their sender left to be
//! segmented later.
//!
//! Invariants: a frame of the part is spare, or shown in this burst, or lent to the kernel, or in
//! the hands of another endpoint of the queue. An entry is counted and dropped if the kernel does
//! not have its frame, or if its bytes lie outside of a frame. Called by `receive`, which decides
//! which packets are accepted.

use std::ops::Range;
use std::sync::Arc;

use crate::device::Device;
use crate::ring::{Consumer, Desc};
use crate::shared::SharedRings;
use crate::umem::{Bad, FRAME, Ledger, Part, Piece};

/// Most pieces of a packet: 64 KB, and one piece more.
const PIECES: u32 = 17;
/// Most bytes of a packet of several pieces.
pub(crate) const WHOLE: usize = PIECES as usize * FRAME;

/// Most entries whose places and frames are kept until later, so that the lock of the fill ring is
/// taken once for many packets.
const MOST_KEPT: u32 = 32;

/// The next packet of the ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// In one piece.
    Piece(Piece),
    /// Of several pieces, copied to the room; its length.
    Whole(usize),
}

/// The frames for receiving, and their two rings: the receive ring, and the fill ring, which the
/// endpoints of a queue share.
#[derive(Debug)]
pub(crate) struct Arrivals {
    part: Part,
    spare: Vec<u32>,
    rx: Consumer<Desc>,
    shared: Arc<SharedRings>,
    device: Arc<dyn Device>,
    /// Entries that were taken, whose places and frames can be given back.
    taken: u32,
    /// The most of them that are kept until later.
    most_kept: u32,
    bad: u64,
}

/// Gives the kernel these frames of a queue, as many as the fill ring holds. True if the kernel
/// waits for a system call.
pub(crate) fn fill(receiving: &Ledger, shared: &SharedRings, frames: Range<u32>) -> bool {
    let mut part = receiving.shared();
    let mut frames = frames.rev();
    shared.fill(|| frames.find_map(|frame| part.lend(frame)))
}

impl Arrivals {
    /// Reads the packets of `rx`, which lie in frames of `part`. The kernel already has these
    /// frames ([`fill`]).
    pub(crate) fn new(
        part: Part,
        rx: Consumer<Desc>,
        shared: Arc<SharedRings>,
        device: Arc<dyn Device>,
    ) -> Self {
        let spare = Vec::with_capacity(part.count() as usize);
        let most_kept = MOST_KEPT.min(rx.capacity() / 8);
        Self {
            part,
            spare,
            rx,
            shared,
            device,
            taken: 0,
            most_kept,
            bad: 0,
        }
    }

    /// Most packets that the kernel can keep for us.
    pub(crate) fn capacity(&self) -> u32 {
        self.rx.capacity().min(self.part.count()) - self.most_kept
    }

    /// Bytes of the region of frames.
    pub(crate) fn region_bytes(&self) -> usize {
        self.part.region_bytes()
    }

    /// Whether a packet waits.
    pub(crate) fn has_more(&mut self) -> bool {
        self.rx.available(1) > 0
    }

    /// Takes the next packet; a packet of several pieces is copied to `room`. `None` if there is
    /// none.
    #[inline]
    pub(crate) fn next(&mut self, room: &mut [u8]) -> Option<Arrival> {
        loop {
            if self.rx.available(1) == 0 {
                return None;
            }
            if !self.rx.peek(0)?.continues() {
                match self.take() {
                    Some(piece) => return Some(Arrival::Piece(piece)),
                    None => continue,
                }
            }
            let (pieces, is_whole) = self.measure();
            if !is_whole && pieces < PIECES {
                // The rest is not there yet.
                return None;
            }
            match self.join(pieces, room) {
                Some(len) if is_whole => return Some(Arrival::Whole(len)),
                _ => {}
            }
        }
    }

    /// Pieces of the next packet, and whether its last one is there.
    fn measure(&mut self) -> (u32, bool) {
        for piece in 0..PIECES {
            if self.rx.available(piece + 1) <= piece {
                return (piece, false);
            }
            if self.rx.peek(piece).is_some_and(|desc| !desc.continues()) {
                return (piece + 1, true);
            }
        }
        self.bad += 1;
        (PIECES, false)
    }

    /// Takes pieces, copies them to `room`, and gives their frames back. `None` if one of them is
    /// bad.
    fn join(&mut self, pieces: u32, room: &mut [u8]) -> Option<usize> {
        let mut len = 0;
        let mut is_good = true;
        for _ in 0..pieces {
            let Some(piece) = self.take() else {
                is_good = false;
                continue;
            };
            let bytes = self.part.bytes(piece);
            match room.get_mut(len..len + bytes.len()) {
                Some(to) => to.copy_from_slice(bytes),
                None => is_good = false,
            }
            len += bytes.len();
            self.give_back(piece);
        }
        is_good.then_some(len)
    }

    /// Takes the next entry of the ring; `None` if it is bad.
    #[inline]
    fn take(&mut self) -> Option<Piece> {
        let desc = self.rx.pop()?;
        self.taken += 1;
        match self.part.take_back_piece(desc) {
            Ok(piece) => Some(piece),
            Err(why) => {
                self.bad += 1;
                // The frame is ours again; only the length was a lie.
                if why == Bad::Length
                    && let Some(frame) = self.part.frame_of(desc.addr)
                {
                    self.spare.push(frame);
                }
                None
            }
        }
    }

    /// The bytes of a piece.
    #[inline]
    pub(crate) fn bytes(&self, piece: Piece) -> &[u8] {
        self.part.bytes(piece)
    }

    /// Gives the frame of a piece back to the kernel, with the next [`Self::refill`].
    #[inline]
    pub(crate) fn give_back(&mut self, piece: Piece) {
        self.spare.push(piece.frame());
    }

    /// Gives the kernel all spare frames, and the places of all taken entries, if they are many or
    /// if no packet waits. Entries and frames go together, so that all receive rings of a queue
    /// have no more places than there are frames.
    #[inline]
    pub(crate) fn refill_if_needed(&mut self) {
        if self.taken >= self.most_kept || self.taken > 0 && !self.has_more() {
            self.refill();
        }
    }

    fn refill(&mut self) {
        self.taken = 0;
        self.rx.release();
        let (part, spare) = (&mut self.part, &mut self.spare);
        let wants_wakeup = self
            .shared
            .fill(|| std::iter::from_fn(|| spare.pop()).find_map(|frame| part.lend(frame)));
        if wants_wakeup {
            self.device.kick_fill();
        }
    }

    /// The number of entries that no honest kernel writes, and of rings that the kernel broke.
    pub(crate) fn bad(&self) -> u64 {
        let [fill, _] = self.shared.broken();
        self.bad + u64::from(self.rx.is_broken()) + u64::from(fill)
    }

    /// The other end of the rings.
    pub(crate) fn device(&self) -> &dyn Device {
        &*self.device
    }
}

#[cfg(test)]
mod tests;
