//! One row of a result, in the form that machines read: one JSON object a line.

use serde::Serialize;
use serde_json::{Map, Value};

/// One figure of one case. The fields are the interface of `--json`; their order is too.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Row {
    pub(super) experiment: &'static str,
    /// `none` for what uses no transport.
    pub(super) transport: &'static str,
    pub(super) params: Map<String, Value>,
    pub(super) metric: &'static str,
    pub(super) unit: &'static str,
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
    /// How many rounds the three are taken from.
    pub(super) runs: usize,
    /// Median of the baseline over the same rounds.
    pub(super) baseline: Option<f64>,
    pub(super) baseline_name: Option<&'static str>,
    /// `median / baseline`.
    pub(super) ratio: Option<f64>,
    /// False if the baseline is implausible for this machine.
    pub(super) valid: bool,
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

#[cfg(test)]
mod tests;
