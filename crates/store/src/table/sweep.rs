//! The sweep finds items that are gone but that no client asks for.

use crate::index::IndexEntry;
use crate::item::{Header, Seconds};
use crate::table::body::{Found, Table};
use crate::table::departure::Reason;

impl Table {
    /// Visits the next `buckets` buckets, removes items that have expired or that a flush has
    /// forgotten, and returns how many. It reads only items that can expire, so a bucket without
    /// any costs one cache line. The caller chooses how often to sweep.
    pub fn sweep(&mut self, buckets: usize, now: Seconds) -> usize {
        self.settle(now);
        let before = self.stats.expired + self.stats.flushed;
        for _ in 0..buckets {
            if self.swept >= self.index.buckets() {
                self.swept = 0;
            }
            self.sweep_bucket(self.swept, now);
            self.swept += 1;
        }
        let removed = self.stats.expired + self.stats.flushed - before;
        usize::try_from(removed).expect("no more than a table has")
    }

    fn sweep_bucket(&mut self, bucket: u64, now: Seconds) {
        if !self.index.is_fresh(&self.memory, bucket, self.epoch) {
            self.empty_bucket(bucket);
        }
        let mut number = 0;
        while let Some((slot, entry)) = self.index.entry_of(&self.memory, bucket, number) {
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
                }
                None => number += 1,
            }
        }
    }

    /// The header of an item that has expired.
    fn expired(&self, entry: IndexEntry, now: Seconds) -> Option<Header> {
        let read = || Header::read(&self.memory, entry.place());
        let header = entry.may_expire().then(read)?;
        header.is_expired(now).then_some(header)
    }
}
