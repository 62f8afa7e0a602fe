//! Runs of packets, written together.
//!
//! A store to a line that the other core has read takes as long as a hundred instructions, and
//! later stores wait for it. So the cells of a run are written in one go, from the last to the
//! first: the consumer waits at the first, and takes no line away that is still being written.
//! Words of later packets appear before earlier ones, which a consumer that reads in order does not
//! notice: the first packet's word is stored last, and with it all others are visible.
//!
//! Invariant: the tail, which alone the consumer looks at, is clean before the first word appears
//! (`ring`).

use super::super::cells::{CELL, ONE_CELL, WORD};
use super::super::sync::Ordering;
use super::{LEN_SHIFT, Producer};

impl Producer {
    /// Sends packets of one cell each, of which `cell` knows the bytes of the cell and how many of
    /// them are the packet: as many in front as there is room for before the ring's last cell.
    /// Returns how many, and their bytes.
    #[inline(always)]
    pub(in crate::shm) fn push_run<'a, P>(
        &mut self,
        packets: &'a [P],
        cell: impl Fn(&'a P) -> (&'a [u8; ONE_CELL], usize),
    ) -> (usize, u64) {
        let first = self.cells.index(self.tail);
        let in_a_row = (self.cells.count() - first) as usize;
        let count = packets.len().min(in_a_row).min(self.room(packets.len()));
        if count == 0 {
            return (0, 0);
        }
        let sequence = self.sequence(self.tail);
        self.tail += count as u64;
        self.clean(self.tail);
        let mut sum = 0;
        for (place, packet) in packets[..count].iter().enumerate().rev() {
            let (bytes, len) = cell(packet);
            // SAFETY: there is room for it, so the cell is free.
            sum += unsafe { self.fill(first + index(place), bytes, len, sequence) };
        }
        (count, sum)
    }

    /// Sends a packet of one cell if that is all there is to do. False: nothing was sent.
    #[inline(always)]
    pub(in crate::shm) fn push_cell(&mut self, bytes: &[u8; ONE_CELL], len: usize) -> bool {
        let free = self.tail + 2 <= self.limit;
        if free {
            let (at, sequence) = (self.cells.index(self.tail), self.sequence(self.tail));
            self.tail += 1;
            self.clean(self.tail);
            // SAFETY: the limit says that the cell is free.
            unsafe { self.fill(at, bytes, len, sequence) };
        }
        free
    }

    /// Writes a cell and its word. Returns the length of its packet.
    ///
    /// # Safety
    /// The cell is free.
    #[inline(always)]
    unsafe fn fill(&self, at: u32, bytes: &[u8; ONE_CELL], len: usize, sequence: u64) -> u64 {
        debug_assert!(len <= ONE_CELL, "the packet has one cell");
        // SAFETY: the cell is the caller's, and has room for as much as is written.
        unsafe {
            match len {
                ..ONE_CELL => self.cells.write(at, 0, bytes.as_ptr(), len),
                _ => self.cells.write_whole(at, bytes),
            }
        }
        let word = sequence | (len as u64) << LEN_SHIFT;
        self.cells.word(at).store(word, Ordering::Release);
        len as u64
    }

    /// The same for packets of any length; one that is longer than the ring carries ends the run.
    #[inline(always)]
    pub(in crate::shm) fn push_long_run<'a, P>(
        &mut self,
        packets: &'a [P],
        size: impl Fn(&P) -> usize,
        bytes: impl Fn(&'a P) -> &'a [u8],
    ) -> (usize, u64) {
        let first = self.cells.index(self.tail);
        let (count, cells) = self.fitting(packets, &size, (self.cells.count() - first) as usize);
        if count == 0 {
            return (0, 0);
        }
        let sequence = self.sequence(self.tail);
        self.tail += cells as u64;
        self.clean(self.tail);
        let (mut after, mut sum) = (first + index(cells), 0);
        for packet in packets[..count].iter().rev() {
            let bytes = bytes(packet);
            let at = after - index(cells_for(bytes.len()));
            // SAFETY: there is room for it before the ring's end, so its cells are free.
            unsafe { self.cells.write_packet(at, bytes) };
            match after - at {
                1 => {}
                2 => self.soil_one(at + 1),
                _ => self.soil(at + 1, after),
            }
            let word = sequence | (bytes.len() as u64) << LEN_SHIFT;
            self.cells.word(at).store(word, Ordering::Release);
            sum += bytes.len() as u64;
            after = at;
        }
        (count, sum)
    }

    /// How many of the packets the ring takes and fit into these cells, and the cells that they
    /// have.
    #[inline(always)]
    fn fitting<P>(
        &mut self,
        packets: &[P],
        size: impl Fn(&P) -> usize,
        in_a_row: usize,
    ) -> (usize, usize) {
        let (mut cells, mut longest) = (0, 0);
        for packet in packets {
            cells += cells_for(size(packet));
            longest = longest.max(size(packet));
        }
        let most = in_a_row.min(self.room(cells));
        if cells <= most && longest <= self.longest as usize {
            return (packets.len(), cells);
        }
        let (mut count, mut cells) = (0, 0);
        for packet in packets {
            let more = cells + cells_for(size(packet));
            if more > most || size(packet) > self.longest as usize {
                break;
            }
            (count, cells) = (count + 1, more);
        }
        (count, cells)
    }

    /// Cells that may be written, of the `wanted` ones.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "a ring has fewer cells")]
    fn room(&mut self, wanted: usize) -> usize {
        if self.tail + wanted as u64 + 1 > self.limit {
            // Whether it is enough shows in the limit.
            let _ = self.reserve(wanted as u64);
        }
        self.limit.saturating_sub(self.tail + 1) as usize
    }
}

/// How many cells a packet of `len` bytes takes.
const fn cells_for(len: usize) -> usize {
    (WORD + len).div_ceil(CELL)
}

#[expect(clippy::cast_possible_truncation, reason = "a ring has fewer cells")]
const fn index(place: usize) -> u32 {
    place as u32
}
