//! Probes: each measures one subject or baseline repeatedly.

use std::time::Duration;

/// One figure of a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metric {
    /// Its name in JSON.
    pub name: &'static str,
    /// `ns`, `1/s`, `GB/s`, and so on.
    pub unit: &'static str,
    /// Its baseline.
    pub against: Against,
}

impl Metric {
    /// A metric without a baseline.
    pub(crate) const fn alone(name: &'static str, unit: &'static str) -> Self {
        Self {
            name,
            unit,
            against: Against::Nothing,
        }
    }
}

/// The baseline of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Against {
    /// No baseline.
    Nothing,
    /// The value at this index of the case's baseline.
    Baseline(usize),
    /// Another value of the same measurement.
    Own {
        /// The index of that value.
        index: usize,
        /// Its name, for people to read.
        name: &'static str,
    },
}

/// The result of one measurement.
#[derive(Clone, Debug, Default)]
pub struct Measurement {
    /// One value for each metric, followed by the values that are compared with metrics.
    pub values: Vec<f64>,
    /// Unexpected events that may explain the values.
    pub alarms: Vec<String>,
    /// Counts of the measurement, for `--verbose`.
    pub details: Vec<String>,
}

impl From<Vec<f64>> for Measurement {
    fn from(values: Vec<f64>) -> Self {
        Self {
            values,
            ..Self::default()
        }
    }
}

/// A subject or baseline. Each measurement starts processes of its own, unless the probe has
/// [`Resident`](super::resident::Resident) ones.
pub(crate) trait Probe {
    /// Its name, in a few words.
    fn name(&self) -> &str;

    /// The values of [`Probe::measure`], in order.
    fn metrics(&self) -> &'static [Metric];

    /// Measures for `span`.
    ///
    /// # Errors
    /// [`harness::signal::Interrupted`]; or a process could not be started, failed or hung.
    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement>;

    /// Approximate time of a measurement in addition to its span: starting processes, silences.
    fn overhead(&self) -> Duration {
        SET_UP
    }

    /// False if the values are counted or simulated: they do not depend on the machine's speed, and
    /// its state does not matter.
    fn is_timed(&self) -> bool {
        true
    }

    /// False if these medians show that the machine was disturbed. Values that are compared with
    /// them then mean little.
    fn is_plausible(&self, _medians: &[f64]) -> bool {
        true
    }

    /// True if these medians show an overload: the measuring process was itself the limit, or the
    /// subject did not reach the given load. The row is then not valid.
    fn is_overloaded(&self, _medians: &[f64]) -> bool {
        false
    }
}

/// Approximate time to start and end two processes.
pub(crate) const SET_UP: Duration = Duration::from_millis(30);

/// How long to wait for the report of a process that measures for `span`.
pub(crate) fn patience(span: Duration) -> Duration {
    span + Duration::from_secs(10)
}
