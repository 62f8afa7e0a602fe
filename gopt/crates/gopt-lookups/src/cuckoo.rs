//! A cuckoo hash table with two hashes and eight slots (G-Opt §3.3, "2-8") from integers to
//! integers, like the table of a layer-2 switch.
//!
//! Invariants: a bucket is one cache line; a key is in at most one slot, and that slot is in one
//! of the key's two buckets, so a look-up reads two lines at most.

use std::io;

use gopt::MAX_WIDTH;
use zerocopy::FromZeros;

use crate::compare::equal_u32;
use crate::forms::Lookup;
use crate::huge::Huge;
use crate::random::{Random, mix};
use crate::touched::Touched;
use crate::work::Work;

/// Slots of a bucket.
pub const SLOTS: usize = 8;

/// The key of a free slot, which therefore cannot be inserted.
pub const FREE: u32 = 0;

/// The most keys that are moved to make room for one. At 95 % load, few insertions move more than
/// 100.
const KICKS: usize = 500;

/// One cache line. The value of `keys[i]` is `values[i]`.
#[derive(Clone, Copy, Debug, FromZeros)]
#[repr(C, align(64))]
pub(crate) struct Bucket {
    keys: [u32; SLOTS],
    values: [u32; SLOTS],
}

/// A table of a fixed number of buckets.
#[derive(Debug)]
pub struct Cuckoo {
    pub(crate) buckets: Huge<Bucket>,
    random: Random,
}

/// The reason why a key was not inserted; the table is unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InsertError {
    /// The key is [`FREE`].
    Reserved,
    /// No room was found.
    Full,
}

impl Cuckoo {
    /// An empty table of `2^log2_buckets` buckets, each for eight keys.
    ///
    /// # Errors
    /// `InvalidInput` if that is more than hashes can name (`2^32`), otherwise the error of `mmap`.
    pub fn new(log2_buckets: u32) -> io::Result<Self> {
        if log2_buckets > 32 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let buckets = 1_usize << log2_buckets;
        Ok(Self {
            buckets: Huge::zeroed(buckets)?,
            random: Random::new(0),
        })
    }

    /// Inserts a key, or gives it another value.
    ///
    /// # Errors
    /// [`InsertError`].
    pub fn insert(&mut self, key: u32, value: u32) -> Result<(), InsertError> {
        if key == FREE {
            return Err(InsertError::Reserved);
        }
        let places = self.places(key);
        for place in places {
            let bucket = &mut self.buckets[place];
            if let Some(slot) = slot(bucket, key) {
                bucket.values[slot] = value;
                return Ok(());
            }
        }
        for place in places {
            if self.put_free(place, key, value) {
                return Ok(());
            }
        }
        self.kick(places[0], key, value)
    }

    /// Puts the key in the place of another one, which moves to its other bucket, and so on. If too
    /// many keys move, undoes all moves.
    fn kick(&mut self, start: usize, key: u32, value: u32) -> Result<(), InsertError> {
        let mut path = [(0, 0); KICKS];
        let mut homeless = (key, value);
        let mut place = start;
        for step in &mut path {
            let slot = self.random.index(SLOTS);
            *step = (place, slot);
            homeless = self.exchange((place, slot), homeless);
            let [first, second] = self.places(homeless.0);
            place = if place == first { second } else { first };
            if self.put_free(place, homeless.0, homeless.1) {
                return Ok(());
            }
        }
        for at in path.into_iter().rev() {
            homeless = self.exchange(at, homeless);
        }
        Err(InsertError::Full)
    }

    fn exchange(&mut self, (place, slot): (usize, usize), entry: (u32, u32)) -> (u32, u32) {
        let bucket = &mut self.buckets[place];
        let old = (bucket.keys[slot], bucket.values[slot]);
        (bucket.keys[slot], bucket.values[slot]) = entry;
        old
    }

    fn put_free(&mut self, place: usize, key: u32, value: u32) -> bool {
        let bucket = &mut self.buckets[place];
        let Some(slot) = slot(bucket, FREE) else {
            return false;
        };
        bucket.keys[slot] = key;
        bucket.values[slot] = value;
        true
    }

    /// The two buckets of a key.
    #[inline(always)]
    fn places(&self, key: u32) -> [usize; 2] {
        let hash = mix(u64::from(key));
        let [first, second] = [hash >> 32, hash & 0xFFFF_FFFF];
        // The compiler sees from the length that the places exist.
        let mask = self.buckets.len() - 1;
        [first, second].map(|half| usize::try_from(half).expect("32 bits") & mask)
    }
}

impl Lookup for Cuckoo {
    type Key = u32;
    type Value = Option<u32>;

    #[inline(always)]
    fn find(&self, key: u32) -> Option<u32> {
        let [first, second] = self.places(key);
        value(&self.buckets[first], key).or_else(|| value(&self.buckets[second], key))
    }

    #[expect(
        clippy::manual_async_fn,
        reason = "an async fn would copy its arguments"
    )]
    fn find_marked<W: Work<u32, Option<u32>>>(
        &self,
        work: &W,
        item: &W::Item,
    ) -> impl Future<Output = W::Out> {
        async move {
            let key = work.key(item);
            let [first, second] = self.places(key);
            let mut found = value(gopt::load(&self.buckets[first]).await, key);
            if found.is_none() {
                found = value(gopt::load(&self.buckets[second]).await, key);
            }
            work.out(item, found)
        }
    }

    #[inline(always)]
    fn find_group<W: Work<u32, Option<u32>>>(
        &self,
        work: &W,
        items: &[W::Item],
        out: &mut [W::Out],
    ) {
        let mut keys = [0; MAX_WIDTH];
        let mut places = [[0; 2]; MAX_WIDTH];
        let mut missed = [0_usize; MAX_WIDTH];
        for (at, item) in items.iter().enumerate() {
            keys[at] = work.key(item);
            places[at] = self.places(keys[at]);
            gopt::prefetch_now(&raw const self.buckets[places[at][0]], gopt::T0);
        }
        let mut misses = 0;
        for (at, (item, out)) in items.iter().zip(&mut *out).enumerate() {
            match value(&self.buckets[places[at][0]], keys[at]) {
                Some(value) => *out = work.out(item, Some(value)),
                None => {
                    gopt::prefetch_now(&raw const self.buckets[places[at][1]], gopt::T0);
                    missed[misses] = at;
                    misses += 1;
                }
            }
        }
        for &at in &missed[..misses] {
            out[at] = work.out(&items[at], value(&self.buckets[places[at][1]], keys[at]));
        }
    }

    fn touch(&self, key: u32, touched: &mut Touched) {
        let [first, second] = self.places(key);
        touched.read(&self.buckets, first);
        if value(&self.buckets[first], key).is_none() {
            touched.read(&self.buckets, second);
        }
    }
}

/// The place of the key in the bucket.
#[inline(always)]
fn slot(bucket: &Bucket, key: u32) -> Option<usize> {
    let equal = equal_u32(&bucket.keys, key);
    (equal != 0).then(|| equal.trailing_zeros() as usize)
}

#[inline(always)]
fn value(bucket: &Bucket, key: u32) -> Option<u32> {
    let equal = equal_u32(&bucket.keys, key);
    // Free slots have the key `FREE`; a look-up of that key must not find one.
    if equal == 0 || key == FREE {
        return None;
    }
    Some(bucket.values[equal.trailing_zeros() as usize % SLOTS])
}
