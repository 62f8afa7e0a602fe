//! The sweep finds dead items that no client asks for. It skips parts of the index in which,
//! according to `due.rs`, nothing has expired or was flushed.
//!
//! Its cost is counted in cache lines, because they take nearly all of its time: lines of the
//! index, the header of each item that can expire, and lines that a removal touches. So the caller
//! can bound the sweep's share of its thread, even if many items expire.

use crate::index::SLOTS;
use crate::item::{Header, Seconds};
use crate::mutant::Mutant;
use crate::table::body::{Found, Table};
use crate::table::departure::Reason;
use crate::table::key::Key;

/// The effect and the cost of a part of the sweep.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Swept {
    /// Items that had expired or were flushed, and were removed.
    pub removed: u64,
    /// Cache lines that the sweep has touched.
    pub lines: u64,
}

impl Table {
    /// Visits buckets until it has touched at least `lines` cache lines, and removes items that
    /// have expired or were flushed. It ends earlier if there are no more such items. It reads only
    /// items that can expire, so a bucket without any costs one line. A bucket is visited as a
    /// whole, so the last one may take a few more lines; the result has their total number. The
    /// caller chooses how often to sweep.
    pub fn sweep(&mut self, lines: u64, now: Seconds) -> Swept {
        self.settle(now);
        let before = self.stats.expired + self.stats.flushed;
        let mut touched = 0;
        while touched < lines
            && let Some(bucket) = self.due.next(self.index.buckets(), now)
        {
            touched += self.sweep_bucket(bucket, now);
        }
        self.stats.sweep_lines += touched;
        Swept {
            removed: self.stats.expired + self.stats.flushed - before,
            lines: touched,
        }
    }

    /// Notes the expiry of an item that was just written or changed.
    #[inline]
    pub(super) fn note_expiry(&mut self, key: &Key<'_>, header: &Header) {
        if header.expiry != 0 {
            self.due.note(self.index.bucket(key.hash()), header.expiry);
        }
    }

    /// Visits a bucket, and returns how many lines this has touched.
    fn sweep_bucket(&mut self, bucket: u64, now: Seconds) -> u64 {
        let mut lines = 1;
        if !self.index.is_fresh(&self.memory, bucket, self.epoch) {
            lines += self.empty_bucket(bucket);
        }
        let (mut number, mut seen, mut earliest) = (0, 0, None);
        while let Some((slot, entry)) = self.index.entry_of(&self.memory, bucket, number) {
            seen += 1;
            // The chain continues in another line.
            lines += u64::from(seen % SLOTS == 1 && seen > 1);
            number += 1;
            if !entry.may_expire() {
                continue;
            }
            lines += 1;
            let found = self.found_in(slot);
            // With the planted bug, an expired item must stay, because the sweep would remove it
            // before the bug could show it.
            if found.header.is_expired(now) && !self.has(Mutant::Expired) {
                // The last entry of the chain takes its place, and is visited next.
                number -= 1;
                lines += self.remove_from(bucket, &found);
            } else if found.header.expiry != 0 {
                let expiry = found.header.expiry;
                earliest = Some(earliest.map_or(expiry, |least: u32| least.min(expiry)));
            }
        }
        self.due.on_visited(earliest);
        lines
    }

    /// Removes an expired item of a bucket. Returns the number of cache lines that this has
    /// touched, without the item's header and its entry.
    fn remove_from(&mut self, bucket: u64, found: &Found) -> u64 {
        self.report(found, Some(Reason::Expired));
        self.index.remove_from(&mut self.memory, bucket, found.slot);
        self.release(found.entry.place(), &found.header);
        self.lines_of_release(&found.header)
    }
}

#[cfg(test)]
mod tests;
