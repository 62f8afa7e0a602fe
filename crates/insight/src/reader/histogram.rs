//! A histogram from a file, which also has the bounds of the buckets.

use std::sync::Arc;

/// Counts of times in nanoseconds, by bucket.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Histogram {
    /// The smallest value of each bucket, ascending.
    bounds: Arc<[u64]>,
    counts: Vec<u64>,
    sum: u64,
}

impl Histogram {
    /// Reads the next words: the sum, and a count for each bucket.
    pub(super) fn take(bounds: &[u64], words: &mut impl Iterator<Item = u64>) -> Self {
        Self {
            bounds: bounds.into(),
            sum: words.next().unwrap_or(0),
            counts: words.take(bounds.len()).collect(),
        }
    }

    /// The number of times.
    pub fn count(&self) -> u64 {
        self.counts
            .iter()
            .fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The sum of all times.
    pub const fn sum(&self) -> u64 {
        self.sum
    }

    /// The mean of all times; 0 if there are none.
    pub fn mean(&self) -> u64 {
        self.sum.checked_div(self.count()).unwrap_or(0)
    }

    /// The quantile at `part`, from 0 to 1, as the middle of its bucket; 0 if there are no times.
    pub fn quantile(&self, part: f64) -> u64 {
        let count = self.count();
        // Counts are far below 2^52, and the value is rounded on purpose.
        let rank = (count as f64 * part).ceil().max(1.0);
        let mut seen = 0_u64;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen = seen.saturating_add(*count);
            if *count != 0 && seen as f64 >= rank {
                return self.middle(bucket);
            }
        }
        0
    }

    /// The longest time, as the middle of its bucket; 0 if there are no times.
    pub fn longest(&self) -> u64 {
        let last = self.counts.iter().rposition(|count| *count != 0);
        last.map_or(0, |bucket| self.middle(bucket))
    }

    /// The times that were added since an earlier reading of the same histogram.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let counts = self.counts.iter().enumerate().map(|(bucket, count)| {
            count.saturating_sub(earlier.counts.get(bucket).copied().unwrap_or(0))
        });
        Self {
            bounds: Arc::clone(&self.bounds),
            counts: counts.collect(),
            sum: self.sum.saturating_sub(earlier.sum),
        }
    }

    /// The number of times below each power of two. It is exact, because buckets begin there.
    pub fn up_to_powers_of_two(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut seen = 0_u64;
        self.counts
            .iter()
            .enumerate()
            .filter_map(move |(bucket, count)| {
                seen = seen.saturating_add(*count);
                let next = *self.bounds.get(bucket + 1)?;
                next.is_power_of_two().then_some((next - 1, seen))
            })
    }

    fn middle(&self, bucket: usize) -> u64 {
        let low = self.bounds.get(bucket).copied().unwrap_or(0);
        let next = self.bounds.get(bucket + 1).copied();
        let high = next.map_or(low, |next| next - 1);
        low.midpoint(high)
    }
}
