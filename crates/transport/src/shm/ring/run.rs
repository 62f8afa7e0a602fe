//! Runs of packets, written together.
//!
//! A store to a line that the other core has read takes as long as a hundred instructions, and
//! later stores wait for it. So the cells of a run are written in one go, from the last to the
//! first, and so are the cells of a packet. The consumer polls only the first cell, so it does not
//! fetch a line that is still being written. The words of later packets appear before the words of
//! earlier ones. A consumer that reads in order does not notice: the first packet's word is stored
//! last, when all others are visible.
//!
//! Invariant: the tail, the only cell that the consumer polls, is clean before the first word
//! appears (`ring`).

use std::hint::black_box;

use super::super::cells::{CELL, Cells, HALF, ONE_CELL, TWO_CELLS, WORD};
use super::super::staged::{MOST_LINES, Staged};
use super::super::sync::Ordering;
use super::dirty::Dirty;
use super::{LEN_SHIFT, Producer};

impl Producer {
    /// Sends packets of one cell each; `cell` returns the bytes of a packet's cell and the packet's
    /// length. It sends as many of the first packets as fit before the ring's last cell. Returns
    /// their number, and the sum of their lengths.
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
        let fill = self.fill();
        self.tail += count as u64;
        self.clean(self.tail);
        let mut sum = 0;
        for (place, packet) in packets[..count].iter().enumerate().rev() {
            let (bytes, len) = cell(packet);
            // SAFETY: there is room for it, so the cell is free.
            unsafe { fill.one(place, bytes, len) };
            sum += len as u64;
        }
        (count, sum)
    }

    /// Sends packets of `len` bytes each, whose lines have the layout of cells: as many of the
    /// first as fit before the ring's last cell. Returns their number.
    #[inline(always)]
    pub(in crate::shm) fn push_row(&mut self, lines: &[[u8; CELL]], len: usize) -> usize {
        if len > ONE_CELL {
            return match halves_after_first(len) {
                1 => self.push_long_row::<1>(lines, len),
                2 => self.push_long_row::<2>(lines, len),
                3 => self.push_long_row::<3>(lines, len),
                4 => self.push_long_row::<4>(lines, len),
                5 => self.push_long_row::<5>(lines, len),
                6 => self.push_long_row::<6>(lines, len),
                _ => self.push_long_row::<0>(lines, len),
            };
        }
        let first = self.cells.index(self.tail);
        let in_a_row = (self.cells.count() - first) as usize;
        let count = lines.len().min(in_a_row).min(self.room(lines.len()));
        if count == 0 {
            return 0;
        }
        let fill = self.fill();
        self.tail += count as u64;
        self.clean(self.tail);
        for (place, line) in lines[..count].iter().enumerate().rev() {
            // SAFETY: there is room for it, so the cell is free.
            unsafe { fill.settled(place, line.last_chunk().expect("a line is longer"), len) };
        }
        count
    }

    /// Like [`Self::push_row`], for packets of several cells each. `HALVES` is the number of half
    /// cells that they have after the first cell; 0 makes code for any number. This is a separate
    /// function, because it needs all registers.
    #[inline(never)]
    fn push_long_row<const HALVES: usize>(&mut self, lines: &[[u8; CELL]], len: usize) -> usize {
        let cells = match HALVES {
            0 => cells_for(len),
            halves => 1 + halves.div_ceil(2),
        };
        let first = self.cells.index(self.tail);
        let in_a_row = (self.cells.count() - first) as usize;
        let most = lines.len().min(in_a_row).min(self.room(lines.len()));
        let packets = most / cells;
        if packets == 0 || len > self.longest as usize {
            return 0;
        }
        let (count, fill) = (packets * cells, self.fill());
        self.tail += count as u64;
        self.clean(self.tail);
        let mut place = count;
        for own in lines[..count].rchunks_exact(cells) {
            place -= cells;
            // SAFETY: there is room for all of the lines before the ring's end, so their cells are
            // free.
            unsafe { fill.many::<HALVES>(place, own, len) };
        }
        let until = self.lap_after(self.tail);
        self.dirty.on_row(first, count, cells, until);
        packets
    }

    /// Sends staged packets of any length: as many of the first as fit before the ring's last cell,
    /// up to one that is longer than the ring carries. Returns their number, and the sum of their
    /// lengths.
    #[inline(always)]
    pub(in crate::shm) fn push_staged<S: Staged>(
        &mut self,
        staged: &S,
        packets: &[S::Packet],
    ) -> (usize, u64) {
        let (lines, first) = (staged.lines(packets), self.cells.index(self.tail));
        let in_a_row = (self.cells.count() - first) as usize;
        let most = in_a_row.min(self.room(lines.len())).min(Dirty::RUN);
        let (mut packets, mut lines) = (packets, lines);
        if lines.len() > most || self.longest < S::LONGEST {
            packets = self.fitting(staged, packets, most);
            lines = staged.lines(packets);
        }
        if lines.is_empty() {
            return (0, 0);
        }
        let (count, fill) = (lines.len(), self.fill());
        self.tail += count as u64;
        self.clean(self.tail);
        if count == packets.len() {
            // Each packet is one line.
            // SAFETY: there is room for all of the lines before the ring's end, so their cells are
            // free.
            return (count, unsafe { fill.singles(staged, lines, packets) });
        }
        // If almost all packets have one cell, or almost all have more, jumps that depend on that
        // are predicted well.
        let all = packets.len();
        let many = (count - all).min(all);
        // SAFETY: there is room for all of the lines before the ring's end, so their cells are
        // free.
        let (sum, data) = unsafe {
            match many.min(all - many) <= all / 8 {
                true => fill.packets::<false, _>(staged, lines, packets),
                false => fill.packets::<true, _>(staged, lines, packets),
            }
        };
        let until = self.lap_after(self.tail);
        self.dirty.on_run(first, count, data, until);
        (packets.len(), sum)
    }

    /// The number of packets, from the first on, that fit into `most` cells and are not too long
    /// for the ring.
    #[inline(never)]
    fn fitting<'a, S: Staged>(
        &self,
        staged: &S,
        packets: &'a [S::Packet],
        most: usize,
    ) -> &'a [S::Packet] {
        let mut cells = 0;
        let fits = |packet: &&S::Packet| {
            let len = staged.size(**packet);
            cells += cells_for(len);
            cells <= most && len <= self.longest as usize
        };
        let count = packets.iter().take_while(fits).count();
        &packets[..count]
    }

    /// Sends a packet of one cell if that needs no other work. False: nothing was sent. `line` has
    /// the packet's `len` bytes, and leftover bytes after them.
    #[inline(always)]
    pub(in crate::shm) fn push_lone(&mut self, line: &[u8; ONE_CELL], len: usize) -> bool {
        let after = self.tail + 1;
        if after + 1 > self.limit || self.dirty.is_possible(after) {
            return false;
        }
        let fill = self.fill();
        self.tail = after;
        // SAFETY: the limit says that the cell is free.
        unsafe { fill.whole(0, line, len) };
        true
    }

    /// Like [`Self::push_lone`], for a packet of several cells, which begins in the first of these
    /// lines. `TWO`: it has two cells.
    #[inline(always)]
    pub(in crate::shm) fn push_lone_long<const TWO: bool>(
        &mut self,
        [first, rest @ ..]: &[[u8; CELL]; MOST_LINES],
        len: usize,
    ) -> bool {
        let (fill, halves) = (self.fill(), halves_after_first(len));
        let more = if TWO { 1 } else { halves.div_ceil(2) };
        let after = self.tail + more as u64 + 1;
        if len > self.longest as usize || fill.first + more >= self.cells.count() as usize {
            return false;
        }
        if after >= self.limit || more > rest.len() {
            return false;
        }
        self.tail = after;
        // This comes before the packet, so that little must stay in registers meanwhile.
        self.note_lone::<TWO>(fill.first + 1, more);
        // SAFETY: the limit says that the cells are free, and the ring does not end before them.
        unsafe {
            match TWO {
                true => self
                    .cells
                    .write_second(fill.first, &rest[0], len - ONE_CELL),
                false => self.cells.write_rest(fill.first, rest.as_ptr(), halves),
            }
            fill.whole(0, first.last_chunk().expect("a line is longer"), len);
        }
        true
    }

    /// Notes that `count` cells from `at` on, up to the tail, hold data, and makes sure that the
    /// tail's word does not look like a packet. `ONE`: the count is 1.
    #[inline(always)]
    pub(super) fn note_lone<const ONE: bool>(&mut self, at: usize, count: usize) {
        let until = self.lap_after(self.tail);
        if !ONE {
            self.clean(self.tail);
            self.dirty.on_lone(at, count, until);
            return;
        }
        let tail = self.cells.index(self.tail);
        if self.dirty.on_second(at, tail, until) {
            self.cells.word(tail).store(0, Ordering::Relaxed);
        }
    }

    /// The cells from the tail to the ring's last, to write packets to.
    #[inline(always)]
    pub(super) fn fill(&self) -> Fill {
        Fill {
            cells: self.cells,
            first: self.cells.index(self.tail) as usize,
            sequence: self.sequence(self.tail),
            #[cfg(loom)]
            shows_first: self.shows_first,
        }
    }
}

