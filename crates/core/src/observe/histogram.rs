//! Histograms of times. Recording a time costs two plain additions. From 8 ns on, each power of two
//! has eight buckets, so a bucket's width is at most an eighth of its smallest time.
//!
//! Written on the data path through `observe/stats.rs`; read by the pages and commands that show an
//! endpoint's times. Invariant: the buckets cover all times of up to `BITS` bits, in order, without
//! gaps.

use crate::time::Nanos;

/// The base-2 logarithm of the number of buckets for each power of two.
const FINE: u32 = 3;
/// Times that need more bits than this (2^36 ns, about 69 s, and longer) share the last bucket.
const BITS: u32 = 36;
/// Values below this have a bucket each.
const EXACT: u64 = 2 << FINE;

/// The sum of measured times, and the number of them in each bucket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Histogram {
    sum: u64,
    buckets: [u64; Histogram::BUCKETS],
}

/// The times that an endpoint has measured since its start.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Histograms {
    /// Requests that this side issued: from their first packet to their answer.
    pub call: Histogram,
    /// Round trips that were sampled, without the time in the server (rule S10).
    pub rtt: Histogram,
    /// Time that requests spent in this server, if their clients asked for it.
    pub residence: Histogram,
}

impl Histogram {
    /// The number of buckets.
    pub const BUCKETS: usize = ((BITS - FINE + 1) << FINE) as usize;

    /// Adds one measured time.
    #[inline]
    pub fn record(&mut self, time: Nanos) {
        self.record_many(time, 1);
    }

    /// Adds `time` as if it had been measured `times` times.
    #[inline]
    pub fn record_many(&mut self, time: Nanos, times: u64) {
        self.sum += time.0 * times;
        // The last bucket also has all longer times.
        match self.buckets.get_mut(Self::bucket(time.0)) {
            Some(bucket) => *bucket += times,
            None => self.buckets[Self::BUCKETS - 1] += times,
        }
    }

    /// The sum of all times, in nanoseconds.
    pub const fn sum_ns(&self) -> u64 {
        self.sum
    }

    /// The number of times in each bucket.
    pub const fn buckets(&self) -> &[u64; Self::BUCKETS] {
        &self.buckets
    }

    /// The smallest time of a bucket in nanoseconds. The last bucket has all longer times too.
    pub const fn smallest_ns(bucket: usize) -> u64 {
        let bucket = bucket as u64;
        if bucket < EXACT {
            return bucket;
        }
        let shift = (bucket >> FINE) - 1;
        (bucket - (shift << FINE)) << shift
    }

    /// The bucket of a time. If the time is too long for any bucket, the index is past the last.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "there are eight for each of 64 bits"
    )]
    fn bucket(time_ns: u64) -> usize {
        let shift = (u64::BITS - 1 - FINE) - (time_ns | (EXACT - 1)).leading_zeros();
        ((u64::from(shift) << FINE) + (time_ns >> shift)) as usize
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            sum: 0,
            buckets: [0; Self::BUCKETS],
        }
    }
}

impl Histograms {
    /// Each histogram with its name.
    pub const fn named(&self) -> [(&'static str, &Histogram); 3] {
        let Self {
            call,
            rtt,
            residence,
        } = self;
        [("call", call), ("rtt", rtt), ("residence", residence)]
    }
}

#[cfg(test)]
mod tests;
