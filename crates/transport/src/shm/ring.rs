//! The ring: one producer, one consumer, packets of whole cells (`docs/decisions/shm-ring.md`).
//!
//! A packet is published by one store of its word, after all of its bytes. The consumer polls one
//! place only, the word of the cell at its head, so the transfer of a small packet costs one cache
//! line. The word contains the lap, so the consumer need not erase the packets that it has read.
//!
//! Invariants:
//! - The word at the producer's tail never looks published: it is zero, or was written in an
//!   earlier lap. Continuation cells hold arbitrary bytes, so the producer remembers these cells
//!   (`dirty`), and zeroes the word at the next tail before it publishes.
//! - At least one cell is free, so that zeroing never touches an unread packet.
//! - Packets do not wrap: a marker sends the consumer to the first cell. No packet is longer than
//!   half of the ring, so an empty ring has room for every packet.
//! - No byte that the other side can write is trusted: the consumer checks length and place of each
//!   packet, and the producer checks that the consumer's position is possible.
//!
//! Called by `rx` and `tx`. The two ends are in one process or in two.

mod consumer;
mod dirty;
mod lengths;
pub(super) mod lent;
mod messages;
mod run;
pub(super) mod watch;

use std::ptr::NonNull;

use super::cells::{Cells, ONE_CELL, cells_of};
use super::sync::{AtomicU32, AtomicU64, Ordering, fence};

use dirty::Dirty;
use lengths::Lengths;

#[cfg(not(loom))]
pub(super) use consumer::At;
#[cfg(any(test, not(loom)))]
pub(super) use consumer::{Consumer, Next};

/// The consumer's reports to the producer, in a cache line of its own.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub(super) struct ConsumerLine {
    /// Everything before this position may be overwritten. It lags by up to an eighth of the ring.
    consumed: AtomicU64,
    /// A [`Parked`].
    parked: AtomicU32,
    /// Not zero: the consumer cannot map the memory that packets name, and wants later packets to
    /// have their data in the ring.
    copies: AtomicU32,
}

/// Whether the consumer polls the ring. Senders of older releases distinguish only zero from other
/// values, and read only the doorbell to decide whether to wake the consumer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(super) enum Parked {
    /// The consumer polls the ring.
    No = 0,
    /// The consumer does not poll the ring until its doorbell rings.
    Awake = 1,
    /// The consumer sleeps, or has slept since it last polled the ring. The producer must wake it
    /// whatever the doorbell shows, because other peers can write into the doorbell.
    Asleep = 2,
}

/// The reason why a packet was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refused {
    /// There is no room for the packet.
    Full,
    /// The packet is longer than the ring carries.
    TooLong,
    /// The consumer claims an impossible position, so the ring is unusable.
    Broken,
}

/// The sending end.
#[derive(Debug)]
pub(super) struct Producer {
    cells: Cells,
    line: NonNull<ConsumerLine>,
    tail: u64,
    /// The tail, and one free cell after it, may advance to this position before the producer must
    /// read `consumed` again.
    limit: u64,
    longest: u32,
    /// The lengths of the packets that `push_lone_message` can send.
    messages: Lengths,
    broken: bool,
    dirty: Dirty,
    /// A planted bug: words are stored before the bodies of their packets.
    #[cfg(loom)]
    shows_first: bool,
}

// SAFETY: the ends own nothing that is bound to a thread; they share only atomics, and cells that
// belong to one end at a time.
unsafe impl Send for Producer {}

const LEN_SHIFT: u32 = 32;
const FLAGS_SHIFT: u32 = 48;
/// This is not a packet. The next packet is in the first cell.
const WRAP: u64 = 1 << FLAGS_SHIFT;
/// The packet only names its data, which lies elsewhere.
const REFERENCE: u64 = 2 << FLAGS_SHIFT;

/// Longest packet that a ring of `cells` cells carries, in bytes.
pub(super) const fn longest_packet(cells: u32) -> u32 {
    // Half of the ring, less one word. The word has 16 bits for the length.
    let half = cells.saturating_mul(32) - 8;
    if half < 0xFFFF { half } else { 0xFFFF }
}

#[cfg(not(loom))]
#[cfg(any(test, fuzzing, feature = "check"))]
impl ConsumerLine {
    /// Claims a position, as a hostile consumer could.
    pub(super) fn pretend(&self, consumed: u64) {
        self.consumed.store(consumed, Ordering::Relaxed);
    }
}

