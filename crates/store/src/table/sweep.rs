//! The sweep finds items that are gone but that no client asks for.
//!
//! Its cost is counted in cache lines, because they take nearly all of its time: those of the
//! index, the header of each item that can expire, and those that a removal touches. So the caller
//! can bound the share of its thread that the sweep takes, however many items expire.

use crate::index::{IndexEntry, SLOTS};
use crate::item::{Header, Seconds};
use crate::table::body::{Found, Table};
use crate::table::departure::Reason;

/// The effect and the cost of a part of the sweep.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Swept {
    /// Items that had expired or that a flush had forgotten, and are gone now.
    pub removed: u64,
    /// Cache lines that it has touched.
    pub lines: u64,
}

impl Table {
    /// Visits buckets until it has touched at least `lines` cache lines, and removes items that
    /// have expired or that a flush has forgotten. It reads only items that can expire, so a
    /// bucket without any costs one line. A bucket is visited as a whole, so the last one may take
    /// some lines more; the result has their number. The caller chooses how often to sweep.
    pub fn sweep(&mut self, lines: u64, now: Seconds) -> Swept {
        self.settle(now);
        let before = self.stats.expired + self.stats.flushed;
        let mut touched = 0;
        while touched < lines {
            if self.swept >= self.index.buckets() {
                self.swept = 0;
            }
            touched += self.sweep_bucket(self.swept, now);
            self.swept += 1;
        }
        self.stats.sweep_lines += touched;
        Swept {
            removed: self.stats.expired + self.stats.flushed - before,
            lines: touched,
        }
    }

    /// Visits a bucket, and returns how many lines that has touched.
    fn sweep_bucket(&mut self, bucket: u64, now: Seconds) -> u64 {
        let mut lines = 1;
        if !self.index.is_fresh(&self.memory, bucket, self.epoch) {
            lines += self.empty_bucket(bucket);
        }
        let (mut number, mut seen) = (0, 0);
        while let Some((slot, entry)) = self.index.entry_of(&self.memory, bucket, number) {
            seen += 1;
            // The chain goes on in another line.
            lines += u64::from(seen % SLOTS == 1 && seen > 1);
            lines += u64::from(entry.may_expire());
            match self.expired(entry, now) {
                // The last entry of the chain takes its place, and is visited next.
                Some(header) => {
                    let found = Found {
                        slot,
                        entry,
                        header,
                    };
                    self.report(&found, Some(Reason::Expired));
                    self.index.remove_from(&mut self.memory, bucket, slot);
                    self.release(entry.place(), &header);
                    lines += self.lines_of_release(&header);
                }
                None => number += 1,
            }
        }
        lines
    }

    /// The header of an item that has expired.
    fn expired(&self, entry: IndexEntry, now: Seconds) -> Option<Header> {
        let read = || Header::read(&self.memory, entry.place());
        let header = entry.may_expire().then(read)?;
        header.is_expired(now).then_some(header)
    }
}

#[cfg(test)]
mod tests;