/// Consecutive cells, and the low half of a word that publishes a packet there in this lap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fill {
    pub(super) cells: Cells,
    pub(super) first: usize,
    sequence: u64,
    #[cfg(loom)]
    shows_first: bool,
}

impl Fill {
    /// None of these cells.
    pub(super) const fn nowhere(cells: Cells) -> Self {
        Self {
            cells,
            first: 0,
            sequence: 0,
            #[cfg(loom)]
            shows_first: false,
        }
    }

    /// Writes packets of any lengths. Returns the sum of their bytes, and a set bit for each of
    /// their cells that holds data in place of a word; the lowest bit is that of the run's first
    /// cell. `MIXED`: packets of one and of two cells come in no order.
    ///
    /// # Safety
    /// There is a free cell for each line, and all of them lie before the ring's end.
    #[inline(always)]
    unsafe fn packets<const MIXED: bool, S: Staged>(
        self,
        staged: &S,
        mut lines: &[[u8; CELL]],
        packets: &[S::Packet],
    ) -> (u64, u64) {
        let (mut sum, mut data, mut nowhere) = (0, 0, [0; CELL]);
        // The compiler must not see that `nowhere` is never read: it would turn the write into a
        // jump.
        let nowhere = black_box(&raw mut nowhere);
        for packet in packets.iter().rev() {
            let len = staged.size(*packet);
            // SAFETY: as the caller promises, and the array is there until the end.
            data |= unsafe { self.last::<MIXED>(&mut lines, len, nowhere) };
            sum += len as u64;
        }
        (sum, data)
    }

