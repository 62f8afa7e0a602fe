//! Round trips, timed one by one. Raw baselines and experiments use the same recorder, so that
//! both sides of a ratio contain the same clock reads.

use std::time::Duration;

use anyhow::ensure;
use hdrhistogram::Histogram;

use super::probe::{Against, Metric};
use super::ticks;
use super::ticks::Stretch;

/// Round trips before the first that counts.
const WARM_UP: u64 = 2_000;

/// The number of round trips between two checks of the time.
const BLOCK: u64 = 64;

/// The values of [`Recorder::quantiles`], in order.
pub(crate) const METRICS: [Metric; 3] = [
    metric("rtt_p50", 0),
    metric("rtt_p99", 1),
    metric("rtt_p999", 2),
];

const QUANTILES: [f64; 3] = [0.5, 0.99, 0.999];

const fn metric(name: &'static str, index: usize) -> Metric {
    Metric {
        name,
        unit: "ns",
        against: Against::Baseline(index),
    }
}

/// Durations in ticks, and the stretch of time from which the length of a tick is computed.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    histogram: Histogram<u64>,
    skip: u64,
    stretch: Stretch,
}

impl Recorder {
    /// Skips the first `skip` durations, for caches and branch predictors.
    pub(crate) fn skipping(skip: u64) -> Self {
        Self {
            // With two significant digits, times around 400 ns would be rounded to steps of 2 ns;
            // three digits cost 20 KB more.
            histogram: Histogram::new_with_bounds(1, 1 << 40, 3).expect("the bounds are in order"),
            skip,
            stretch: Stretch::begin(),
        }
    }

    /// Skips the first round trips, until code and data are warm.
    pub(crate) fn warming_up() -> Self {
        Self::skipping(WARM_UP)
    }

    /// Records one duration.
    #[inline]
    pub(crate) fn record(&mut self, ticks: u64) {
        if self.skip == 0 {
            self.histogram.saturating_record(ticks);
        } else {
            self.skip -= 1;
        }
    }

    /// The number of durations that count so far.
    pub(crate) fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// One quantile in ns.
    pub(crate) fn quantile(&self, quantile: f64) -> f64 {
        self.quantiles_of([quantile])[0]
    }

    /// The mean in ns.
    #[cfg(feature = "full")]
    pub(crate) fn mean(&self) -> f64 {
        self.histogram.mean() * self.stretch.ns_per_tick()
    }

    /// The values of [`METRICS`] in ns.
    pub(crate) fn quantiles(&self) -> [f64; 3] {
        self.quantiles_of(QUANTILES)
    }

    /// Quantiles in ns. All are computed with the same length of a tick, so they keep their order.
    #[expect(
        clippy::cast_precision_loss,
        reason = "ticks of a round trip are far below 2^53"
    )]
    fn quantiles_of<const N: usize>(&self, quantiles: [f64; N]) -> [f64; N] {
        let ns_per_tick = self.stretch.ns_per_tick();
        quantiles.map(|quantile| self.histogram.value_at_quantile(quantile) as f64 * ns_per_tick)
    }
}

/// Calls `trip` repeatedly during `span`, each time with a fresh counter, and returns quantiles of
/// its duration in ns. Each duration includes the cost of one clock read.
///
/// # Errors
/// A trip reports a wrong answer.
pub(crate) fn measure(
    span: Duration,
    mut trip: impl FnMut(u64) -> anyhow::Result<bool>,
) -> anyhow::Result<[f64; 3]> {
    let mut counter = 0;
    while counter < WARM_UP {
        ensure!(trip(counter)?, "the answer to request {counter} is wrong");
        counter += 1;
    }
    let mut recorder = Recorder::skipping(0);
    let stretch = Stretch::begin();
    while stretch.elapsed() < span {
        for _ in 0..BLOCK {
            let begin = ticks::now();
            let is_right = trip(counter)?;
            recorder.record(ticks::now().wrapping_sub(begin));
            ensure!(is_right, "the answer to request {counter} is wrong");
            counter += 1;
        }
    }
    Ok(recorder.quantiles())
}

#[cfg(test)]
mod tests;
