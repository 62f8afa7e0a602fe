//! Cases and rounds. A round measures every case once, its baseline right before it, so that a
//! disturbance of some seconds falls on one round of many cases and not on all rounds of one, and
//! so that both sides of a ratio see the same machine.

use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::probe::Probe;
use super::progress::Progress;
use super::row::{Row, Spread};
use crate::signal;

/// The shortest measurement: below it start-up effects would count.
const SHORTEST: Duration = Duration::from_millis(20);

/// About what starting and ending the processes of one measurement takes.
const SET_UP: Duration = Duration::from_millis(30);

/// One line of parameters of an experiment, and what was measured for it.
pub(super) struct Case {
    experiment: &'static str,
    transport: &'static str,
    params: Map<String, Value>,
    subject: Measured,
    baseline: Option<Measured>,
}

/// A probe and the values of the rounds so far.
struct Measured {
    probe: Box<dyn Probe>,
    rounds: Vec<Vec<f64>>,
}

impl Case {
    /// A case without a baseline.
    pub(super) fn new(
        experiment: &'static str,
        transport: &'static str,
        params: &[(&str, u64)],
        subject: impl Probe + 'static,
    ) -> Self {
        let params = params
            .iter()
            .map(|&(name, value)| (name.to_owned(), value.into()))
            .collect();
        Self {
            experiment,
            transport,
            params,
            subject: Measured::new(subject),
            baseline: None,
        }
    }

    /// The rows of this case: one for each metric; none if no round was completed.
    pub(super) fn rows(&self) -> Vec<Row> {
        let metrics = self.subject.probe.metrics().iter().enumerate();
        metrics.filter_map(|(index, _)| self.row(index)).collect()
    }

    fn row(&self, index: usize) -> Option<Row> {
        let metric = self.subject.probe.metrics()[index];
        let Spread { median, min, max } = self.subject.spread(index)?;
        let compared = self.baseline.as_ref().zip(metric.baseline);
        let baseline = compared.and_then(|(baseline, index)| baseline.spread(index));
        let baseline = baseline.map(|spread| spread.median);
        Some(Row {
            experiment: self.experiment,
            transport: self.transport,
            params: self.params.clone(),
            metric: metric.name,
            unit: metric.unit,
            median,
            min,
            max,
            runs: self.subject.rounds.len(),
            baseline,
            baseline_name: compared.map(|(baseline, _)| baseline.probe.name()),
            ratio: baseline
                .map(|baseline| median / baseline)
                .filter(|ratio| ratio.is_finite()),
            valid: self
                .baseline
                .as_ref()
                .unwrap_or(&self.subject)
                .is_plausible(),
        })
    }

    /// One round.
    fn measure(&mut self, span: Duration) -> anyhow::Result<()> {
        // Both or neither: a baseline without its subject would belong to another round.
        let baseline = self
            .baseline
            .as_mut()
            .map(|it| it.probe.measure(span))
            .transpose()?;
        let subject = self.subject.probe.measure(span)?;
        self.subject.rounds.push(subject);
        if let (Some(measured), Some(values)) = (&mut self.baseline, baseline) {
            measured.rounds.push(values);
        }
        Ok(())
    }

    /// How many measurements a round makes.
    fn measurements(&self) -> u32 {
        1 + u32::from(self.baseline.is_some())
    }

    fn label(&self) -> String {
        let params = self
            .params
            .iter()
            .map(|(name, value)| format!(" {name} {value}"));
        format!(
            "{}{}",
            self.subject.probe.name(),
            params.collect::<String>()
        )
    }
}

impl Measured {
    fn new(probe: impl Probe + 'static) -> Self {
        Self {
            probe: Box::new(probe),
            rounds: Vec::new(),
        }
    }

    fn spread(&self, index: usize) -> Option<Spread> {
        Spread::of(self.rounds.iter().map(|values| values[index]))
    }

    fn is_plausible(&self) -> bool {
        let metrics = 0..self.probe.metrics().len();
        let medians = metrics.map(|index| self.spread(index).map(|spread| spread.median));
        medians
            .collect::<Option<Vec<f64>>>()
            .is_some_and(|it| self.probe.is_plausible(&it))
    }
}

/// Measures every case `runs` times, in about `budget` altogether. What was measured stays in the
/// cases, also when it ends early.
///
/// # Errors
/// [`signal::Interrupted`]; or the first probe that failed.
pub(super) fn run(cases: &mut [Case], runs: u32, budget: Duration) -> anyhow::Result<()> {
    let begin = Instant::now();
    let mut left = runs * cases.iter().map(Case::measurements).sum::<u32>();
    let progress = Progress::start(u64::from(left), runs);
    for round in 1..=runs {
        for case in cases.iter_mut() {
            signal::check()?;
            progress.measuring(round, &case.label());
            case.measure(span(budget.saturating_sub(begin.elapsed()), left))?;
            left -= case.measurements();
            progress.advance(u64::from(case.measurements()));
        }
        progress.round_done(round);
    }
    Ok(())
}

/// How long one of `left` measurements may take, if all of them have `time`.
fn span(time: Duration, left: u32) -> Duration {
    (time / left.max(1)).saturating_sub(SET_UP).max(SHORTEST)
}

#[cfg(test)]
mod tests;