    /// Writes the last packet of these lines, which has `len` bytes, and removes its lines. Line
    /// `i` of the run belongs to cell `i` of the run. Returns a bit for each cell of the packet,
    /// set if the cell holds data instead of a word; the lowest bit is the run's first cell.
    ///
    /// # Safety
    /// There is a free cell for each line, and all of them lie before the ring's end. `nowhere` is
    /// good for writing.
    #[inline(always)]
    unsafe fn last<const MIXED: bool>(
        self,
        lines: &mut &[[u8; CELL]],
        len: usize,
        nowhere: *mut [u8; CELL],
    ) -> u64 {
        const LINES: &str = "a packet's lines are as many as it needs";
        let all = *lines;
        // SAFETY: as the caller promises; the cells are those of the lines cut off.
        unsafe {
            if MIXED && len <= TWO_CELLS {
                let second = usize::from(len > ONE_CELL);
                let before = all.len().checked_sub(1 + second).expect(LINES);
                let (before, own) = all.split_at(before);
                *lines = before;
                self.one_or_two(before.len(), own, len, nowhere);
                return (second as u64) << 1 << before.len();
            }
            if len <= ONE_CELL {
                let (line, before) = all.split_last().expect(LINES);
                *lines = before;
                let line = line.last_chunk().expect("a line is longer");
                self.whole(before.len(), line, len);
                return 0;
            }
            if len <= TWO_CELLS {
                let (before, both) = all.split_last_chunk::<2>().expect(LINES);
                *lines = before;
                self.two(before.len(), both, len);
                return 2 << before.len();
            }
            let count = cells_for(len);
            let before = all.len().checked_sub(count).expect(LINES);
            let (before, many) = all.split_at(before);
            *lines = before;
            self.many::<0>(before.len(), many, len);
            u64::MAX >> (Dirty::RUN + 1 - count) << (before.len() + 1)
        }
    }

    /// Writes packets of one line each, and returns the sum of their lengths.
    ///
    /// # Safety
    /// There is a free cell for each packet, and all of them lie before the ring's end.
    #[inline(always)]
    unsafe fn singles<S: Staged>(
        self,
        staged: &S,
        lines: &[[u8; CELL]],
        packets: &[S::Packet],
    ) -> u64 {
        let mut sum = 0;
        // The loop goes by index, because two iterators from the end cost twice as much.
        for place in (0..packets.len()).rev() {
            let (line, len) = (&lines[place], staged.size(packets[place]));
            // SAFETY: as the caller promises.
            unsafe { self.whole(place, line.last_chunk().expect("a line is longer"), len) };
            sum += len as u64;
        }
        sum
    }

