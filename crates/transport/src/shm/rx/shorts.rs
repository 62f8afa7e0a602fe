//! Copies of a burst's short packets, which the receiving half shows as frames.
//!
//! Most packets of a burst have one length. They are copied as a *row*: one comparison shows that
//! the next packet belongs to it, the copies lie one after the other like the packets in the ring,
//! and their length is stored once. The same loop takes packets of one cell and of several cells;
//! it only copies more.
//!
//! After a burst in which lengths often changed, each packet of the next one is a row of its own.
//! Where lengths change at random, the processor would mispredict the end of each longer row, and
//! would do so four times on the way of a packet to its handler. A row of one packet always ends
//! after one packet.
//!
//! Invariants: a packet is read only after it was copied, because its peer can write to the ring,
//! and its length is the one that the ring has checked. The copies of the packets of all rows lie
//! in order; packet number `i` of a burst begins at or before line `i * SHORT_CELLS`. Called by
//! `rx` and `rx_ring`.

use std::hint::assert_unchecked;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::atomic::{Ordering, compiler_fence};

use dunlin_core::transport::{LANE_PACKET, RX_BURST};

use super::super::cells::{CELL, Cells, ONE_CELL, TWO_CELLS, WORD, cells_of};
use super::super::copy::many_halves;
use super::super::ring::{At, Consumer};
use super::rx_ring::Line;

/// Copies of a burst's short packets, cell by cell.
///
/// A burst keeps addresses of copies while it makes further ones, so all addresses derive from the
/// memory's address, and a reference to the owner is not one to the copies.
#[derive(Debug)]
pub(super) struct Shorts {
    memory: NonNull<Memory>,
    /// The kind of this burst's rows.
    kind: Kind,
}

/// The kind of a burst's rows, and the kind that its lengths suggest for the next burst. A burst of
/// packets that are alike changes nothing here.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    /// A row ends where the length changes.
    Long,
    /// A row ends where the length changes, but each packet of the next burst is a row.
    LongToSingle,
    /// Each packet is a row, and rows of the next burst are long.
    SingleToLong,
    /// Each packet is a row.
    Single,
}

#[derive(Debug)]
struct Memory {
    copies: [Line; LINES],
    rows: [Row; RX_BURST],
}

/// Packets of one length that came one after the other.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    packets: u8,
    /// Cells of a packet.
    cells: u8,
    /// The line of its first packet.
    line: u16,
    /// Bytes of a packet, which these cells hold.
    len: u32,
}

