//! The receiving end of a ring: takes packets in order, and reports its position now and then.
//!
//! Invariant: no byte that the producer can write is trusted; every packet that this end returns
//! lies inside the ring.

use std::ptr::NonNull;

use super::super::cells::{Cell, Cells, ONE_CELL, cells_of, cells_of_long};
use super::super::sync::Ordering;
use super::watch::Watch;
use super::{ConsumerLine, LEN_SHIFT, Parked, REFERENCE, WRAP, longest_packet, low, sequence};

/// The packet at the consumer's head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::shm) enum Next {
    /// Nothing yet.
    Nothing,
    /// A packet of `len` bytes whose first cell is `at`. It stays until it is given back.
    Packet {
        /// Index of the first cell.
        at: u32,
        /// Bytes of the packet.
        len: u32,
    },
    /// A packet that ends with the name of its data. It also stays until it is given back.
    Reference {
        /// Index of the first cell.
        at: u32,
        /// Bytes of the packet, with the name of the data.
        len: u32,
    },
    /// Content that a correct producer never writes. The ring is unusable.
    Corrupt,
}

/// A packet in the ring.
#[derive(Clone, Copy, Debug)]
pub(in crate::shm) struct At {
    /// Index of the first cell.
    pub(in crate::shm) at: usize,
    /// Bytes of the packet.
    pub(in crate::shm) len: u32,
    /// The number of the packet's cells.
    pub(in crate::shm) cells: usize,
}

/// The receiving end.
#[derive(Debug)]
pub(in crate::shm) struct Consumer {
    cells: Cells,
    line: NonNull<ConsumerLine>,
    pub(super) head: u64,
    /// When the head reaches this position, enough cells have been read to give them back.
    give_at: u64,
    /// The number of cells that are given back together.
    part: u64,
    longest: u32,
}

// SAFETY: as for the producer.
unsafe impl Send for Consumer {}

/// The consumer gives cells back once they amount to this fraction of the ring, unless configured
/// otherwise.
const GIVE_BACK_PART: u64 = 8;

impl Consumer {
    /// The receiving end of an empty ring whose packets have at most `longest` bytes.
    ///
    /// # Safety
    /// `line` outlives the value, and there is no other consumer of these cells.
    pub(in crate::shm) unsafe fn new(
        cells: Cells,
        line: NonNull<ConsumerLine>,
        longest: u32,
    ) -> Self {
        assert!(
            longest <= longest_packet(cells.count()),
            "the ring is too small"
        );
        assert!(
            longest as usize >= ONE_CELL,
            "the fast path takes what fits into a cell"
        );
        let part = u64::from(cells.count()) / GIVE_BACK_PART;
        Self {
            part,
            cells,
            line,
            head: 0,
            give_at: part,
            longest,
        }
    }

    /// The cells, to read a packet from.
    #[inline]
    pub(in crate::shm) const fn cells(&self) -> &Cells {
        &self.cells
    }

    /// Takes the packet at the head if it has more than `short` bytes and takes at most `room`
    /// cells.
    #[cfg(not(loom))]
    #[inline(always)]
    pub(in crate::shm) fn take_long(&mut self, short: u32, room: usize) -> Option<At> {
        let at = self.cells.index(self.head);
        // Acquire: the packet's bytes were written before its word.
        let word = self.cells.word(at).load(Ordering::Acquire);
        let len = low(word >> LEN_SHIFT);
        // Flags are the bits above the length, so the comparison also excludes flags.
        let usual = (short + 1..=self.longest).contains(&len);
        if low(word) != low(sequence(&self.cells, self.head)) || !usual {
            return None;
        }
        let cells = cells_of(len);
        if cells > self.cells.count() - at || cells as usize > room {
            return None;
        }
        self.head += u64::from(cells);
        let (at, cells) = (at as usize, cells as usize);
        Some(At { at, len, cells })
    }

    /// Takes the packets that have come, as long as they have `len` bytes each: at most `most`, and
    /// none after the end of the ring. `CELLS` is the number of cells of such a packet, or 0 if
    /// that is more than two. Returns the index of the first packet's first cell, and the number of
    /// packets, which is 0 if this ring cannot have a packet of this length.
    #[inline(always)]
    pub(in crate::shm) fn take_row<const CELLS: u32>(
        &mut self,
        len: u32,
        most: usize,
    ) -> (usize, usize) {
        let first = self.cells.index(self.head) as usize;
        if CELLS != 1 && len > self.longest {
            return (first, 0);
        }
        let (ring, cells) = (self.cells, cells_in::<CELLS>(len) as usize);
        let most = most.min((ring.count() as usize - first) / cells);
        // Flags are the bits above the length, so the comparison also excludes flags.
        let word = sequence(&ring, self.head) | u64::from(len) << LEN_SHIFT;
        let taken = ring.run_of(first, most * cells, cells, word);
        self.head += taken as u64;
        (first, taken / cells)
    }

