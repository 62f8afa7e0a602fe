//! Indexes of slots. The client side and the server side have a table of slots each; a session has
//! the same range of indexes in both. [`SlotRanges`], which the table of sessions owns, hands out
//! the ranges.

use crate::handle::SlotIdx;

/// The indexes of a session's slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SlotRange {
    start: SlotIdx,
    len: u32,
}

impl SlotRange {
    pub(crate) const fn new(start: SlotIdx, len: u32) -> Self {
        Self { start, len }
    }

    /// The first index.
    pub(crate) const fn start(self) -> SlotIdx {
        self.start
    }

    /// The number of slots: the session's window.
    pub(crate) const fn len(self) -> u32 {
        self.len
    }

    /// Whether the slot at this index is in the range.
    pub(crate) const fn contains(self, at: SlotIdx) -> bool {
        at.0.wrapping_sub(self.start.0) < self.len
    }

    /// All indexes, in order.
    pub(crate) fn iter(self) -> impl Iterator<Item = SlotIdx> + use<> {
        (self.start.0..self.start.0 + self.len).map(SlotIdx)
    }
}

/// The ranges of all sessions. The length of each is a power of two.
#[derive(Debug, Default)]
pub(super) struct SlotRanges {
    /// Slots that were ever in a range.
    count: u32,
    /// First slots of freed ranges, by the logarithm of their length.
    free: [Vec<SlotIdx>; 7],
}

impl SlotRanges {
    /// The index after the highest one ever used.
    pub(super) fn end(&self) -> SlotIdx {
        SlotIdx(self.count)
    }

    /// Takes a range for a session with this window.
    pub(super) fn take(&mut self, window: u32) -> SlotIdx {
        let reused = self.free[window.trailing_zeros() as usize].pop();
        reused.unwrap_or_else(|| {
            let start = self.count;
            self.count = start
                .checked_add(window)
                .expect("at most 2^24 sessions of 64 slots fit into 32 bits");
            SlotIdx(start)
        })
    }

    /// Frees the range of a session that ends or gets another range.
    pub(super) fn put_back(&mut self, range: SlotRange) {
        self.free[range.len().trailing_zeros() as usize].push(range.start());
    }

    /// Whether each slot is in a free range or one of the `taken` slots of sessions.
    pub(super) fn adds_up(&self, taken: u64) -> bool {
        let ranges = self.free.iter().enumerate();
        let free: u64 = ranges.map(|(log, free)| (free.len() as u64) << log).sum();
        taken + free == u64::from(self.count)
    }

    /// A planted bug: a slot belongs to no session.
    #[cfg(feature = "mutants")]
    pub(super) fn leak(&mut self) {
        self.count += 1;
    }
}

#[cfg(test)]
mod tests;
