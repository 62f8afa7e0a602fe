//! One row of a result, in the form that machines read: one JSON object a line.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::machine::Origin;

/// A word that this program wrote, or read.
type Word = Cow<'static, str>;

/// One figure of one case. The fields are the interface of `--json`; their order is too.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    pub(crate) experiment: Word,
    /// `none` for what uses no transport.
    pub(crate) transport: Word,
    pub(crate) params: Map<String, Value>,
    pub(crate) metric: Word,
    pub(crate) unit: Word,
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    /// How many rounds the three are taken from.
    pub(crate) runs: usize,
    /// Median of the baseline over the same rounds.
    pub(crate) baseline: Option<f64>,
    pub(crate) baseline_name: Option<Word>,
    /// `median / baseline`.
    pub(crate) ratio: Option<f64>,
    /// False if the baseline is implausible for this machine.
    pub(crate) valid: bool,
    /// What measured it, and on which machine.
    pub(crate) run: Origin,
}

impl Row {
    /// Experiment, metric and transport.
    pub(crate) fn what(&self) -> [&str; 3] {
        [&self.experiment, &self.metric, &self.transport]
    }
}

/// Median, smallest and largest of several values.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

impl Spread {
    /// The spread of `values`; `None` if there are none. Of an even number of values the median
    /// is the mean of the two in the middle.
    pub(super) fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let (&min, &max) = (values.first()?, values.last()?);
        let middle = values.len() / 2;
        let median = match values.len() % 2 {
            1 => values[middle],
            _ => f64::midpoint(values[middle - 1], values[middle]),
        };
        Some(Self { median, min, max })
    }
}

/// A row for tests, with a spread of 5 % around a median of 400 ns, twice the baseline.
#[cfg(test)]
pub(crate) fn sample() -> Row {
    Row {
        experiment: "latency".into(),
        transport: "shm".into(),
        params: Map::from_iter([("size".to_owned(), 32.into())]),
        metric: "rtt_p50".into(),
        unit: "ns".into(),
        median: 400.0,
        min: 390.0,
        max: 410.0,
        runs: 5,
        baseline: Some(200.0),
        baseline_name: Some("raw".into()),
        ratio: Some(2.0),
        valid: true,
        run: Origin::here().clone(),
    }
}

#[cfg(test)]
mod tests;
