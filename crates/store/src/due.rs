//! Finds the parts of the index that may have expired items. The sweep visits only these parts.
//!
//! The buckets are divided into parts: bucket `b` is in part `b % parts`. A bucket and the one
//! split off from it are in the same part, because there are at most as many parts as buckets at
//! the start. Each part has a bound: no item of the part expires before it. The bounds are the
//! leaves of a tree of minima, so the root bounds the whole table: if it is in the future, nothing
//! has expired.
//!
//! A bound is lowered when an item gets an earlier expiry, and is exact again after a walk over its
//! part. Deletes and later expiries leave it too low, which only costs a walk. Invariant: the
//! expiry of an item is not before the bound of its part; during a walk over the part, it may
//! instead be covered by the walk's earliest expiry, or the walk has not reached its bucket yet.
//! The tree takes 8 bytes for each 64 KiB of the region, on the heap.

use crate::item::Seconds;

/// The number of buckets in each part at the start.
const FIRST_BUCKETS: u64 = 16;

/// The bound of a part in which no item expires.
const NEVER: u32 = u32::MAX;

/// The bounds, and the walk that updates one of them.
#[derive(Debug)]
pub(crate) struct Due {
    /// A tree in an array: the root is at 1, the children of `n` are at `2 n` and `2 n + 1`, and
    /// the second half of the array holds the leaves.
    bounds: Box<[u32]>,
    walk: Option<Walk>,
}

/// A walk over the buckets of a part.
#[derive(Debug)]
struct Walk {
    /// The next bucket.
    bucket: u64,
    /// The earliest expiry of the items seen so far.
    earliest: u32,
}

impl Due {
    /// For an empty table that begins with this number of buckets, which is a power of two.
    pub(crate) fn new(buckets: u64) -> Self {
        let parts = usize::try_from((buckets / FIRST_BUCKETS).max(1)).expect("less than memory");
        Self {
            bounds: vec![NEVER; 2 * parts].into(),
            walk: None,
        }
    }

    /// Notes that an item of a bucket expires at `expiry`.
    pub(crate) fn note(&mut self, bucket: u64, expiry: u32) {
        let mut at = self.leaf(bucket);
        while at > 0 && self.bounds[at] > expiry {
            self.bounds[at] = expiry;
            at /= 2;
        }
    }

    /// Notes that any bucket may have items to remove.
    pub(crate) fn note_all(&mut self) {
        self.bounds.fill(0);
    }

    /// The next bucket of a walk over a part that may have items to remove; `None` if no part may.
    pub(crate) fn next(&mut self, buckets: u64, now: Seconds) -> Option<u64> {
        loop {
            let parts = self.parts();
            match &mut self.walk {
                Some(walk) if walk.bucket < buckets => {
                    let bucket = walk.bucket;
                    walk.bucket += parts;
                    return Some(bucket);
                }
                Some(walk) => {
                    let (part, earliest) = (walk.bucket, walk.earliest);
                    self.walk = None;
                    self.note(part, earliest);
                }
                None if self.bounds[1] > now.0 => return None,
                None => self.begin(),
            }
        }
    }

    /// Notes the earliest expiry that remains in the bucket that [`Self::next`] has returned;
    /// `None`: no item there expires.
    pub(crate) fn on_visited(&mut self, earliest: Option<u32>) {
        if let (Some(walk), Some(earliest)) = (&mut self.walk, earliest) {
            walk.earliest = walk.earliest.min(earliest);
        }
    }

    /// Whether an item of this bucket may expire at `expiry`, according to the bounds.
    #[cfg(test)]
    pub(crate) fn covers(&self, bucket: u64, expiry: u32) -> bool {
        let is_same = |other: u64| (other ^ bucket) & (self.parts() - 1) == 0;
        let walked = self.walk.as_ref().is_some_and(|walk| {
            is_same(walk.bucket) && (walk.earliest <= expiry || walk.bucket <= bucket)
        });
        walked || self.bounds[self.leaf(bucket)] <= expiry
    }

    /// Begins a walk over the part with the earliest bound.
    fn begin(&mut self) {
        let (bound, half) = (self.bounds[1], self.bounds.len() / 2);
        let mut at = 1;
        while at < half {
            at *= 2;
            at += usize::from(self.bounds[at] != bound);
        }
        self.walk = Some(Walk {
            bucket: (at - half) as u64,
            earliest: NEVER,
        });
        // Items that are written during the walk lower it again.
        self.bounds[at] = NEVER;
        while at > 1 {
            at /= 2;
            self.bounds[at] = self.bounds[2 * at].min(self.bounds[2 * at + 1]);
        }
    }

    fn parts(&self) -> u64 {
        self.bounds.len() as u64 / 2
    }

    fn leaf(&self, bucket: u64) -> usize {
        // The number of parts is a power of two.
        let part = bucket & (self.parts() - 1);
        self.bounds.len() / 2 + usize::try_from(part).expect("it is below the number of parts")
    }
}

#[cfg(test)]
mod tests;
