//! Finds the best width for a look-up on this machine, by measuring.
//!
//! The clock is an argument, because the crate has none. Programs call this when they start.

use crate::batch::Batch;

/// How often each width is measured. Its best time counts, because noise only adds time.
pub const ROUNDS: usize = 5;

/// Widths to try, if the batch is wide enough for them.
const WIDTHS: [usize; 11] = [1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64];

/// A wider batch must be faster by a factor of `1 + 1 / WORTH`, because lanes cost stack and cache.
const WORTH: u64 = 32;

/// The result of [`Batch::tune`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tuned<const CAP: usize> {
    /// The narrowest batch that is within three per cent of the fastest.
    pub batch: Batch<CAP>,
    /// The time of that batch's best run, in units of the clock.
    pub ticks: u64,
}

impl<const CAP: usize> Batch<CAP> {
    /// Measures `run` at widths from 1 to `CAP` and returns the best.
    ///
    /// `clock` reads a monotonic time in any unit. `run` must look up items that are not in the
    /// cache, different ones in each call, and enough of them to take ten microseconds or more.
    ///
    /// ```
    /// use std::time::Instant;
    ///
    /// async fn read(table: &[u64], at: usize) -> u64 {
    ///     *gopt::load(&table[at]).await
    /// }
    /// let table = vec![1; 1 << 16];
    /// let mut at = 1;
    /// let start = Instant::now();
    /// let clock = || u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    /// let tuned = gopt::Batch::<32>::tune(clock, |batch| {
    ///     let places = (0..256).map(|_| {
    ///         at = at * 25_173 % 65_521;
    ///         at
    ///     });
    ///     batch.for_each(places, |at| read(&table, at), |_, value| assert_eq!(value, 1));
    /// });
    /// assert!((1..=32).contains(&tuned.batch.width()));
    /// ```
    pub fn tune(mut clock: impl FnMut() -> u64, mut run: impl FnMut(Self)) -> Tuned<CAP> {
        let mut best = [u64::MAX; WIDTHS.len()];
        // Rounds are the outer loop, so that a slow moment of the machine affects every width.
        for _ in 0..ROUNDS {
            for (best, width) in best.iter_mut().zip(WIDTHS) {
                if let Ok(batch) = Self::with_width(width) {
                    let start = clock();
                    run(batch);
                    *best = (*best).min(clock().saturating_sub(start));
                }
            }
        }
        let fastest = best.iter().copied().min().unwrap_or(u64::MAX);
        let good_enough = fastest.saturating_add(fastest / WORTH);
        let widths = best.iter().zip(WIDTHS);
        let found = widths.filter(|(ticks, _)| **ticks <= good_enough);
        found
            .filter_map(|(&ticks, width)| Some((ticks, Self::with_width(width).ok()?)))
            .map(|(ticks, batch)| Tuned { batch, ticks })
            .next()
            .unwrap_or(Tuned {
                batch: Self::new(),
                ticks: fastest,
            })
    }
}

#[cfg(test)]
mod tests;
