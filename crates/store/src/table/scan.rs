//! Visits all items, a few buckets at a time, while other calls read and write.

use crate::item::{Header, Seconds};
use crate::table::body::{Found, Table};
use crate::table::read::Item;

/// The progress of a scan.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Cursor(u64);

impl Cursor {
    /// The cursor as a number, below `u64::MAX`, for another thread that continues the scan.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }

    /// Makes a cursor from a number. With a number that does not come from a scan, the scan starts
    /// at an arbitrary place, or ends at once.
    #[must_use]
    pub const fn of_number(number: u64) -> Self {
        Self(number)
    }
}

impl Table {
    /// Calls `see` with the items of the next `buckets` buckets, without counting them as read.
    /// Returns where to continue, or `None` at the end. A scan begins with `Cursor::default()`.
    ///
    /// A scan sees each item that exists during the whole scan. Items that are added or removed
    /// meanwhile may be seen or not. If the index grows, some items are seen twice, because growth
    /// moves them to later buckets, never to earlier ones.
    pub fn scan(
        &mut self,
        cursor: Cursor,
        buckets: usize,
        now: Seconds,
        mut see: impl FnMut(Item<'_>),
    ) -> Option<Cursor> {
        self.settle(now);
        let end = self
            .index
            .buckets()
            .min(cursor.0.saturating_add(buckets as u64));
        for bucket in cursor.0..end {
            if !self.index.is_fresh(&self.memory, bucket, self.epoch) {
                continue;
            }
            let entries = (0..).map_while(|at| self.index.entry_of(&self.memory, bucket, at));
            for (slot, entry) in entries {
                let header = Header::read(&self.memory, entry.place());
                let found = Found {
                    slot,
                    entry,
                    header,
                };
                if !header.is_expired(now) {
                    see(self.item(&found));
                }
            }
        }
        (end < self.index.buckets()).then_some(Cursor(end))
    }
}
