//! Many puts in flight: for the span of a measurement, and for ten minutes, in which a cluster at
//! full load without a fault elects no leader.

use std::time::Duration;

use serde_json::Value;

use super::client::Step;
use super::run;
use crate::harness::probe::{Against, Measurement, Metric, Probe};
use crate::harness::transport::Transport;

/// Puts in flight.
pub(super) const MANY: usize = 32;

/// Seconds of the calm load. A run with less time leaves this case out. A build with debug
/// assertions has fewer, because its figures mean nothing.
const CALM_SECONDS: u16 = match cfg!(debug_assertions) {
    true => 3,
    false => 600,
};

/// The values that are also measured with etcd.
pub(super) const PUTS: [Metric; 2] = [
    Metric {
        name: "puts_per_s",
        unit: "1/s",
        against: Against::Baseline(0),
    },
    Metric {
        name: "put_p99",
        unit: "ns",
        against: Against::Baseline(1),
    },
];

/// The values of [`Many`].
const METRICS: [Metric; 4] = [
    PUTS[0],
    PUTS[1],
    Metric::alone("echoes_per_put", ""),
    Metric::alone("elections", ""),
];

/// The values of [`Calm`].
const CALM: [Metric; 3] = [
    Metric::alone("elections", ""),
    Metric::alone("puts_per_s", "1/s"),
    Metric::alone("put_p99", "ns"),
];

/// Many puts in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Many(pub(super) Transport);

/// Many puts in flight, for ten minutes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Calm(pub(super) Transport);

impl Probe for Many {
    fn name(&self) -> &'static str {
        "replicated puts"
    }

    fn metrics(&self) -> &'static [Metric] {
        &METRICS
    }

    fn overhead(&self) -> Duration {
        super::overhead()
    }

    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement> {
        let steps = [Step::Echo, Step::Put];
        let mut run = run(self.0, MANY, &steps, (span / 2, Duration::ZERO))?;
        let [echo, put] = [run.outcomes[0], run.outcomes[1]];
        let elections = count(run.elections);
        run.measurement.values = vec![put.per_s, put.p99, echo.per_s / put.per_s, elections];
        Ok(run.measurement)
    }
}

impl Probe for Calm {
    fn name(&self) -> &'static str {
        "replicated puts for ten minutes"
    }

    fn metrics(&self) -> &'static [Metric] {
        &CALM
    }

    fn overhead(&self) -> Duration {
        super::overhead() + time()
    }

    /// An election counts, whatever the state of the machine.
    fn is_timed(&self) -> bool {
        false
    }

    /// Ignores the span.
    fn measure(&mut self, _span: Duration) -> anyhow::Result<Measurement> {
        let mut run = run(self.0, MANY, &[Step::Put], (time(), Duration::ZERO))?;
        let put = run.outcomes[0];
        run.measurement.values = vec![count(run.elections), put.per_s, put.p99];
        Ok(run.measurement)
    }
}

/// The minutes of the calm load, as a parameter of its rows.
pub(super) fn minutes() -> Value {
    match CALM_SECONDS % 60 {
        0 => (CALM_SECONDS / 60).into(),
        _ => (f64::from(CALM_SECONDS) / 60.0).into(),
    }
}

const fn time() -> Duration {
    Duration::from_secs(CALM_SECONDS as u64)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a run are far below 2^53"
)]
fn count(number: u64) -> f64 {
    number as f64
}