    /// Writes a packet of one cell, together with the bytes that follow it in its line.
    ///
    /// # Safety
    /// The cell is free.
    #[inline(always)]
    pub(super) unsafe fn whole(self, place: usize, bytes: &[u8; ONE_CELL], len: usize) {
        let at = self.first + place;
        #[cfg(loom)]
        if self.shows_first {
            self.show(at, len);
        }
        // SAFETY: the cell is the caller's.
        unsafe { self.cells.write_whole(at, bytes) };
        self.show(at, len);
    }

    /// # Safety
    /// As for [`Self::whole`], which does the same for a packet that is in no row.
    #[inline(always)]
    unsafe fn settled(self, place: usize, bytes: &[u8; ONE_CELL], len: usize) {
        // SAFETY: the cell is the caller's.
        unsafe { self.cells.write_settled(self.first + place, bytes) };
        self.show(self.first + place, len);
    }

    /// Writes a packet of one cell, and nothing after it.
    ///
    /// # Safety
    /// The cell is free, and the packet fits into it.
    #[inline(always)]
    unsafe fn one(self, place: usize, bytes: &[u8; ONE_CELL], len: usize) {
        let at = self.first + place;
        // SAFETY: the cell is the caller's, and has room for as much as is written.
        unsafe {
            match len {
                ONE_CELL => self.cells.write_whole(at, bytes),
                // A copy that is known to be short needs no call.
                _ => self.cells.write(at, 0, bytes.as_ptr(), len.min(ONE_CELL)),
            }
        }
        self.show(at, len);
    }

    /// Writes a packet of two cells.
    ///
    /// # Safety
    /// The cells are free, and the packet needs both of them.
    #[inline(always)]
    unsafe fn two(self, place: usize, [first, second]: &[[u8; CELL]; 2], len: usize) {
        let at = self.first + place;
        // SAFETY: the cells are the caller's, and hold the packet.
        unsafe {
            let first = first.last_chunk().expect("a line is longer");
            self.cells.write_second(at, second, len - ONE_CELL);
            self.cells.write_whole(at, first);
        }
        self.show(at, len);
    }

    /// Writes a packet of one or two cells, as many as it has lines. No jump depends on the number:
    /// the processor would mispredict it where lengths change at random.
    ///
    /// # Safety
    /// The cells are free, and the packet needs both of them if there are two lines. `nowhere` is
    /// good for writing.
    #[inline(always)]
    unsafe fn one_or_two(
        self,
        place: usize,
        own: &[[u8; CELL]],
        len: usize,
        nowhere: *mut [u8; CELL],
    ) {
        let ([first, ..], [.., second]) = (own, own) else {
            return;
        };
        let at = self.first + place;
        // SAFETY: the cells are the caller's, and hold the packet.
        unsafe {
            self.cells.write_possible_second(at, second, len, nowhere);
            let first = first.last_chunk().expect("a line is longer");
            self.cells.write_whole(at, first);
        }
        self.show(at, len);
    }

    /// Writes a packet of several cells. `HALVES` is the number of halves of cells that it has
    /// after the first cell, or 0 if the code is that for any number.
    ///
    /// # Safety
    /// The cells are free, and the packet needs all of the lines.
    #[inline(always)]
    unsafe fn many<const HALVES: usize>(self, place: usize, lines: &[[u8; CELL]], len: usize) {
        let halves = halves_after_first(len);
        debug_assert!(HALVES == 0 || HALVES == halves);
        let (first, rest) = lines.split_first().expect("a packet has several");
        assert!(
            halves.div_ceil(2) <= rest.len(),
            "a packet's lines are as many as it needs"
        );
        let at = self.first + place;
        // SAFETY: the cells are the caller's, and as many as the lines.
        unsafe {
            let halves = if HALVES == 0 { halves } else { HALVES };
            self.cells.write_rest(at, rest.as_ptr(), halves);
            self.settled(place, first.last_chunk().expect("a line is longer"), len);
        }
    }

    /// Writes the word of a packet, which publishes it, after all of its other bytes.
    #[inline(always)]
    pub(super) fn show(self, at: usize, len: usize) {
        let word = self.sequence | (len as u64) << LEN_SHIFT;
        self.cells.word_at(at).store(word, Ordering::Release);
    }
}

/// The number of half cells that a packet of several cells has after its first cell.
#[inline(always)]
pub(super) const fn halves_after_first(len: usize) -> usize {
    (len - ONE_CELL).div_ceil(HALF)
}

/// The number of cells that a packet of `len` bytes takes.
const fn cells_for(len: usize) -> usize {
    (WORD + len).div_ceil(CELL)
}
