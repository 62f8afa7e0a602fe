//! Received packets, from the ring to whole frames, and empty frames back to the kernel.
//!
//! A packet in one piece is used where it lies. A packet of several pieces is copied once, so that
//! it lies in one place; it is a large packet, or several datagrams that their sender left to be
//! segmented later.
//!
//! Invariants: a frame of the part is in our hand, or lent to the kernel, or in the hand of another
//! endpoint of the queue. An entry is counted and dropped if the kernel does not have its frame, or
//! if its bytes lie outside of a frame. Called by `receive`, which decides which packets are
//! accepted.

use std::ops::Range;
use std::sync::Arc;

use dunlin_core::transport::RX_BURST;

use crate::device::Device;
use crate::ring::{Consumer, Desc};
use crate::shared::SharedRings;
use crate::umem::{FRAME, Hand, Ledger, Part, Piece};

/// The most pieces of a packet: 64 KB, and one piece more.
const PIECES: u32 = 17;
/// The most bytes of a packet of several pieces.
pub(crate) const WHOLE: usize = PIECES as usize * FRAME;

/// The most entries whose places and frames are kept until later, so that the lock of the fill ring
/// is taken once for many packets.
const MOST_KEPT: u32 = 32;

/// The most packets of a burst.
#[expect(clippy::cast_possible_truncation, reason = "a small constant")]
const MOST_SHOWN: u32 = RX_BURST as u32;

/// The next packet of the ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NextPacket {
    /// In one piece.
    Piece(Piece),
    /// Of several pieces, copied to the room; its length.
    Whole(usize),
}

/// The frames for receiving, and their two rings: the receive ring, and the fill ring, which the
/// endpoints of a queue share.
#[derive(Debug)]
pub(crate) struct Arrivals {
    hand: Hand,
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
    shared.fill(|fill| {
        while fill.room(1) > 0
            && let Some(addr) = frames.find_map(|frame| part.lend(frame))
        {
            fill.push(addr);
        }
    })
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
        let most_kept = MOST_KEPT.min(rx.capacity() / 8);
        Self {
            hand: Hand::new(part),
            rx,
            shared,
            device,
            taken: 0,
            most_kept,
            bad: 0,
        }
    }

    /// The most packets that the kernel can keep for us.
    pub(crate) fn capacity(&self) -> u32 {
        self.rx.capacity().min(self.hand.part().count()) - self.most_kept
    }

    /// Bytes of the region of frames.
    pub(crate) fn region_bytes(&self) -> usize {
        self.hand.part().region_bytes()
    }

    /// Whether a packet waits.
    pub(crate) fn has_more(&mut self) -> bool {
        self.rx.available(1) > 0
    }

    /// Whether no more packets were there when it last looked.
    #[inline]
    pub(crate) fn is_at_end(&self) -> bool {
        self.rx.known() == 0
    }

    /// Takes the next packet; a packet of several pieces is copied to `room`. `None` if there is
    /// none.
    #[inline]
    pub(crate) fn next(&mut self, room: &mut [u8]) -> Option<NextPacket> {
        loop {
            if self.rx.available(1) == 0 {
                return None;
            }
            if !self.rx.peek(0)?.continues() {
                match self.take() {
                    Some(piece) => return Some(NextPacket::Piece(piece)),
                    None => continue,
                }
            }
            let (pieces, is_whole) = self.measure();
            if !is_whole && pieces < PIECES {
                // The rest is not there yet.
                return None;
            }
            match self.join(pieces, room) {
                Some(len) if is_whole => return Some(NextPacket::Whole(len)),
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

    /// Takes pieces, and copies them to `room`. `None` if one of them is bad.
    fn join(&mut self, pieces: u32, room: &mut [u8]) -> Option<usize> {
        let mut len = 0;
        let mut is_good = true;
        for _ in 0..pieces {
            let Some(piece) = self.take() else {
                is_good = false;
                continue;
            };
            let bytes = self.hand.part().bytes(piece);
            match room.get_mut(len..len + bytes.len()) {
                Some(to) => to.copy_from_slice(bytes),
                None => is_good = false,
            }
            len += bytes.len();
        }
        is_good.then_some(len)
    }

    /// Takes the next entry of the ring; `None` if it is bad.
    #[inline]
    fn take(&mut self) -> Option<Piece> {
        let desc = self.rx.pop()?;
        self.taken += 1;
        let piece = self.hand.take(desc).ok();
        self.bad += u64::from(piece.is_none());
        piece
    }

    /// Shows the next packets, up to one that is not in one piece or in which `find` finds no
    /// payload. Returns the number of places that are shown then.
    #[inline]
    pub(crate) fn show_while(
        &mut self,
        find: impl for<'a> FnMut(&'a [u8]) -> Option<&'a [u8]>,
    ) -> usize {
        if self.rx.available(MOST_SHOWN) > 0 {
            self.taken += self.hand.show_while(&mut self.rx, find);
        }
        self.hand.shown()
    }

    /// The bytes of a piece.
    #[inline]
    pub(crate) fn bytes(&self, piece: Piece) -> &[u8] {
        self.hand.part().bytes(piece)
    }

    /// Shows a piece of the packet that was taken last.
    pub(crate) fn show(&mut self, piece: Piece) {
        self.hand.show(piece);
    }

    /// Shows nothing in the place of a packet that lies elsewhere.
    pub(crate) fn show_nothing(&mut self) {
        self.hand.show_nothing();
    }

    /// How many packets it shows.
    #[inline]
    pub(crate) fn shown(&self) -> usize {
        self.hand.shown()
    }

    /// Notes that the first `count` shown packets are whole, and not marked.
    #[inline]
    pub(crate) fn set_plain(&mut self, count: usize) {
        self.hand.set_plain(count);
    }

    /// The bytes of a shown packet, if it is whole and not marked.
    #[inline]
    pub(crate) fn plain_bytes(&self, index: usize) -> Option<&[u8]> {
        self.hand.plain_bytes(index)
    }

    /// The bytes of the shown packets that are whole and not marked, from packet `first` on.
    #[inline]
    pub(crate) fn plain_from(&self, first: usize) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        self.hand.plain_from(first)
    }

    /// The bytes of a shown packet.
    #[inline]
    pub(crate) fn shown_bytes(&self, index: usize) -> Option<&[u8]> {
        self.hand.bytes(index)
    }

    /// Stops showing packets. Gives the kernel all frames, and the places of all taken entries, if
    /// they are many or if no packet waits. Entries and frames go together, so that all receive
    /// rings of a queue have no more places than there are frames.
    #[inline]
    pub(crate) fn give_back(&mut self) {
        if self.taken >= self.most_kept || self.taken > 0 && !self.has_more() {
            self.refill();
        } else {
            self.hand.hide();
        }
    }

    #[inline]
    fn refill(&mut self) {
        self.taken = 0;
        self.rx.release();
        if self.shared.fill(|fill| self.hand.lend(fill)) {
            self.device.kick_fill();
        }
    }

    /// The number of entries that no honest kernel writes, and of rings that the kernel broke.
    pub(crate) fn bad(&self) -> u64 {
        let [fill, _] = self.shared.broken();
        self.bad + u64::from(self.rx.is_broken()) + u64::from(fill)
    }

    /// The frames in hand, in any order.
    #[cfg(feature = "check")]
    pub(crate) fn held(&self) -> Vec<u32> {
        self.hand.held()
    }

    /// The other end of the rings.
    pub(crate) fn device(&self) -> &dyn Device {
        &*self.device
    }
}

#[cfg(test)]
mod tests;
