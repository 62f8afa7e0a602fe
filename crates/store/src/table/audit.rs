//! Questions that only tests ask.

use std::ops::Range;

use crate::item::Header;
use crate::memory::STEP;
use crate::table::body::{Storage, Table};
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

    /// The bytes of the pages in use, and the bytes of the pages that items and the writes in
    /// progress account for. Both are 0 for a cache.
    pub(crate) fn page_bytes(&self) -> (usize, usize) {
        let Storage::Classes(classes) = &self.storage else {
            return (0, 0);
        };
        let (mut sizes, mut chunks) = (Vec::new(), 0);
        for bucket in 0..self.index.buckets() {
            for number in 0.. {
                let Some((_, entry)) = self.index.entry_of(&self.memory, bucket, number) else {
                    break;
                };
                let shape = Header::read(&self.memory, entry.place()).shape(self.mode);
                sizes.push(shape.size);
                chunks += shape.chunks;
            }
        }
        let pages = classes.pages_for(sizes.into_iter()) + chunks + self.writings.pages();
        (classes.bytes(), pages * STEP)
    }

    /// Whether the sweep will visit each bucket that a flush must empty, and each expired item.
    pub(crate) fn is_bounded(&self) -> bool {
        (0..self.index.buckets()).all(|bucket| {
            if !self.index.is_fresh(&self.memory, bucket, self.epoch) {
                return self.due.covers(bucket, 0);
            }
            let mut entries = (0..).map_while(|at| self.index.entry_of(&self.memory, bucket, at));
            entries.all(|(_, entry)| {
                let expiry = Header::read(&self.memory, entry.place()).expiry;
                expiry == 0 || self.due.covers(bucket, expiry)
            })
        })
    }

    /// The items in a bucket's entries: each item's key, and the range of its bytes.
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
