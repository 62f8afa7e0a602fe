//! Copies of a burst's short packets, which the receiving half shows as frames.
//!
//! Most packets of a burst have one length. They are copied as a *row*: one comparison shows that
//! the next packet belongs to it, the copies lie one after the other like the packets in the ring,
//! and their length is stored once. The same loop takes packets of one cell and of several cells;
//! it only copies more.
//!
//! Invariants: a packet is read only after it was copied, because its peer can write to the ring,
//! and its length is the one that the ring has checked. The copies of the packets of all rows lie
//! in order; packet number `i` of a burst begins at or before line `i * SHORT_CELLS`. Called by
//! `rx` and `incoming`.

use std::hint::assert_unchecked;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::atomic::{Ordering, compiler_fence};

use dunlin_core::transport::{LANE_PACKET, RX_BURST};

use super::super::cells::{CELL, Cells, ONE_CELL, TWO_CELLS, WORD, cells_of};
use super::super::copy::many_halves;
use super::super::ring::{At, Consumer};
use super::incoming::Line;

/// Copies of a burst's short packets, cell by cell.
///
/// A burst keeps addresses of copies while it makes further ones, so all addresses derive from this
/// one, and a reference to the owner is not a reference to the copies.
#[derive(Debug)]
pub(super) struct Shorts(NonNull<Memory>);

#[derive(Debug)]
struct Memory {
    copies: [Line; LINES],
    rows: [Row; RX_BURST],
}

/// Packets of one length that came one after the other.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    packets: u16,
    /// Cells of a packet.
    cells: u16,
    /// Bytes of a packet, which these cells hold.
    len: u32,
}

/// Most cells of a short packet.
const SHORT_CELLS: usize = 17;

/// Lines of the packets of a burst.
const LINES: usize = RX_BURST * SHORT_CELLS;

/// Longest short packet, in bytes.
#[expect(clippy::cast_possible_truncation, reason = "a small constant")]
pub(super) const SHORT: u32 = (SHORT_CELLS * CELL - WORD) as u32;
/// Longest packet of one cell, in bytes.
#[expect(clippy::cast_possible_truncation, reason = "a small constant")]
const ONE: u32 = ONE_CELL as u32;
/// Longest packet of two cells, in bytes.
#[expect(clippy::cast_possible_truncation, reason = "a small constant")]
pub(super) const TWO: u32 = TWO_CELLS as u32;
const AFTER_ONE: u32 = ONE + 1;
const AFTER_TWO: u32 = TWO + 1;
const _: () = assert!(SHORT as usize == LANE_PACKET);

/// The packets that a burst has taken.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Took {
    pub(super) packets: usize,
    pub(super) bytes: u64,
    /// The next packet is not short.
    pub(super) others: bool,
}

impl Shorts {
    pub(super) fn new() -> Self {
        Self(NonNull::from(Box::leak(Box::new(Memory {
            copies: [Line([0; CELL]); LINES],
            rows: [Row::default(); RX_BURST],
        }))))
    }

    /// The first line of all copies.
    #[inline(always)]
    fn lines(&self) -> NonNull<Line> {
        // SAFETY: the memory is this owner's until its end.
        let copies = unsafe { &raw mut (*self.0.as_ptr()).copies };
        // SAFETY: the address of a field is not null.
        unsafe { NonNull::new_unchecked(copies.cast()) }
    }

    #[inline(always)]
    fn rows(&self) -> &[Row; RX_BURST] {
        // SAFETY: the memory is this owner's, and only methods that borrow the owner mutably change
        // the rows.
        unsafe { &(*self.0.as_ptr()).rows }
    }

    #[inline(always)]
    fn rows_mut(&mut self) -> &mut [Row; RX_BURST] {
        // SAFETY: the memory is this owner's, which is borrowed mutably; the rows are no part of
        // the copies.
        unsafe { &mut (*self.0.as_ptr()).rows }
    }