impl Producer {
    /// The sending end of an empty ring whose packets have at most `longest` bytes.
    ///
    /// # Safety
    /// `line` outlives the value, and there is no other producer of these cells.
    pub(super) unsafe fn new(cells: Cells, line: NonNull<ConsumerLine>, longest: u32) -> Self {
        assert!(
            longest <= longest_packet(cells.count()),
            "the ring is too small"
        );
        Self {
            limit: u64::from(cells.count()),
            dirty: Dirty::new(cells.count()),
            cells,
            line,
            tail: 0,
            longest,
            messages: Lengths::up_to(longest),
            broken: false,
            #[cfg(loom)]
            shows_first: false,
        }
    }

    /// Sends a packet that consists of `head` and of the `data_len` bytes at `data`.
    ///
    /// # Errors
    /// See [`Refused`]; then nothing is sent or queued.
    ///
    /// # Safety
    /// `data` is good for reading `data_len` bytes, which lie outside the ring.
    #[inline(always)]
    pub(super) unsafe fn push(
        &mut self,
        head: &[u8],
        data: *const u8,
        data_len: usize,
    ) -> Result<(), Refused> {
        if head.len() + data_len > ONE_CELL || self.tail + 2 > self.limit {
            // SAFETY: as the caller promises.
            return unsafe { self.push_slowly(head, data, data_len, 0) };
        }
        let at = self.cells.index(self.tail);
        // SAFETY: the cell is free, because the tail is below the limit, and holds the packet.
        unsafe {
            self.cells.write(at as usize, 0, head.as_ptr(), head.len());
            self.cells.write(at as usize, head.len(), data, data_len);
        }
        let start = self.tail;
        self.advance(start + 1);
        self.show(start, head.len() + data_len, 0);
        Ok(())
    }

    /// Sends a packet whose data lies elsewhere: `head`, and after it the name of the data.
    ///
    /// # Errors
    /// As for [`Self::push`].
    #[cfg(not(loom))]
    pub(super) fn push_reference(&mut self, head: &[u8], name: &[u8]) -> Result<(), Refused> {
        // SAFETY: the name is a slice, and no slice lies in a ring.
        unsafe { self.push_slowly(head, name.as_ptr(), name.len(), REFERENCE) }
    }

    /// The most bytes that a packet in the ring may have.
    #[cfg(not(loom))]
    pub(super) const fn longest(&self) -> u32 {
        self.longest
    }

    /// Prefetches the cell that the packet after `ahead` others will be written to.
    #[cfg(not(loom))]
    #[inline(always)]
    pub(super) fn prefetch(&self, ahead: u64) {
        self.cells
            .prefetch_write(self.cells.index(self.tail + ahead));
    }

    /// True if the consumer had parked the ring a short while ago. [`Self::is_parked`] shows
    /// whether the ring is parked now.
    #[inline]
    pub(super) fn seems_parked(&self) -> bool {
        self.line().parked.load(Ordering::Relaxed) != 0
    }

    /// True if the consumer wants the data of packets in the ring.
    #[inline]
    pub(super) fn wants_copies(&self) -> bool {
        self.line().copies.load(Ordering::Relaxed) != 0
    }

    /// True if the consumer has parked the ring, so that its doorbell must be rung.
    ///
    /// The fence orders the publication before the load of the mark: either the consumer, which
    /// looks once more after it has set the mark, sees the packet, or we see the mark.
    #[inline]
    pub(super) fn is_parked(&self) -> bool {
        fence(Ordering::SeqCst);
        self.line().parked.load(Ordering::Relaxed) != 0
    }