/// The most cells of a short packet.
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
        let memory = Box::new(Memory {
            copies: [Line([0; CELL]); LINES],
            rows: [Row::default(); RX_BURST],
        });
        Self {
            memory: NonNull::from(Box::leak(memory)),
            kind: Kind::Long,
        }
    }

    /// The first line of all copies.
    #[inline(always)]
    fn lines(&self) -> NonNull<Line> {
        // SAFETY: the memory is this owner's until its end.
        let copies = unsafe { &raw mut (*self.memory.as_ptr()).copies };
        // SAFETY: the address of a field is not null.
        unsafe { NonNull::new_unchecked(copies.cast()) }
    }

    #[inline(always)]
    fn rows(&self) -> &[Row; RX_BURST] {
        // SAFETY: the memory is this owner's, and only methods that borrow the owner mutably change
        // the rows.
        unsafe { &(*self.memory.as_ptr()).rows }
    }

    #[inline(always)]
    fn rows_mut(&mut self) -> &mut [Row; RX_BURST] {
        // SAFETY: the memory is this owner's, which is borrowed mutably; the rows are no part of
        // the copies.
        unsafe { &mut (*self.memory.as_ptr()).rows }
    }

    /// Whether each packet of this burst is a row.
    #[inline(always)]
    fn is_singly(&self) -> bool {
        self.kind >= Kind::SingleToLong
    }

    /// Takes short packets out of a ring, as many as a burst shows.
    #[inline(always)]
    pub(super) fn take(&mut self, ring: &mut Consumer) -> Took {
        match self.kind {
            Kind::Long => {}
            Kind::LongToSingle | Kind::Single => return self.take_singly(ring),
            Kind::SingleToLong => self.kind = Kind::Long,
        }
        let (mut took, mut line, mut rows) = (Took::default(), 0, 0);
        let lines = self.lines();
        for place in self.rows_mut() {
            // SAFETY: the ring's cells are alive.
            let Some(len) = (unsafe { ring.watch().next() }) else {
                break;
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
                break;
            }
            *place = row.at(line);
            rows += 1;
            line += row.lines();
            took.packets += usize::from(row.packets);
            took.bytes += u64::from(row.packets) * u64::from(row.len);
            if took.packets == RX_BURST {
                break;
            }
        }
        if is_mixed(rows, took.packets) {
            self.kind = Kind::LongToSingle;
        }
        took
    }

    /// As [`Self::take`], with a row for each packet.
    #[inline(never)]
    fn take_singly(&mut self, ring: &mut Consumer) -> Took {
        let (mut took, mut line, mut changes, mut last) = (Took::default(), 0, 1, 0);
        // This runs twice if the ring's end lies between the packets.
        loop {
            let (lines, before, mut next) = (self.lines(), took.packets, line);
            let rows = self.rows_mut();
            let (at, cells, others) = ring.take_mixed(RX_BURST - before, SHORT, |len, cells| {
                // There is a row for each packet of a burst.
                rows[took.packets % RX_BURST] = Row::of_one(len, cells).at(next);
                next += cells as usize;
                changes += usize::from(len != last);
                last = len;
                took.packets += 1;
                took.bytes += u64::from(len);
            });
            // SAFETY: the ring has found the packets, so their cells lie inside; and there are
            // lines for as many packets as a burst shows.
            unsafe { copy_cells::<0>(ring.cells(), at, lines.add(line), cells) };
            line = next;
            took.others = others;
            if others || took.packets == before || took.packets == RX_BURST {
                self.kind = match is_mixed(changes, took.packets) {
                    true => Kind::Single,
                    false => Kind::SingleToLong,
                };
                return took;
            }
        }
    }

    /// Copies the only packet of a burst, which has `len` bytes in this cell of a ring.
    ///
    /// # Safety
    /// The cell is alive, and such a packet fits into it.
    #[inline(always)]
    pub(super) unsafe fn take_one(&mut self, cell: NonNull<[u8; CELL]>, len: u32) {
        self.rows_mut()[0] = Row::of_one(len, 1);
        // SAFETY: a line is as long as the cell, and does not overlap it.
        unsafe { self.lines().write(cell.cast::<Line>().read()) };
        // As in `copy_cells`.
        compiler_fence(Ordering::SeqCst);
    }

    /// Copies the only packet of a burst, which has `len` bytes and begins in this cell of a ring.
    /// `CELLS` is `cells`, or 0 if that is more than two.
    ///
    /// # Safety
    /// The packet is short, and has this number of cells, which are alive.
    #[inline(always)]
    pub(super) unsafe fn take_several<const CELLS: usize>(
        &mut self,
        cell: NonNull<[u8; CELL]>,
        len: u32,
        cells: usize,
    ) {
        #[expect(clippy::cast_possible_truncation, reason = "a short packet has few")]
        let row = Row::of_one(len, cells as u32);
        self.rows_mut()[0] = row;
        // SAFETY: there are lines for a short packet, and they do not overlap a ring.
        unsafe { copy_from::<CELLS>(cell.cast(), self.lines(), cells) };
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
        let (number, skipped) = match self.is_singly() {
            true => (first, 0),
            false => self.row_of(first),
        };
        let row = self.rows().get(number).copied().unwrap_or_default();
        let cells = usize::from(row.cells);
        let (line, left) = (
            usize::from(row.line) + skipped * cells,
            usize::from(row.packets) - skipped,
        );
        assert!(line + left * cells <= LINES);
        // SAFETY: packets have at least one line, so there is one, and it begins with a word. The
        // end of the last packet may lie after the end of the lines; it is only an address, and
        // nothing reads there.
        let next = unsafe { self.lines().add(line).cast::<u8>().add(WORD) };
        let next = next.as_ptr().cast_const();
        ShortFrames {
            next,
            end: next.wrapping_add(left * cells * CELL),
            size: cells * CELL,
            len: row.len as usize,
            copies: PhantomData,
        }
    }

    /// The number of the row that has packet number `first` of a burst, and the number of packets
    /// before it in that row. Not inlined, because it would take registers from the loops over
    /// packets. It returns only two words, so they are not written to memory.
    #[inline(never)]
    fn row_of(&self, first: usize) -> (usize, usize) {
        let mut before = 0;
        for (number, row) in self.rows().iter().enumerate() {
            let end = before + usize::from(row.packets);
            if first < end {
                return (number, first - before);
            }
            before = end;
        }
        (RX_BURST, 0)
    }
}

/// Whether the rows have so few packets that it is better if each packet is a row of its own.
#[inline(always)]
const fn is_mixed(rows: usize, packets: usize) -> bool {
    rows > 1 + packets / 4
}

impl Drop for Shorts {
    fn drop(&mut self) {
        // SAFETY: the memory was a box, and no frame outlives its half.
        drop(unsafe { Box::from_raw(self.memory.as_ptr()) });
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
            0 => cells_of(len),
            known => known,
        };
        let (first, packets) = ring.take_row::<CELLS>(len, most);
        // SAFETY: the ring has found the packets, so their cells lie inside; and there are lines
        // for them, as the caller promises.
        unsafe { copy_cells::<0>(ring.cells(), first, to, packets * cells as usize) };
        #[expect(clippy::cast_possible_truncation, reason = "a burst has few")]
        let packets = packets as u8;
        Self {
            packets,
            ..Self::of_one(len, cells)
        }
    }

    /// A row of one short packet, which begins at the first line.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "a short packet has few")]
    const fn of_one(len: u32, cells: u32) -> Self {
        Self {
            packets: 1,
            cells: cells as u8,
            line: 0,
            len,
        }
    }

    /// The same row at another line.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "there are few lines")]
    const fn at(self, line: usize) -> Self {
        const { assert!(LINES < 1 << 16) };
        Self {
            line: line as u16,
            ..self
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
        // before their end. Without the assertion, the compiler would compare the address with
        // null.
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
unsafe fn copy_cells<const CELLS: usize>(ring: &Cells, at: usize, to: NonNull<Line>, cells: usize) {
    // SAFETY: the first cell begins one word before the packet's bytes.
    unsafe {
        let first = ring.bytes_at(at).sub(WORD).cast();
        copy_from::<CELLS>(first, to, cells);
    }
}

/// As [`copy_cells`], for a packet whose first cell is `first`.
///
/// # Safety
/// As there.
#[inline(always)]
unsafe fn copy_from<const CELLS: usize>(first: NonNull<Line>, to: NonNull<Line>, cells: usize) {
    // SAFETY: as the caller promises. Each cell is as long as a line and does not overlap it.
    unsafe {
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
