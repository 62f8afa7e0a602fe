//! The receiving end of a ring: takes packets in order, and says now and then how far it is.
//!
//! Invariant: nothing that the producer can write is trusted; what is shown lies inside the ring.

use std::ptr::NonNull;

use super::super::cells::{Cells, ONE_CELL, cells_of};
use super::super::sync::{AtomicU64, Ordering};
use super::{ConsumerLine, LEN_SHIFT, REFERENCE, WRAP, longest_packet, low, sequence};

/// What stands at the consumer's head.
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
    /// A packet at whose end stands where its data lies. It stays likewise.
    Reference {
        /// Index of the first cell.
        at: u32,
        /// Bytes of the packet, with the name of the data.
        len: u32,
    },
    /// Something that no producer of ours writes; the ring is of no use any more.
    Corrupt,
}

/// What stands at the consumer's head, if only packets of one cell count.
#[cfg(not(loom))]
pub(in crate::shm) enum Small {
    /// Nothing yet.
    Nothing,
    /// Something, but not a packet of one cell.
    Other,
    /// A packet of `len` bytes.
    Packet { from: NonNull<u8>, len: u32 },
}

/// The receiving end.
#[derive(Debug)]
pub(in crate::shm) struct Consumer {
    cells: Cells,
    line: NonNull<ConsumerLine>,
    pub(super) head: u64,
    pub(super) given_back: u64,
    /// So many cells are given back together.
    part: u64,
    longest: u32,
}

/// Where a consumer will find its next packet, apart from the consumer: what a receiver with many
/// rings polls.
#[derive(Clone, Copy, Debug)]
pub(in crate::shm) struct Watch {
    word: NonNull<AtomicU64>,
    sequence: u32,
}

// SAFETY: as for the producer.
unsafe impl Send for Consumer {}

/// The consumer gives cells back when they are this part of the ring, unless it was told otherwise.
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
        Self {
            part: u64::from(cells.count()) / GIVE_BACK_PART,
            cells,
            line,
            head: 0,
            given_back: 0,
            longest,
        }
    }

    /// The cells, to read a packet from.
    #[inline]
    pub(in crate::shm) const fn cells(&self) -> &Cells {
        &self.cells
    }

    /// Takes the packet at the head if it lies in one cell.
    #[cfg(not(loom))]
    #[inline(always)]
    pub(in crate::shm) fn next_small(&mut self) -> Small {
        let at = self.cells.index(self.head);
        // Acquire: the packet's bytes were written before its word.
        let word = self.cells.word(at).load(Ordering::Acquire);
        if low(word) != low(sequence(&self.cells, self.head)) {
            return Small::Nothing;
        }
        let len = low(word >> LEN_SHIFT);
        // Flags stand above the length, so this also says that there are none.
        if len as usize > ONE_CELL {
            return Small::Other;
        }
        self.head += 1;
        Small::Packet {
            from: self.cells.bytes(at),
            len,
        }
    }

    /// Takes packets of one cell, `most` at most, until there is something else or the ring ends.
    /// `each` gets the packet's place in the run, its cell and its length. Returns how many there
    /// were, and whether something else comes next.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "a ring has few cells")]
    pub(in crate::shm) fn take_run(
        &mut self,
        most: usize,
        mut each: impl FnMut(usize, u32, u32),
    ) -> (usize, bool) {
        let first = self.cells.index(self.head);
        let most = most.min((self.cells.count() - first) as usize);
        let expected = low(sequence(&self.cells, self.head));
        let (mut count, mut others) = (0, false);
        while count < most {
            let at = first + count as u32;
            // Acquire: the packet's bytes were written before its word.
            let word = self.cells.word(at).load(Ordering::Acquire);
            if low(word) != expected {
                break;
            }
            let len = low(word >> LEN_SHIFT);
            // Flags stand above the length, so this also says that there are none.
            if len as usize > ONE_CELL {
                others = true;
                break;
            }
            each(count, at, len);
            count += 1;
        }
        self.head += count as u64;
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
        // Flags stand above the length, so this also says that there are none.
        if len as usize <= ONE_CELL {
            self.head += 1;
            return Next::Packet { at, len };
        }
        self.next_long(at, word)
    }

    /// Most bytes that a packet may have.
    pub(in crate::shm) const fn longest(&self) -> u32 {
        self.longest
    }

    /// True if something stands at the head.
    #[inline]
    pub(in crate::shm) fn has_next(&self) -> bool {
        // SAFETY: our cells are alive.
        unsafe { self.watch().has_next() }
    }

    /// The place of the next packet, until one is taken.
    #[inline]
    pub(in crate::shm) fn watch(&self) -> Watch {
        Watch {
            word: NonNull::from(self.cells.word(self.cells.index(self.head))),
            sequence: low(sequence(&self.cells, self.head)),
        }
    }

    /// Gives the cells of all packets taken so far back to the producer, now and then.
    #[inline]
    pub(in crate::shm) fn give_back(&mut self) {
        if self.head - self.given_back >= self.part {
            self.given_back = self.head;
            // Release: we have read the packets before the producer overwrites them.
            self.line().consumed.store(self.head, Ordering::Release);
        }
    }

    /// From now on so many cells are given back together; `None`: an eighth of the ring.
    pub(in crate::shm) fn set_part(&mut self, cells: Option<u32>) {
        let most = u64::from(self.cells.count()) / GIVE_BACK_PART;
        self.part = cells.map_or(most, |cells| u64::from(cells).clamp(1, most));
    }

    /// Tells the producer to ring the doorbell, or no longer to. After it has said so for one or
    /// for several rings, the caller runs a sequentially consistent fence and looks once more.
    #[inline]
    pub(in crate::shm) fn set_parked(&self, parked: bool) {
        self.line()
            .parked
            .store(u32::from(parked), Ordering::Relaxed);
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

impl Watch {
    /// How many bytes the packet has that stands there, with its flags above the length.
    ///
    /// # Safety
    /// The cells of the ring are alive.
    #[cfg(not(loom))]
    #[inline(always)]
    pub(in crate::shm) unsafe fn next(&self) -> Option<u32> {
        // SAFETY: as the caller promises.
        let word = unsafe { self.word.as_ref() }.load(Ordering::Acquire);
        (low(word) == self.sequence).then_some(low(word >> LEN_SHIFT))
    }

    /// True if something stands there.
    ///
    /// # Safety
    /// The cells of the ring are alive.
    #[inline]
    pub(in crate::shm) unsafe fn has_next(&self) -> bool {
        // SAFETY: as the caller promises.
        low(unsafe { self.word.as_ref() }.load(Ordering::Acquire)) == self.sequence
    }
}
