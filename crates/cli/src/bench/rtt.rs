//! Round trips, timed one by one. Raw baselines and experiments use the same loop, so that both
//! sides of a ratio contain the same clock reads.

use std::time::Duration;

use anyhow::ensure;
use hdrhistogram::Histogram;

use super::probe::Metric;
use super::ticks::{self, Stretch};

/// Round trips before the first that counts.
const WARM_UP: u64 = 2_000;

/// How many round trips pass between two looks at the time.
const BLOCK: u64 = 64;

/// What [`measure`] returns, in order.
pub(super) const METRICS: [Metric; 3] = [
    metric("rtt_p50", 0),
    metric("rtt_p99", 1),
    metric("rtt_p999", 2),
];

const QUANTILES: [f64; 3] = [0.5, 0.99, 0.999];

const fn metric(name: &'static str, index: usize) -> Metric {
    Metric {
        name,
        unit: "ns",
        baseline: Some(index),
    }
}

/// Calls `trip` with a fresh counter for `span`, and returns quantiles of its duration in ns. The
/// cost of one clock read is part of each.
///
/// # Errors
/// A trip said that its answer was wrong.
#[expect(
    clippy::cast_precision_loss,
    reason = "ticks of a round trip are far below 2^53"
)]
pub(super) fn measure(
    span: Duration,
    mut trip: impl FnMut(u64) -> anyhow::Result<bool>,
) -> anyhow::Result<[f64; 3]> {
    let mut counter = 0;
    while counter < WARM_UP {
        ensure!(trip(counter)?, "the answer to request {counter} is wrong");
        counter += 1;
    }
    // Two significant digits would round 400 ns to 2 ns steps; three cost 20 KB more.
    let mut histogram = Histogram::<u64>::new_with_bounds(1, 1 << 40, 3)?;
    let stretch = Stretch::begin();
    while stretch.elapsed() < span {
        for _ in 0..BLOCK {
            let begin = ticks::now();
            let is_right = trip(counter)?;
            histogram.saturating_record(ticks::now().wrapping_sub(begin));
            ensure!(is_right, "the answer to request {counter} is wrong");
            counter += 1;
        }
    }
    let ns = stretch.ns_per_tick();
    Ok(QUANTILES.map(|quantile| histogram.value_at_quantile(quantile) as f64 * ns))
}

#[cfg(test)]
mod tests;
