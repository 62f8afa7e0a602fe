//! The growth of the index, one bucket at a time.

use super::chain::{Line, Slot};
use super::{GROUP_BUCKETS, Index, LOAD};
use crate::memory::Region;

impl Index {
    /// Whether the index should grow: the load is too high or no spare line is left, and tags have
    /// bits left for another split.
    pub(crate) fn wants_growth(&self) -> bool {
        let is_loaded = self.entries > LOAD * self.buckets();
        (is_loaded || self.spare.is_none()) && self.level < self.most_level()
    }

    /// The level at which a tag has only `LEFT` bits more than the bucket number.
    fn most_level(&self) -> u32 {
        const LEFT: u32 = 10;
        self.first_bits + super::TAG_BITS - LEFT
    }

    /// The number of groups that the index lacks for its intended load.
    pub(crate) fn deficit(&self) -> u64 {
        let wanted = self.entries.div_ceil(LOAD).div_ceil(GROUP_BUCKETS);
        wanted.saturating_sub(self.groups)
    }

    /// Whether the next split needs a group that the index does not have yet.
    pub(crate) fn needs_group(&self) -> bool {
        self.buckets() == self.groups * GROUP_BUCKETS
    }

    /// Takes the memory below the index, which the caller has freed.
    pub(crate) fn add_group(&mut self, memory: &mut Region) {
        let line = |of: u64| {
            Line(u32::try_from(self.groups * 8 + of).expect("a table has fewer than 2^32 lines"))
        };
        let lines: [Line; 8] = std::array::from_fn(|of| line(of as u64));
        self.groups += 1;
        for line in lines {
            self.clear(memory, line);
        }
        self.give_spare(memory, lines[7]);
    }

    /// The bucket that is split next.
    pub(crate) fn next_split(&self) -> u64 {
        self.split
    }

    /// Splits the next bucket. The caller has applied all flushes up to `epoch` to the bucket, and
    /// has made sure that the new bucket has memory.
    pub(crate) fn split(&mut self, memory: &mut Region, epoch: u32) {
        debug_assert!(!self.needs_group());
        let (old, new) = (self.split, (1 << self.level) + self.split);
        let (old_line, new_line) = (Self::first(old), Self::first(new));
        self.detach(memory, old_line);
        self.set_epoch(memory, old_line, epoch);
        self.set_epoch(memory, new_line, epoch);
        let bit = 1 << (self.level - self.first_bits);
        for at in 0..self.moving.len() {
            let entry = self.moving[at];
            let to = if entry.tag() & bit == 0 {
                old_line
            } else {
                new_line
            };
            // Two dense chains have at most one line more than one chain of the same entries.
            let pushed = self.push(memory, to, entry);
            pushed.expect("the lines of the old chain are spare");
        }
        self.split += 1;
        if self.split == 1 << self.level {
            self.level += 1;
            self.split = 0;
        }
    }

    /// Takes a chain apart: its entries go to `moving`, its further lines become spare, and its
    /// first line is empty.
    fn detach(&mut self, memory: &mut Region, first: Line) {
        self.moving.clear();
        let mut at = Some(first);
        while let Some(line) = at {
            for slot in 0..super::SLOTS {
                let entry = self.entry(memory, Slot::new(line, slot));
                if !entry.is_empty() {
                    self.moving.push(entry);
                }
            }
            at = Self::next(self.line(memory, line));
            if line == first {
                self.clear(memory, line);
            } else {
                self.give_spare(memory, line);
            }
        }
    }
}
