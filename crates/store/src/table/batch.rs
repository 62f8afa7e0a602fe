//! Batches: the memory for the next operations is fetched while earlier ones run.
//!
//! A get needs two or three lines of memory, one after the other: the key's bucket, and the item.
//! [`Table::ahead`] fetches the buckets of all keys, looks at them, and fetches all items. A few
//! keys are in a further line of their bucket; it looks at those lines last (G-Opt §3, with one
//! group for each step). Then the operations run in order, one after the other. So a get after a
//! set of the same key sees the new value, batched or not. MICA's own batches look up all keys
//! first, so such a get misses the value.
//!
//! A prefetch that misses the TLB holds up all later instructions until the page is found. So each
//! step fetches all of its lines in one short loop, where the processor looks up several pages at a
//! time. With a table look-up between two fetches, it would look up one page after the other.
//!
//! Looking ahead also notes the slot of the entry that it has found. An operation checks this slot
//! first, and searches the bucket only if an earlier operation has changed it.

use crate::config::BATCH;
use crate::index::{Likely, Line};
use crate::item::{NARROW, Seconds};
use crate::memory::LINE;
use crate::table::body::Table;
use crate::table::key::Key;
use crate::table::read::Item;

/// The most lines of an item that are prefetched; the processor prefetches further lines itself.
const MOST_LINES: usize = 4;

impl Table {
    /// Brings the items of up to [`BATCH`] keys into the cache, all at the same time (HERD §4.1.1),
    /// so that the next operations on these keys need not wait for memory.
    #[inline]
    pub fn ahead(&self, keys: &mut [Key<'_>]) {
        let keys = match keys.split_at_mut_checked(BATCH) {
            Some((keys, _)) => keys,
            None => keys,
        };
        let reach = self.usual_size();
        let mut buckets = [Line::default(); BATCH];
        for (bucket, key) in buckets.iter_mut().zip(&*keys) {
            *bucket = self.index.first_line(key.hash());
        }
        let buckets = &buckets[..keys.len()];
        for bucket in buckets {
            self.memory.prefetch(self.index.byte(*bucket));
        }
        let mut items = [0; BATCH];
        // A bit for each key whose bucket has more than one line.
        let mut further = 0_u32;
        for (number, (key, bucket)) in keys.iter_mut().zip(buckets).enumerate() {
            match self.index.likely(&self.memory, key.hash(), *bucket) {
                Likely::Here(slot, place) => {
                    key.on_likely(slot);
                    items[number] = place.byte();
                }
                Likely::Further(next) => {
                    further |= 1 << number;
                    items[number] = self.index.byte(next);
                }
                Likely::Nowhere => items[number] = self.index.byte(*bucket),
            }
        }
        // The further lines first, because they are read next.
        for number in ones(further) {
            self.memory.prefetch(items[number]);
        }
        for item in &items[..keys.len()] {
            self.prefetch_item(*item, reach);
        }
        for number in ones(further) {
            self.ahead_further(&mut keys[number], reach);
        }
    }

    /// Looks for a key's entry in the further lines of its bucket, and prefetches its item.
    fn ahead_further(&self, key: &mut Key<'_>, reach: usize) {
        let mut at = self.index.first_line(key.hash());
        loop {
            match self.index.likely(&self.memory, key.hash(), at) {
                Likely::Further(next) => at = next,
                Likely::Here(slot, place) => {
                    key.on_likely(slot);
                    return self.prefetch_item(place.byte(), reach);
                }
                Likely::Nowhere => return,
            }
        }
    }

    /// Prefetches all lines of `reach` bytes.
    #[inline]
    fn prefetch_item(&self, byte: usize, reach: usize) {
        self.memory.prefetch(byte);
        let mut next = byte / LINE * LINE + LINE;
        while next < byte + reach {
            self.memory.prefetch(next);
            next += LINE;
        }
    }

    /// Gets the items of any number of keys, in order, each with the index of its key.
    pub fn get_batch(
        &mut self,
        keys: &[Key<'_>],
        now: Seconds,
        mut see: impl FnMut(usize, Option<Item<'_>>),
    ) {
        let mut number = 0;
        for keys in keys.chunks(BATCH) {
            let mut batch = [keys[0]; BATCH];
            let batch = &mut batch[..keys.len()];
            batch.copy_from_slice(keys);
            self.ahead(batch);
            for key in batch {
                see(number, self.get(key, now));
                number += 1;
            }
        }
    }

    /// The mean size of an item, up to the number of bytes that are worth prefetching.
    #[inline]
    fn usual_size(&self) -> usize {
        let mean = self.stats.item_bytes / self.stats.items.max(1);
        let most = MOST_LINES * LINE - NARROW;
        NARROW + usize::try_from(mean).map_or(most, |mean| mean.min(most))
    }
}

/// The positions of the bits that are set, from the lowest on: the members of a set of up to
/// [`BATCH`] requests.
#[inline]
pub fn ones(mut bits: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let number = bits.trailing_zeros() as usize;
        bits &= bits.checked_sub(1)?;
        Some(number)
    })
}

const _: () = assert!(BATCH <= u32::BITS as usize);
