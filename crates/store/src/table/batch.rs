//! Batches: memory for the next operations is already on its way while earlier ones run.
//!
//! A get needs two or three lines of memory, one after the other: the key's bucket, and the item.
//! [`Table::ahead`] fetches the buckets of all keys, looks at them, and fetches all items; a few
//! keys are in a further line of their bucket, and it looks at those lines last (G-Opt §3, with one
//! group for each step). Then the operations run, one after the other, in order. So a get after a
//! set of the same key sees the new value, batched or not. MICA's own batches look up all keys
//! first, so such a get misses the value.
//!
//! A fetch of a line whose page the processor has forgotten holds up all instructions after it
//! until the page is found. So each step fetches all of its lines in one short loop: the processor
//! then looks for several pages at a time. With a look-up between two fetches, it would look for
//! one page after the other.
//!
//! Looking ahead also notes the slot of the entry that it has found. An operation looks there
//! first, and searches the bucket only if an operation before it has changed that slot.

use crate::config::BATCH;
use crate::index::{Likely, Line};
use crate::item::{NARROW, Seconds};
use crate::memory::LINE;
use crate::table::body::Table;
use crate::table::key::Key;
use crate::table::read::Item;

/// Lines of an item that are asked for: more than these, the processor fetches by itself.
const MOST_LINES: usize = 4;

impl Table {
    /// Brings the items of up to [`BATCH`] keys into the cache, all at the same time (HERD §4.1.1).
    /// The next operations on these keys do not wait for memory.
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
        // Bits of the keys whose buckets have more than one line.
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
        // The further lines first: they are read next.
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

    /// Looks for a key's entry in the further lines of its bucket, and asks for its item.
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

    /// Asks for all lines of `reach` bytes.
    #[inline]
    fn prefetch_item(&self, byte: usize, reach: usize) {
        self.memory.prefetch(byte);
        let mut next = byte / LINE * LINE + LINE;
        while next < byte + reach {
            self.memory.prefetch(next);
            next += LINE;
        }
    }

    /// The items of any number of keys, in order, each with the number of its key.
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

    /// Bytes of an item of mean length, as far as it is worth to ask for them.
    #[inline]
    fn usual_size(&self) -> usize {
        let mean = self.stats.item_bytes / self.stats.items.max(1);
        let most = MOST_LINES * LINE - NARROW;
        NARROW + usize::try_from(mean).map_or(most, |mean| mean.min(most))
    }
}

/// The numbers of the bits that are set.
#[inline]
fn ones(mut bits: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let number = bits.trailing_zeros() as usize;
        bits &= bits.checked_sub(1)?;
        Some(number)
    })
}

const _: () = assert!(BATCH <= u32::BITS as usize);