    /// Takes the packets that have come, as long as they have up to `longest` bytes each: at most
    /// `most`, and none after the end of the ring. `each` gets the length and the number of cells
    /// of a packet. Returns the index of the first packet's first cell, the number of all cells,
    /// and whether a packet of another kind comes next. No jump depends on a packet's length.
    #[inline(always)]
    pub(in crate::shm) fn take_mixed(
        &mut self,
        most: usize,
        longest: u32,
        mut each: impl FnMut(u32, u32),
    ) -> (usize, usize, bool) {
        let (cells, longest) = (self.cells, longest.min(self.longest));
        let (first, end) = (cells.index(self.head), cells.count());
        let expected = low(sequence(&cells, self.head));
        let (mut at, mut left, mut others) = (first, most, false);
        while left > 0 && at < end {
            // Acquire: the packet's bytes were written before its word.
            let word = cells.word(at).load(Ordering::Acquire);
            if low(word) != expected {
                break;
            }
            // Flags are the bits above the length, so the comparison also finds that there are
            // none.
            let len = low(word >> LEN_SHIFT);
            others = len > longest || cells_of(len) > end - at;
            if others {
                break;
            }
            each(len, cells_of(len));
            at += cells_of(len);
            left -= 1;
        }
        self.head += u64::from(at - first);
        (first as usize, (at - first) as usize, others)
    }

    /// Takes the packets that have come, as long as they have up to `longest` bytes each: at most
    /// `most`, and none after the end of the ring. `longest` must be at least the length of a
    /// packet that fills one cell. `each` gets a packet and its index in the run. Returns the
    /// number of packets, and whether another kind comes next.
    #[inline(always)]
    pub(in crate::shm) fn take_run(
        &mut self,
        most: usize,
        longest: u32,
        mut each: impl FnMut(usize, At),
    ) -> (usize, bool) {
        let (first, end) = (
            self.cells.index(self.head) as usize,
            self.cells.count() as usize,
        );
        let (cells, longest) = (self.cells, longest.min(self.longest));
        let expected = low(sequence(&cells, self.head));
        // The cell before which the run ends if all of its packets have one cell.
        let mut stop = first + most.min(end - first);
        let (mut at, mut count, mut others) = (first, 0, false);
        // The word of the last packet of one cell; before the first one, the word of a packet that
        // fills its cell. Packets often have the same length, and then their words are equal.
        let mut usual = u64::from(expected) | (ONE_CELL as u64) << LEN_SHIFT;
        while at < stop {
            // Acquire: the packet's bytes were written before its word.
            let word = cells.word_at(at).load(Ordering::Acquire);
            if word != usual {
                if low(word) != expected {
                    break;
                }
                // Flags are the bits above the length, so each comparison also excludes flags.
                let len = low(word >> LEN_SHIFT);
                if len as usize > ONE_CELL {
                    others = len > longest || cells_of_long(len) > end - at;
                    if others {
                        break;
                    }
                    let cells = cells_of_long(len);
                    each(count, At { at, len, cells });
                    at += cells;
                    stop = (stop + cells - 1).min(end);
                    count += 1;
                    continue;
                }
                usual = word;
            }
            let (len, cells) = (low(usual >> LEN_SHIFT), 1);
            each(count, At { at, len, cells });
            at += 1;
            count += 1;
        }
        self.head += (at - first) as u64;
        (count, others)
    }

    /// Takes the packet at the head, if there is one.
    #[inline]
    pub(in crate::shm) fn next(&mut self) -> Next {
        let at = self.cells.index(self.head);
        // Acquire: the packet's bytes were written before its word.
        let word = self.cells.word(at).load(Ordering::Acquire);
        if low(word) != low(sequence(&self.cells, self.head)) {
            return Next::Nothing;
        }
        let len = low(word >> LEN_SHIFT);
        // Flags are the bits above the length, so this also excludes flags.
        if len as usize <= ONE_CELL {
            self.head += 1;
            return Next::Packet { at, len };
        }
        self.next_long(at, word)
    }

    /// The most bytes that a packet may have.
    pub(in crate::shm) const fn longest(&self) -> u32 {
        self.longest
    }

    /// True if a packet is at the head.
    #[inline]
    pub(in crate::shm) fn has_next(&self) -> bool {
        // SAFETY: our cells are alive.
        unsafe { self.watch().has_next() }
    }

    /// The place of the next packet, until one is taken.
    #[inline]
    pub(in crate::shm) fn watch(&self) -> Watch {
        self.watch_at(self.head)
    }

    #[inline(always)]
    fn watch_at(&self, position: u64) -> Watch {
        Watch {
            word: self.cells.word_ptr(self.cells.index(position)),
            sequence: low(sequence(&self.cells, position)),
        }
    }

