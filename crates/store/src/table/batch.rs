//! Batches: memory for the next operations is already on its way while earlier ones run.
//!
//! Looking ahead only prefetches cache lines. The operations then run one after the other, in
//! order, so a get after a set of the same key sees the new value, batched or not. MICA's own
//! batches look up all keys first, so such a get misses the value.

use crate::config::BATCH;
use crate::item::Seconds;
use crate::table::body::Table;
use crate::table::key::Key;
use crate::table::read::Item;

impl Table {
    /// Brings the buckets and items of up to [`BATCH`] keys into the cache, all at the same time
    /// (HERD §4.1.1; G-Opt §3). The next operations on these keys do not wait for memory.
    pub fn ahead(&self, keys: &[Key<'_>]) {
        let keys = &keys[..keys.len().min(BATCH)];
        gopt::Batch::<BATCH>::new().for_each(keys, |key| self.look_ahead(key.hash()), |_, ()| ());
    }

    /// The items of any number of keys, in order, each with the number of its key.
    pub fn get_batch(
        &mut self,
        keys: &[Key<'_>],
        now: Seconds,
        mut see: impl FnMut(usize, Option<Item<'_>>),
    ) {
        for (batch, keys) in keys.chunks(BATCH).enumerate() {
            self.ahead(keys);
            for (number, key) in keys.iter().enumerate() {
                see(batch * BATCH + number, self.get(key, now));
            }
        }
    }

    /// Prefetches a key's bucket, lets the other keys do so, and prefetches the items that may be
    /// the key's.
    #[inline]
    async fn look_ahead(&self, hash: u64) {
        self.index.prefetch(&self.memory, hash);
        gopt::switch().await;
        self.index.likely_places(&self.memory, hash, |place| {
            self.memory.prefetch(place.byte());
            // Items of up to 120 bytes lie in two lines, or begin in the middle of the first.
            self.memory.prefetch(place.byte() + 64);
        });
    }
}
