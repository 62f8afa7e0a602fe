//! Guesses at which place the item of a key is, by hashes of keys.
//!
//! A bucket has eight guesses and is one cache line, so an operation on one of many items waits for
//! one line before it knows the place. The table grows by one bucket at a time, which takes its
//! guesses from one other (linear hashing, Litwin 1980), so no operation waits for a larger table.
//! Invariant: a place has one guess at most, in the bucket of its hash. A full bucket forgets one
//! guess for a new one. Called by `places`, which compares each guess with its key.

use dunlin_msgbuf::prefetch_read;

/// Guesses in a bucket.
const WAYS: usize = 8;

/// Guesses for each bucket on average. Buckets that the growth has not reached have up to twice as
/// many.
const SHARE: usize = 4;

/// Buckets in a chunk.
const CHUNK: usize = 1 << 10;

/// The number of no place.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Bucket {
    hashes: [u32; WAYS],
    /// The place of each hash, or [`NONE`].
    places: [u32; WAYS],
}

const _: () = assert!(size_of::<Bucket>() == 64, "a bucket is a cache line");

impl Bucket {
    const EMPTY: Self = Self {
        hashes: [0; WAYS],
        places: [NONE; WAYS],
    };

    /// The places with this hash, and perhaps [`NONE`].
    #[inline]
    fn matches(&self, hash: u32) -> impl Iterator<Item = u32> {
        let bit = |way: usize| u32::from(self.hashes[way] == hash) << way;
        let mut bits = (0..WAYS).fold(0, |bits, way| bits | bit(way));
        std::iter::from_fn(move || {
            let place = *self.places.get(bits.trailing_zeros() as usize)?;
            bits &= bits - 1;
            Some(place)
        })
    }

    fn way_of(&self, place: u32) -> Option<usize> {
        self.places.iter().position(|it| *it == place)
    }

    /// Adds a guess, in place of another one if the bucket is full.
    fn add(&mut self, hash: u32, place: u32) {
        let way = self.way_of(NONE).unwrap_or(place as usize % WAYS);
        (self.hashes[way], self.places[way]) = (hash, place);
    }
}

#[derive(Clone, Debug)]
pub(super) struct Guesses {
    chunks: Vec<Vec<Bucket>>,
    buckets: usize,
    /// The bits of a hash that may name a bucket.
    mask: usize,
}

impl Guesses {
    pub(super) const fn new() -> Self {
        Self {
            chunks: Vec::new(),
            buckets: 0,
            mask: 0,
        }
    }

    /// The places that may have a key with this hash.
    #[inline]
    pub(super) fn of(&self, hash: u32) -> impl Iterator<Item = u32> {
        let bucket = self.bucket(self.index_of(hash)).into_iter();
        bucket.flat_map(move |it| it.matches(hash))
    }

    /// The place of a hash for which `is_right` returns true.
    #[inline]
    pub(super) fn find(&self, hash: u32, mut is_right: impl FnMut(u32) -> bool) -> Option<u32> {
        let bucket = self.bucket(self.index_of(hash))?;
        bucket.matches(hash).find(|place| is_right(*place))
    }

    /// Starts to load the guesses for a hash.
    #[inline]
    pub(super) fn prefetch(&self, hash: u32) {
        if let Some(bucket) = self.bucket(self.index_of(hash)) {
            prefetch_read(bucket);
        }
    }

    /// Notes the place of a hash, which has no guess.
    pub(super) fn note(&mut self, hash: u32, place: u32) {
        let index = self.index_of(hash);
        if let Some(bucket) = self.bucket_mut(index) {
            bucket.add(hash, place);
        }
    }

    /// Forgets a place, if it has a guess.
    pub(super) fn forget(&mut self, hash: u32, place: u32) {
        self.forget_in(self.index_of(hash), place);
    }

    fn forget_in(&mut self, index: usize, place: u32) {
        if let Some(bucket) = self.bucket_mut(index)
            && let Some(way) = bucket.way_of(place)
        {
            bucket.places[way] = NONE;
        }
    }

    /// Grows so that the table has room for the guesses of this number of places.
    pub(super) fn grow(&mut self, places: usize) {
        while self.buckets * SHARE < places {
            self.split();
        }
    }

    /// Adds a bucket, and moves the guesses into it that belong there now.
    fn split(&mut self) {
        if self.chunks.last().is_none_or(|it| it.len() == CHUNK) {
            self.chunks.push(Vec::new());
        }
        let chunk = self.chunks.last_mut().expect("it has room");
        chunk.push(Bucket::EMPTY);
        let added = self.buckets;
        self.buckets += 1;
        self.mask = self.buckets.next_power_of_two() - 1;
        let from = added & self.mask >> 1;
        let Some(before) = self.bucket(from).copied() else {
            return;
        };
        for (hash, place) in before.hashes.into_iter().zip(before.places) {
            if place != NONE && self.index_of(hash) != from {
                self.forget_in(from, place);
                self.note(hash, place);
            }
        }
    }

    /// Drops a chunk of guesses, and returns its size in bytes; `None` if there is none left. The
    /// table is useless afterwards.
    pub(super) fn drop_chunk(&mut self) -> Option<usize> {
        let chunk = self.chunks.pop()?;
        self.buckets = self.chunks.len() * CHUNK;
        self.mask = self.buckets.next_power_of_two() - 1;
        Some(chunk.len() * size_of::<Bucket>())
    }

    /// The number of the bucket of a hash. Buckets that do not exist yet have theirs in the bucket
    /// whose number lacks the highest bit.
    #[inline]
    const fn index_of(&self, hash: u32) -> usize {
        let index = hash as usize & self.mask;
        match index < self.buckets {
            true => index,
            false => index & self.mask >> 1,
        }
    }

    #[inline]
    fn bucket(&self, index: usize) -> Option<&Bucket> {
        self.chunks.get(index / CHUNK)?.get(index % CHUNK)
    }

    #[inline]
    fn bucket_mut(&mut self, index: usize) -> Option<&mut Bucket> {
        self.chunks.get_mut(index / CHUNK)?.get_mut(index % CHUNK)
    }
}

#[cfg(test)]
mod tests;
