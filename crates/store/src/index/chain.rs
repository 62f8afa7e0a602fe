//! The lines of the index, and the chains of lines.
//!
//! A line has seven entries and a header. The header's lower half is the number of the chain's next
//! line plus one, or 0 if there is none. Its upper half, in the first line of a chain, counts the
//! flushes that the bucket has seen.
//!
//! Invariant: a chain is dense. Its entries fill it from the front, only its last line may have
//! empty slots, and a line without entries is the only line of its chain. So a search ends at the
//! first empty slot, and a removal moves the last entry into the hole.

use std::num::NonZeroU64;

use super::{Full, Index, IndexEntry};
use crate::memory::Region;

/// Entries of a line.
pub(crate) const SLOTS: usize = 7;

/// The word of the header.
const HEADER: usize = 7;

/// The words of a line, little endian.
pub(super) type Words = [[u8; 8]; 8];

/// A line's number, counted from the end of the region.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Line(pub(super) u32);

/// A slot of a line, as the number of bytes from there to the end of the region plus one, so that
/// the lowest bit is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slot(NonZeroU64);

impl Slot {
    #[inline]
    pub(super) fn new(line: Line, slot: usize) -> Self {
        let to_end = 64 * (u64::from(line.0) + 1) - 8 * slot as u64;
        Self(NonZeroU64::MIN | to_end)
    }
}

impl Index {
    /// The byte at which a line begins.
    #[inline]
    pub(crate) fn byte(&self, line: Line) -> usize {
        self.end - 64 * (line.0 as usize + 1)
    }

    #[inline]
    pub(super) fn line<'a>(&self, memory: &'a Region, line: Line) -> &'a Words {
        memory.line(self.byte(line))
    }

    #[inline]
    pub(super) fn next(line: &Words) -> Option<Line> {
        // The lower half of the header is the link.
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the upper half is another field"
        )]
        let link = u64::from_le_bytes(line[HEADER]) as u32;
        link.checked_sub(1).map(Line)
    }

    pub(super) fn set_next(&self, memory: &mut Region, line: Line, next: Option<Line>) {
        let at = self.byte(line) + 8 * HEADER;
        let link = next.map_or(0, |next| u64::from(next.0) + 1);
        let header = memory.word(at) >> 32 << 32 | link;
        memory.set_word(at, header);
    }

    /// The number of flushes that the bucket has seen.
    #[inline]
    pub(super) fn epoch(&self, memory: &Region, first: Line) -> u32 {
        let header = memory.word(self.byte(first) + 8 * HEADER);
        (header >> 32) as u32
    }

    pub(super) fn set_epoch(&self, memory: &mut Region, first: Line, epoch: u32) {
        let at = self.byte(first) + 8 * HEADER;
        let link = memory.word(at) & u64::from(u32::MAX);
        memory.set_word(at, u64::from(epoch) << 32 | link);
    }

    /// The byte at which a slot begins.
    #[inline]
    fn slot_byte(&self, at: Slot) -> usize {
        let to_end = at.0.get() - 1;
        self.end - usize::try_from(to_end).expect("a slot lies in the region")
    }

    /// The entry in a slot.
    #[inline]
    pub(crate) fn entry(&self, memory: &Region, at: Slot) -> IndexEntry {
        IndexEntry::from_word(memory.word(self.slot_byte(at)))
    }

    /// Overwrites a slot that has an entry, or the slot after the last entry of its chain.
    #[inline]
    pub(crate) fn set_entry(&self, memory: &mut Region, at: Slot, entry: IndexEntry) {
        memory.set_word(self.slot_byte(at), entry.word());
    }

    /// The last line of a chain, the line before it, and the number of entries in the last line.
    pub(super) fn last(&self, memory: &Region, first: Line) -> (Line, Option<Line>, usize) {
        let (mut at, mut before) = (first, None);
        loop {
            let line = self.line(memory, at);
            match Self::next(line) {
                Some(next) => (before, at) = (Some(at), next),
                None => {
                    let used = line[..SLOTS].iter().take_while(|word| **word != [0; 8]);
                    return (at, before, used.count());
                }
            }
        }
    }

    /// Appends an entry to a chain, and returns its slot.
    pub(super) fn push(
        &mut self,
        memory: &mut Region,
        first: Line,
        entry: IndexEntry,
    ) -> Result<Slot, Full> {
        let (mut line, _, mut slot) = self.last(memory, first);
        if slot == SLOTS {
            let fresh = self.take_spare(memory).ok_or(Full)?;
            self.set_next(memory, line, Some(fresh));
            (line, slot) = (fresh, 0);
        }
        let slot = Slot::new(line, slot);
        self.set_entry(memory, slot, entry);
        Ok(slot)
    }

    /// Removes an entry from the chain that begins with `first`.
    pub(super) fn pull(&mut self, memory: &mut Region, first: Line, hole: Slot) {
        let (line, before, used) = self.last(memory, first);
        let last = Slot::new(line, used - 1);
        let entry = self.entry(memory, last);
        self.set_entry(memory, hole, entry);
        self.set_entry(memory, last, IndexEntry::EMPTY);
        if let (1, Some(before)) = (used, before) {
            self.set_next(memory, before, None);
            self.give_spare(memory, line);
        }
    }

    /// Takes a spare line for a full chain. The line is empty, and has no next line.
    fn take_spare(&mut self, memory: &mut Region) -> Option<Line> {
        let spare = self.spare?;
        let line = self.line(memory, spare);
        self.spare = Self::next(line);
        self.spares -= 1;
        self.clear(memory, spare);
        Some(spare)
    }

    /// Makes a spare line of a line that no chain uses.
    pub(super) fn give_spare(&mut self, memory: &mut Region, line: Line) {
        self.clear(memory, line);
        self.set_next(memory, line, self.spare);
        self.spare = Some(line);
        self.spares += 1;
    }

    pub(super) fn clear(&self, memory: &mut Region, line: Line) {
        let at = self.byte(line);
        memory[at..at + 64].fill(0);
    }
}