    /// Takes short packets out of a ring, as many as a burst shows.
    #[inline(always)]
    pub(super) fn take(&mut self, ring: &mut Consumer) -> Took {
        let (mut took, mut line) = (Took::default(), 0);
        let lines = self.lines();
        for place in self.rows_mut() {
            // SAFETY: the ring's cells are alive.
            let Some(len) = (unsafe { ring.watch().next() }) else {
                return took;
            };
            let most = RX_BURST - took.packets;
            // SAFETY: there are lines for as many packets of the greatest number of cells as a
            // burst shows, so there are some for the packets that it can still take.
            let row = unsafe {
                let to = lines.add(line);
                match len {
                    ..=ONE => Row::take::<1>(ring, len, most, to),
                    AFTER_ONE..=TWO => Row::take::<2>(ring, len, most, to),
                    AFTER_TWO..=SHORT => Row::take::<0>(ring, len, most, to),
                    _ => Row::default(),
                }
            };
            if row.packets == 0 {
                took.others = true;
                return took;
            }
            *place = row;
            line += row.lines();
            took.packets += usize::from(row.packets);
            took.bytes += u64::from(row.packets) * u64::from(row.len);
            if took.packets == RX_BURST {
                break;
            }
        }
        took
    }

    /// Copies the only packet of a burst out of the ring. `CELLS` is 0 for more than two cells.
    ///
    /// # Safety
    /// The packet's cells are cells of the ring, and the packet is short.
    #[inline(always)]
    pub(super) unsafe fn take_lone<const CELLS: u32>(&mut self, ring: &Cells, packet: At) {
        #[expect(clippy::cast_possible_truncation, reason = "a short packet has few")]
        let cells = packet.cells as u16;
        self.rows_mut()[0] = Row {
            packets: 1,
            cells,
            len: packet.len,
        };
        let to = self.lines();
        // SAFETY: as the caller promises.
        unsafe { copy_cells::<CELLS>(ring, packet.at, to, packet.cells) };
    }

    /// Copies packet number `index` of a burst, which belongs to no row, out of the ring. Returns
    /// the address of its bytes.
    ///
    /// # Safety
    /// The packet's cells are cells of the ring, and the packet is short.
    #[inline(always)]
    pub(super) unsafe fn copy(&mut self, index: usize, ring: &Cells, packet: At) -> NonNull<u8> {
        // SAFETY: as the caller promises, and there are `SHORT_CELLS` lines for each packet of a
        // burst.
        unsafe {
            let to = self.lines().add(index % RX_BURST * SHORT_CELLS);
            match packet.cells {
                1 => copy_cells::<1>(ring, packet.at, to, 1),
                cells => copy_cells::<0>(ring, packet.at, to, cells),
            }
            to.cast::<u8>().add(WORD)
        }
    }

    /// The first packet of a burst that is not empty.
    #[inline(always)]
    pub(super) fn first(&self) -> &[u8] {
        let len = self.rows()[0].len as usize;
        let packet = self.lines().cast::<u8>();
        // SAFETY: a row's packets are copied, with as many lines as they need, after a word.
        unsafe { std::slice::from_raw_parts(packet.add(WORD).as_ptr(), len) }
    }

    /// The packets of a row, from packet number `first` of a burst on.
    ///
    /// # Safety
    /// The rows of this burst have that packet.
    #[inline(always)]
    pub(super) unsafe fn frames(&self, first: usize) -> ShortFrames<'_> {
        let (mut before, mut line) = (0, 0);
        for row in self.rows() {
            let end = before + usize::from(row.packets);
            if first < end {
                line += (first - before) * usize::from(row.cells);
                let size = usize::from(row.cells) * CELL;
                assert!(line + (end - first) * usize::from(row.cells) <= LINES);
                // SAFETY: packets have at least one line, so there is one, and it begins with a
                // word. The last packet's end may lie after that of the lines, as an address.
                let next = unsafe { self.lines().add(line).cast::<u8>().add(WORD) };
                let next = next.as_ptr().cast_const();
                return ShortFrames {
                    next,
                    end: next.wrapping_add((end - first) * size),
                    size,
                    len: row.len as usize,
                    copies: PhantomData,
                };
            }
            (before, line) = (end, line + row.lines());
        }
        ShortFrames::default()
    }
}

