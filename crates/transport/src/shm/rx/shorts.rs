//! Copies of a burst's short packets, which the receiving half shows as frames.
//!
//! Invariant: a packet is read only after it was copied, because its peer can write to the ring.
//! Called by `rx` and `incoming`.

use std::hint::cold_path;
use std::ptr::NonNull;
use std::sync::atomic::{Ordering, compiler_fence};

use dunlin_core::transport::{LANE_PACKET, RX_BURST};

use super::super::cells::{CELL, Cells, ONE_CELL, TWO_CELLS, WORD};
use super::super::ring::{At, packet_len};
use super::incoming::Line;

/// Copies of a burst's short packets, cell by cell.
#[derive(Debug)]
pub(super) struct Shorts {
    copies: [Short; RX_BURST],
    /// Lengths of the packets of several cells, and 0 for the others.
    several: [u16; RX_BURST],
}

/// The copy of one packet. After its cells there are bytes of earlier packets.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Short([u8; SHORT_CELLS * CELL]);

/// Most cells of a short packet.
const SHORT_CELLS: usize = 17;

/// Longest short packet, in bytes.
#[expect(clippy::cast_possible_truncation, reason = "a small constant")]
pub(super) const SHORT: u32 = (SHORT_CELLS * CELL - WORD) as u32;
/// Longest packet of two cells, in bytes.
#[expect(clippy::cast_possible_truncation, reason = "a small constant")]
pub(super) const TWO: u32 = TWO_CELLS as u32;
const _: () = assert!(SHORT as usize == LANE_PACKET && SHORT <= u16::MAX as u32);

impl Shorts {
    pub(super) fn new() -> Self {
        Self {
            copies: [Short([0; SHORT_CELLS * CELL]); RX_BURST],
            several: [0; RX_BURST],
        }
    }

    /// Makes room for another burst.
    #[inline(always)]
    pub(super) fn begin(&mut self) -> &mut Self {
        self.several = [0; RX_BURST];
        self
    }

    /// Makes room for a burst of one packet.
    #[inline(always)]
    pub(super) fn begin_lone(&mut self) -> &mut Self {
        self.several[0] = 0;
        self
    }

    /// Copies packet number `index` of the burst out of the ring. Returns the place of its bytes.
    ///
    /// # Safety
    /// The packet's cells are cells of the ring, and it is a short one.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a short length has sixteen bits"
    )]
    pub(super) unsafe fn copy(&mut self, index: usize, ring: &Cells, packet: At) -> NonNull<u8> {
        let index = index % RX_BURST;
        if packet.cells > 1 {
            self.several[index] = packet.len as u16;
        }
        // SAFETY: as the caller promises.
        unsafe {
            copy_cells(
                ring.bytes_at(packet.at),
                &mut self.copies[index],
                packet.cells,
            )
        }
    }

    /// Packet number `index` of a burst that copied it.
    #[inline(always)]
    pub(super) fn packet(&self, index: usize) -> &[u8] {
        let index = index % RX_BURST;
        self.copies[index].packet(|| self.several[index])
    }

    /// Packets of a burst that copied them, from number `first` on and before number `end`.
    #[inline(always)]
    pub(super) fn frames(&self, first: usize, end: usize) -> ShortFrames<'_> {
        ShortFrames {
            copies: self.copies.get(first..end).unwrap_or_default().iter(),
            several: self.several.get(first..end).unwrap_or_default(),
        }
    }
}

impl Short {
    /// The bytes of the packet. If it has one cell, its length is that of the copied word, because
    /// the peer may have changed the word after the ring looked at it. `several`: the length of a
    /// packet of several cells, as the ring saw it.
    #[inline(always)]
    fn packet(&self, several: impl FnOnce() -> u16) -> &[u8] {
        let (word, bytes) = self
            .0
            .split_first_chunk()
            .expect("a copy is longer than that");
        let mut len = packet_len(u64::from_ne_bytes(*word));
        if len > ONE_CELL {
            cold_path();
            len = bytes.len().min(several().into());
        }
        &bytes[..len]
    }
}

/// The bytes of short packets, one after the other.
#[derive(Debug, Default)]
pub(crate) struct ShortFrames<'a> {
    copies: std::slice::Iter<'a, Short>,
    /// The lengths of those of several cells, and 0 for the others, of all packets.
    several: &'a [u16],
}

impl<'a> Iterator for ShortFrames<'a> {
    type Item = &'a [u8];

    #[inline(always)]
    fn next(&mut self) -> Option<&'a [u8]> {
        let copy = self.copies.next()?;
        let left = self.copies.len() + 1;
        let several = || {
            let place = self.several.len().checked_sub(left);
            place.and_then(|place| self.several.get(place).copied())
        };
        Some(copy.packet(|| several().unwrap_or(0)))
    }

    #[inline(always)]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.copies.size_hint()
    }
}

impl ExactSizeIterator for ShortFrames<'_> {}

/// Copies the cells of a short packet whose bytes begin at `from`, with the word: two moves of 32
/// bytes each. Returns the place of the packet's bytes.
///
/// # Safety
/// `from` points just after the word of the first of `cells` cells in a row, and `cells` is at
/// least 1.
#[inline(always)]
unsafe fn copy_cells(from: NonNull<u8>, to: &mut Short, cells: usize) -> NonNull<u8> {
    let to: NonNull<Line> = NonNull::from(to).cast();
    // SAFETY: the first cell begins one word before `from`. Each cell is as long as a line and does
    // not overlap it, and `to` has lines for all of them.
    unsafe {
        let first = from.sub(WORD).cast::<Line>();
        to.write(first.read());
        if cells > 1 {
            to.add(1).write(first.add(1).read());
        }
        if cells > 2 {
            to.add(2).write(first.add(2).read());
        }
        if cells > 3 {
            to.add(3).write(first.add(3).read());
        }
        if cells > 4 {
            copy_more(first.add(4), to.add(4), cells - 4);
        }
    }
    // Later code reads the copy: the compiler may not go back to the ring for it.
    compiler_fence(Ordering::SeqCst);
    // SAFETY: a line is longer than a word.
    unsafe { to.cast::<u8>().add(WORD) }
}

/// Copies lines.
///
/// # Safety
/// There are `count` lines at both places, which do not overlap.
#[inline(never)]
unsafe fn copy_more(from: NonNull<Line>, to: NonNull<Line>, count: usize) {
    // SAFETY: as the caller promises.
    unsafe { to.copy_from_nonoverlapping(from, count) };
}