    /// The address up to which a receiver may take packets without this end. A packet that contains
    /// the cell at this address needs this end, because cells must be given back first, or because
    /// the next packet is in the next lap. [`Self::catch_up`] notes the packets that were taken in
    /// that way.
    #[cfg(not(loom))]
    pub(in crate::shm) fn end_of_run(&self) -> usize {
        let until_give_back = self.give_at.saturating_sub(self.head);
        let end = u64::from(self.cells.index(self.head)) + until_give_back;
        let last = self.cells.count() - 1;
        let at = u32::try_from(end).map_or(last, |end| end.min(last));
        self.cells.word_ptr(at).addr().get()
    }

    /// Notes that packets were taken up to this place, from which the next packet is
    /// taken.
    #[inline(always)]
    pub(in crate::shm) fn catch_up(&mut self, watch: Watch) {
        let taken = watch.addr().wrapping_sub(self.watch().addr()) / size_of::<Cell>();
        self.head += taken as u64;
        debug_assert_eq!(watch, self.watch());
    }

    /// Takes the packet at the head, if it is a lone packet that lies before the address `end`. It
    /// uses only the watch, as plain bursts do.
    #[cfg(any(test, fuzzing, feature = "check"))]
    pub(in crate::shm) fn take_by_watch(&mut self, end: usize) -> Option<At> {
        let watch = self.watch();
        // SAFETY: our cells are alive.
        let len = unsafe { watch.next() }.filter(|len| *len <= self.longest)?;
        let (at, cells) = (self.cells.index(self.head) as usize, cells_of(len) as usize);
        // SAFETY: as above, and the caller has the end from us.
        self.catch_up(unsafe { watch.after_lone(cells, end) }?);
        Some(At { at, len, cells })
    }

    /// Gives the cells of all packets taken so far back to the producer, once there are enough of
    /// them.
    #[inline]
    pub(in crate::shm) fn give_back(&mut self) {
        if self.head >= self.give_at {
            self.give_at = self.head + self.part;
            // Release: we have read the packets before the producer overwrites them.
            self.line().consumed.store(self.head, Ordering::Release);
        }
    }

    /// All cells before this position were given back.
    pub(super) const fn given_back(&self) -> u64 {
        self.give_at - self.part
    }

    /// Sets the number of cells that are given back together; `None`: an eighth of the ring.
    pub(in crate::shm) fn set_part(&mut self, cells: Option<u32>) {
        let most = u64::from(self.cells.count()) / GIVE_BACK_PART;
        let given_back = self.given_back();
        self.part = cells.map_or(most, |cells| u64::from(cells).clamp(1, most));
        self.give_at = given_back + self.part;
    }

    /// Asks the producer to ring the doorbell, or not to. After the caller has asked for some
    /// rings, it must run a sequentially consistent fence and look at these rings once more.
    #[inline]
    pub(in crate::shm) fn set_parked(&self, parked: Parked) {
        self.line().parked.store(parked as u32, Ordering::Relaxed);
    }

    /// Asks the producer to stop ringing. Returns true if the mark was [`Parked::Awake`]. If the
    /// consumer had set [`Parked::Asleep`], the producer has replaced that mark and is sending a
    /// message.
    #[cold]
    pub(in crate::shm) fn unpark(&self) -> bool {
        let mark = self
            .line()
            .parked
            .swap(Parked::No as u32, Ordering::Relaxed);
        mark == Parked::Awake as u32
    }

    /// Asks the producer to put the data of later packets into the ring.
    #[cold]
    pub(in crate::shm) fn ask_for_copies(&self) {
        self.line().copies.store(1, Ordering::Relaxed);
    }

    #[inline(always)]
    fn next_long(&mut self, at: u32, word: u64) -> Next {
        let (mut at, mut word) = (at, word);
        if word & !u64::from(u32::MAX) == WRAP {
            // At the first cell there is nothing to skip; an endless chain of markers ends here.
            if at == 0 {
                return Next::Corrupt;
            }
            self.head += u64::from(self.cells.count() - at);
            at = 0;
            word = self.cells.word(at).load(Ordering::Acquire);
            if low(word) != low(sequence(&self.cells, self.head)) {
                return Next::Nothing;
            }
        }
        let len = low((word & !REFERENCE) >> LEN_SHIFT);
        if len > self.longest || cells_of(len) > self.cells.count() - at {
            return Next::Corrupt;
        }
        self.head += u64::from(cells_of(len));
        match word & REFERENCE {
            0 => Next::Packet { at, len },
            _ => Next::Reference { at, len },
        }
    }

    #[inline]
    fn line(&self) -> &ConsumerLine {
        // SAFETY: the line outlives us and consists of atomics.
        unsafe { self.line.as_ref() }
    }
}

/// The number of cells of a packet of this length: `CELLS`, or computed if that is 0.
#[inline(always)]
const fn cells_in<const CELLS: u32>(len: u32) -> u32 {
    const { assert!(CELLS <= 2) };
    match CELLS {
        0 => cells_of(len),
        known => {
            debug_assert!(cells_of(len) == known);
            known
        }
    }
}