    /// True if the consumer must be woken. It returns true only once per request of the consumer,
    /// so a busy consumer gets one message, not one per packet.
    #[cold]
    pub(super) fn takes_asleep(&self) -> bool {
        let parked = &self.line().parked;
        let (asleep, awake) = (Parked::Asleep as u32, Parked::Awake as u32);
        parked
            .compare_exchange(asleep, awake, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }

    /// The slow path: sends packets of several cells, reads the consumer's position when necessary,
    /// and refuses packets.
    #[inline(never)]
    unsafe fn push_slowly(
        &mut self,
        head: &[u8],
        data: *const u8,
        data_len: usize,
        flags: u64,
    ) -> Result<(), Refused> {
        let total = head.len().saturating_add(data_len);
        let len = u32::try_from(total).map_err(|_| Refused::TooLong)?;
        if len > self.longest {
            return Err(Refused::TooLong);
        }
        let cells = cells_of(len);
        let to_the_end = self.cells.count() - self.cells.index(self.tail);
        let skipped = if cells > to_the_end { to_the_end } else { 0 };
        self.reserve(u64::from(skipped + cells))?;
        let (start, marker) = (self.tail + u64::from(skipped), self.tail);
        let at = self.cells.index(start);
        // The consumer polls the first cell. If that cell were written long before the word, the
        // consumer would take its cache line away in between. So it is written last.
        let in_first = data_len.min(ONE_CELL.saturating_sub(head.len()));
        // SAFETY: the cells are free, do not reach beyond the last, and hold the packet.
        unsafe {
            let rest = data.add(in_first);
            self.cells.write(
                at as usize,
                head.len() + in_first,
                rest,
                data_len - in_first,
            );
        }
        if cells > 1 {
            self.dirty
                .on_packet(at, cells, self.lap_after(start + u64::from(cells)));
        }
        self.advance(start + u64::from(cells));
        // SAFETY: as above.
        unsafe {
            self.cells.write(at as usize, 0, head.as_ptr(), head.len());
            self.cells.write(at as usize, head.len(), data, in_first);
        }
        self.show(start, total, flags);
        if skipped > 0 {
            let word = self.sequence(marker) | WRAP;
            let at = self.cells.index(marker);
            self.cells.word(at).store(word, Ordering::Release);
        }
        Ok(())
    }

    /// Moves the tail to `position`, past the packet that is published next.
    #[inline]
    fn advance(&mut self, position: u64) {
        self.tail = position;
        self.clean(position);
    }

    /// Publishes the packet at `start`.
    #[inline]
    fn show(&self, start: u64, len: usize, flags: u64) {
        let word = self.sequence(start) | (len as u64) << LEN_SHIFT | flags;
        let at = self.cells.index(start);
        self.cells.word(at).store(word, Ordering::Release);
    }

    /// Makes sure that the word at `position`, which is about to become the tail, does not look
    /// like a packet.
    #[inline(always)]
    fn clean(&mut self, position: u64) {
        if self.dirty.is_possible(position) {
            let at = self.cells.index(position);
            if self.dirty.take(at) {
                self.cells.word(at).store(0, Ordering::Relaxed);
            }
        }
    }

    /// The position one lap after this one.
    #[inline(always)]
    const fn lap_after(&self, position: u64) -> u64 {
        position + self.cells.count() as u64
    }

    /// The number of cells that may be written; fewer than `wanted` only if the ring has no more
    /// room.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "a ring has fewer cells")]
    pub(super) fn room(&mut self, wanted: usize) -> usize {
        if self.tail + wanted as u64 + 1 > self.limit {
            // The error may be ignored: the limit shows how much room there is.
            let _ = self.reserve(wanted as u64);
        }
        self.limit.saturating_sub(self.tail + 1) as usize
    }

    /// Checks whether `cells` cells and one more are free.
    #[inline]
    fn reserve(&mut self, cells: u64) -> Result<(), Refused> {
        let needed = self.tail + cells + 1;
        if needed <= self.limit {
            return Ok(());
        }
        // Acquire: the consumer has read the cells that it gives back before we overwrite them.
        let consumed = self.line().consumed.load(Ordering::Acquire);
        let count = u64::from(self.cells.count());
        if self.broken || consumed > self.tail || consumed < self.limit - count {
            self.broken = true;
            return Err(Refused::Broken);
        }
        self.limit = consumed + count;
        if needed <= self.limit {
            Ok(())
        } else {
            Err(Refused::Full)
        }
    }

    #[inline]
    fn sequence(&self, position: u64) -> u64 {
        sequence(&self.cells, position)
    }

    #[inline]
    fn line(&self) -> &ConsumerLine {
        // SAFETY: the line outlives us and consists of atomics.
        unsafe { self.line.as_ref() }
    }
}

/// The low half of a published word at `position`: the lap, shifted and made odd, so that a word of
/// zero is never a packet. It repeats after 2³¹ laps; no cell keeps a word for that long.
#[inline]
fn sequence(cells: &Cells, position: u64) -> u64 {
    u64::from(low(cells.lap(position) << 1 | 1))
}

#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the function returns the low half"
)]
const fn low(word: u64) -> u32 {
    word as u32
}

#[cfg(test)]
mod row;

#[cfg(all(test, not(loom)))]
mod tests;

#[cfg(all(test, loom))]
mod loom_tests;
