//! One row of a result, in the form that machines read: one JSON object a line.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::machine::Origin;
use crate::state::{Condition, Reason};

/// A word that this program wrote, or read from a file.
type Word = Cow<'static, str>;

/// One figure of one case. The fields and their order are the interface of `--json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The experiment that measured the figure.
    pub experiment: Word,
    /// The transport, or `none`.
    pub transport: Word,
    /// The case: names and values of its parameters.
    pub params: Map<String, Value>,
    /// The figure's name.
    pub metric: Word,
    /// The figure's unit.
    pub unit: Word,
    /// The median of all rounds.
    pub median: f64,
    /// The smallest value of a round.
    pub min: f64,
    /// The largest value of a round.
    pub max: f64,
    /// The number of rounds from which these three values come: those in the machine's most
    /// frequent state.
    pub runs: usize,
    /// Median of the baseline over the same rounds.
    pub baseline: Option<f64>,
    /// The baseline, in words.
    pub baseline_name: Option<Word>,
    /// `median / baseline`.
    pub ratio: Option<f64>,
    /// False if the baseline is implausible for this machine, or if no round stayed in one state of
    /// the machine.
    pub valid: bool,
    /// False if fewer than [`ENOUGH`] rounds count, and the figure depends on the machine. `None`
    /// in rows of older programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<bool>,
    /// The state of the machine.
    #[serde(default = "Condition::of_older", deserialize_with = "condition")]
    pub state: Condition,
    /// The program and the machine that measured the figure.
    pub run: Origin,
}

/// Fewest rounds of a measurement. A row with fewer is a first look, and says so.
pub const ENOUGH: usize = 7;

/// Reads the state of a row. Some older programs wrote `null`.
fn condition<'de, D: Deserializer<'de>>(from: D) -> Result<Condition, D::Error> {
    let read = Option::<Condition>::deserialize(from)?;
    Ok(read.unwrap_or_else(Condition::of_older))
}

impl Row {
    /// A valid row of one round, without transport or baseline.
    pub fn new(
        experiment: &'static str,
        (metric, unit): (&'static str, &'static str),
        Spread { median, min, max }: Spread,
    ) -> Self {
        Self {
            experiment: experiment.into(),
            transport: "none".into(),
            params: Map::new(),
            metric: metric.into(),
            unit: unit.into(),
            median,
            min,
            max,
            runs: 1,
            baseline: None,
            baseline_name: None,
            ratio: None,
            valid: true,
            measured: None,
            state: Condition::Without(Reason::NotMeasured),
            run: Origin::here().clone(),
        }
    }

    /// Adds a baseline and its name.
    #[must_use]
    pub fn against(self, baseline: f64, name: impl Into<Word>) -> Self {
        let ratio = self.median / baseline;
        Self {
            baseline: Some(baseline),
            baseline_name: Some(name.into()),
            ratio: Some(ratio).filter(|it| it.is_finite()),
            ..self
        }
    }

    /// The reason why enough rounds are needed and missing, in words; `None` if nothing is missing.
    #[must_use]
    pub fn shortage(&self) -> Option<String> {
        let is_fixed = self.state == Condition::Without(Reason::NotMeasured);
        let measured = self.measured.unwrap_or(is_fixed || self.runs >= ENOUGH);
        (!measured).then(|| format!("not measured: {} of {ENOUGH} rounds", self.runs))
    }

    /// Experiment, metric and transport.
    pub fn what(&self) -> [&str; 3] {
        [&self.experiment, &self.metric, &self.transport]
    }
}

/// Median, smallest and largest of several values.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Spread {
    /// The value in the middle.
    pub median: f64,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
}

impl Spread {
    /// The spread of `values`; `None` if there are none. Of an even number of values the median
    /// is the mean of the two in the middle.
    pub fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
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
pub(crate) mod tests;