impl Drop for Shorts {
    fn drop(&mut self) {
        // SAFETY: the memory was a box, and no frame outlives its half.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

impl Row {
    /// Takes the row of packets of this length at the ring's head, at most `most`.
    ///
    /// # Safety
    /// `to` is the first of as many lines as `most` short packets of this length have cells.
    /// `CELLS` is 0 for more than two cells.
    #[inline(always)]
    unsafe fn take<const CELLS: u32>(
        ring: &mut Consumer,
        len: u32,
        most: usize,
        to: NonNull<Line>,
    ) -> Self {
        let cells = match CELLS {
            0 => cells_of(len) as usize,
            known => known as usize,
        };
        let (first, packets) = ring.take_row::<CELLS>(len, most);
        // SAFETY: the ring has found the packets, so their cells lie inside; and there are lines
        // for them, as the caller promises.
        unsafe { copy_cells::<0>(ring.cells(), first, to, packets * cells) };
        #[expect(clippy::cast_possible_truncation, reason = "both are small")]
        let (packets, cells) = (packets as u16, cells as u16);
        Self {
            packets,
            cells,
            len,
        }
    }

    /// Lines of all packets.
    #[inline(always)]
    fn lines(self) -> usize {
        usize::from(self.packets) * usize::from(self.cells)
    }
}

/// The bytes of short packets of one length, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct ShortFrames<'a> {
    /// The bytes of the next packet.
    next: *const u8,
    /// The address after the last packet.
    end: *const u8,
    /// Bytes from one packet to the next.
    size: usize,
    /// Bytes of a packet.
    len: usize,
    copies: PhantomData<&'a [Line]>,
}

impl Default for ShortFrames<'_> {
    fn default() -> Self {
        Self {
            next: ptr::null(),
            end: ptr::null(),
            size: CELL,
            len: 0,
            copies: PhantomData,
        }
    }
}

impl<'a> Iterator for ShortFrames<'a> {
    type Item = &'a [u8];

    #[inline(always)]
    fn next(&mut self) -> Option<&'a [u8]> {
        if self.next == self.end {
            return None;
        }
        // SAFETY: a row's packets are copied, with as many lines as they need, and this one comes
        // before their end. The compiler would compare with null what it gets in `Some`.
        let packet = unsafe {
            assert_unchecked(!self.next.is_null());
            std::slice::from_raw_parts(self.next, self.len)
        };
        self.next = self.next.wrapping_add(self.size);
        Some(packet)
    }

    #[inline(always)]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.end.addr() - self.next.addr()) / self.size;
        (left, Some(left))
    }
}

impl ExactSizeIterator for ShortFrames<'_> {}

/// Copies the cells of a short packet, with its word, by moves of 32 bytes. `CELLS` is 0 if the
/// compiler does not know their number.
///
/// # Safety
/// `at` is a cell of the ring. If `CELLS` is 0, it is the first of `cells` cells in a row, and `to`
/// the first of as many lines; there may be none, and then nothing is read or written. Otherwise
/// the same holds for `CELLS` cells.
#[inline(always)]
unsafe fn copy_cells<const CELLS: u32>(ring: &Cells, at: usize, to: NonNull<Line>, cells: usize) {
    // SAFETY: the first cell begins one word before the packet's bytes. Each cell is as long as a
    // line and does not overlap it.
    unsafe {
        let first = ring.bytes_at(at).sub(WORD).cast::<Line>();
        match CELLS {
            1 => to.write(first.read()),
            2 => {
                to.write(first.read());
                to.add(1).write(first.add(1).read());
            }
            _ => many_halves(first.cast().as_ptr(), to.cast().as_ptr(), 2 * cells),
        }
    }
    // Later code reads the copy; the compiler must not read the ring again instead.
    compiler_fence(Ordering::SeqCst);
}

#[cfg(all(test, not(loom)))]
mod tests;
