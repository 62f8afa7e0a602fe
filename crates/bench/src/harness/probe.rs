//! One thing that can be measured again and again: an experiment's subject, or its baseline.

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
    /// One that stands for itself.
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
    /// Nothing: it stands for itself.
    Nothing,
    /// The value at this index of the case's baseline.
    Baseline(usize),
    /// The value at this index of the same measurement.
    Own {
        /// Its place.
        index: usize,
        /// Its name for people.
        name: &'static str,
    },
}

/// The result of one measurement.
#[derive(Clone, Debug, Default)]
pub struct Measurement {
    /// One value for each metric, and behind them those that metrics are compared with.
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

/// Something to measure. Each measurement starts afresh, in processes of its own.
pub(crate) trait Probe {
    /// Its name, in a few words.
    fn name(&self) -> &'static str;

    /// The values of [`Probe::measure`], in order.
    fn metrics(&self) -> &'static [Metric];

    /// Measures for `span`.
    ///
    /// # Errors
    /// [`harness::signal::Interrupted`]; or a process could not be started, failed or hung.
    fn measure(&mut self, span: Duration) -> anyhow::Result<Measurement>;

    /// About what a measurement takes beside the span: starting processes, silences.
    fn overhead(&self) -> Duration {
        SET_UP
    }

    /// False if the values are the same whatever the machine does, because they are counted or
    /// simulated: then nothing needs to say in which state it was.
    fn is_timed(&self) -> bool {
        true
    }

    /// False if these medians show that the machine was disturbed, so that nothing that is
    /// compared with them means much.
    fn is_plausible(&self, _medians: &[f64]) -> bool {
        true
    }
}

/// About what starting and ending two processes takes.
pub(crate) const SET_UP: Duration = Duration::from_millis(30);

/// How long to wait for the report of a process that measures for `span`.
pub(crate) fn patience(span: Duration) -> Duration {
    span + Duration::from_secs(10)
}
