//! Questions that only tests may ask.

use std::ops::Range;

use crate::item::Header;
use crate::table::body::Table;
use crate::table::key::Key;

impl Table {
    pub(crate) fn index_buckets(&self) -> u64 {
        self.index.buckets()
    }

    pub(crate) fn index_bottom(&self) -> usize {
        self.index.bottom()
    }

    pub(crate) fn bucket_of(&self, key: &Key<'_>) -> u64 {
        self.index.bucket(key.hash())
    }

    /// The items that the entries of a bucket name: the key of each, and where its bytes lie.
    pub(crate) fn items_of(&self, bucket: u64) -> Vec<(Vec<u8>, Range<usize>)> {
        let entries = (0..).map_while(|at| self.index.entry_of(&self.memory, bucket, at));
        let item = entries.map(|(_, entry)| {
            let header = Header::read(&self.memory, entry.place());
            let key = header.key(&self.memory, entry.place()).to_vec();
            let at = entry.place().byte();
            (key, at..at + header.shape(self.mode).size)
        });
        item.collect()
    }
}
