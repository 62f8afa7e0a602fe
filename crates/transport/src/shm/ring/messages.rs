//! Packets of a header and a long message that lies elsewhere: it is copied once, from there into
//! the ring. A packet's first line has the header; its other lines have no meaning.
//!
//! The order of stores is that of `run`: the last packet comes first, and in a packet the last
//! bytes, so that the consumer fetches no line that is still being written.

use dunlin_wire::HEADER_LEN;

use super::super::cells::{CELL, HALF, WORD};
use super::super::staged::MOST_LINES;
use super::Producer;
use super::lengths::SHORT;
use super::run::Fill;

const _: () = assert!(WORD + HEADER_LEN == HALF);

impl Producer {
    /// Sends the first of the packets that begin in these lines, as many as fit before the ring's
    /// end. Each has `len` bytes. Returns their number. `message` finds the message of a packet by
    /// its place; if it is not as long as the packet says, the packet leaves with a header of
    /// zeros, and its receiver drops it.
    #[inline(always)]
    pub(in crate::shm) fn push_messages<'a>(
        &mut self,
        lines: &[[u8; CELL]],
        len: usize,
        message: impl Fn(usize) -> &'a [u8],
    ) -> usize {
        let cells = (WORD + len).div_ceil(CELL);
        let first = self.cells.index(self.tail);
        let in_a_row = (self.cells.count() - first) as usize;
        let most = lines.len().min(in_a_row).min(self.room(lines.len()));
        let packets = most / cells;
        if packets == 0 || len > self.longest as usize || cells > MOST_LINES || len <= SHORT {
            return 0;
        }
        let (count, fill) = (packets * cells, self.fill());
        self.tail += count as u64;
        self.clean(self.tail);
        let mut place = count;
        for packet in (0..packets).rev() {
            place -= cells;
            // SAFETY: there is room for all of the lines before the ring's end, so their cells are
            // free; and the packets are not short.
            unsafe { fill.message(place, &lines[place], message(packet), len) };
        }
        let until = self.lap_after(self.tail);
        self.dirty.on_row(first, count, cells, until);
        packets
    }

    /// Sends a packet of `len` bytes, which begins in the first of these lines, if no other work is
    /// needed. False: nothing was sent.
    #[inline(always)]
    pub(in crate::shm) fn push_lone_message<'a>(
        &mut self,
        [line, ..]: &[[u8; CELL]; MOST_LINES],
        len: usize,
        message: impl FnOnce() -> &'a [u8],
    ) -> bool {
        let (fill, more) = (self.fill(), (WORD + len).div_ceil(CELL) - 1);
        let after = self.tail + more as u64 + 1;
        if !self.messages.contain(len) || fill.first + more >= self.cells.count() as usize {
            return false;
        }
        if after >= self.limit {
            return false;
        }
        self.tail = after;
        // This comes before the packet, so that little must stay in registers meanwhile.
        self.note_lone::<false>(fill.first + 1, more);
        // SAFETY: the limit says that the cells are free, the ring does not end before them, and
        // the packet is not short.
        unsafe { fill.message(0, line, message(), len) };
        true
    }
}

impl Fill {
    /// Writes a packet of several cells, whose header is in this line.
    ///
    /// # Safety
    /// The cells of a packet of `len` bytes are free, and lie before the ring's end. `len` is more
    /// than [`SHORT`].
    #[inline(always)]
    unsafe fn message(self, place: usize, line: &[u8; CELL], message: &[u8], len: usize) {
        let at = self.first + place;
        if HEADER_LEN + message.len() != len {
            // SAFETY: as the caller promises.
            return unsafe { self.nothing(at, len) };
        }
        let header = line.first_chunk().expect("a line is longer");
        // SAFETY: the cells are the caller's, and have room for header and message, which is longer
        // than four halves.
        unsafe {
            // The length comes from the slice: if it were computed from `len`, the compiler would
            // keep many values in memory.
            self.cells
                .write_message(at, message.as_ptr(), message.len());
            self.cells.write_header(at, header);
        }
        self.show(at, len);
    }

    /// Writes a packet that its receiver drops.
    ///
    /// # Safety
    /// As for [`Self::message`].
    #[cold]
    #[inline(never)]
    unsafe fn nothing(self, at: usize, len: usize) {
        // SAFETY: the cell is the caller's.
        unsafe { self.cells.write_header(at, &[0; HALF]) };
        self.show(at, len);
    }
}
