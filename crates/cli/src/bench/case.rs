//! One case of an experiment: what is measured, beside what, with which parameters, and the rows
//! that come of its rounds. Made by the experiments, measured by [`super::plan`].

use std::time::Duration;

use serde_json::{Map, Value};

use super::probe::{Against, Measurement, Probe};
use harness::row::{Row, Spread};

/// One line of parameters of an experiment, and what was measured for it.
pub(super) struct Case {
    experiment: &'static str,
    transport: &'static str,
    params: Map<String, Value>,
    subject: Measured,
    baseline: Option<Measured>,
    alarms: Vec<String>,
}

/// A probe and the values of the rounds so far.
struct Measured {
    probe: Box<dyn Probe>,
    rounds: Vec<Vec<f64>>,
}

impl Case {
    /// A case without a baseline.
    pub(super) fn new<V: Clone + Into<Value>>(
        experiment: &'static str,
        transport: &'static str,
        params: &[(&str, V)],
        subject: impl Probe + 'static,
    ) -> Self {
        let params = params
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone().into()))
            .collect();
        Self {
            experiment,
            transport,
            params,
            subject: Measured::new(subject),
            baseline: None,
            alarms: Vec::new(),
        }
    }

    /// The same, with a baseline that is measured right before the subject in each round.
    pub(super) fn against(mut self, baseline: impl Probe + 'static) -> Self {
        self.baseline = Some(Measured::new(baseline));
        self
    }

    /// The rows of this case: one for each metric; none if no round was completed.
    pub(super) fn rows(&self) -> Vec<Row> {
        let metrics = self.subject.probe.metrics().iter().enumerate();
        metrics.filter_map(|(index, _)| self.row(index)).collect()
    }

    /// Its parameters, in order.
    pub(super) fn params(&self) -> &Map<String, Value> {
        &self.params
    }

    /// What should not have happened in its rounds.
    pub(super) fn alarms(&self) -> &[String] {
        &self.alarms
    }

    fn row(&self, index: usize) -> Option<Row> {
        let metric = self.subject.probe.metrics()[index];
        let spread = self.subject.spread(index)?;
        let judged = self.baseline.as_ref().unwrap_or(&self.subject);
        let row = Row {
            transport: self.transport.into(),
            params: self.params.clone(),
            runs: self.subject.rounds.len(),
            valid: judged.is_plausible(),
            ..Row::new(self.experiment, (metric.name, metric.unit), spread)
        };
        Some(match self.compared(metric.against) {
            Some((baseline, name)) => row.against(baseline, name),
            None => row,
        })
    }

    /// The median of what a figure is compared with, and what that is.
    fn compared(&self, against: Against) -> Option<(f64, &'static str)> {
        let (measured, index, name) = match against {
            Against::Nothing => return None,
            Against::Own { index, name } => (&self.subject, index, name),
            Against::Baseline(index) => {
                let baseline = self.baseline.as_ref()?;
                (baseline, index, baseline.probe.name())
            }
        };
        Some((measured.spread(index)?.median, name))
    }

    /// One round. Returns what was counted in it.
    pub(super) fn measure(&mut self, round: u32, span: Duration) -> anyhow::Result<Vec<String>> {
        // Both or neither: a baseline without its subject would belong to another round.
        let baseline = self
            .baseline
            .as_mut()
            .map(|it| it.probe.measure(span))
            .transpose()?;
        let subject = self.subject.probe.measure(span)?;
        self.note(round, &subject);
        let details = subject.details.clone();
        self.subject.rounds.push(subject.values);
        if let (Some(measured), Some(values)) = (&mut self.baseline, baseline) {
            measured.rounds.push(values.values);
        }
        Ok(details)
    }

    fn note(&mut self, round: u32, measurement: &Measurement) {
        if !measurement.alarms.is_empty() {
            let alarms = measurement.alarms.join("; ");
            let label = self.label();
            self.alarms
                .push(format!("{label}, round {round}: {alarms}"));
        }
    }

    /// How many measurements a round makes.
    pub(super) fn measurements(&self) -> u32 {
        1 + u32::from(self.baseline.is_some())
    }

    /// About what a round takes beside its spans.
    pub(super) fn overhead(&self) -> Duration {
        let baseline = self.baseline.as_ref().map(|it| it.probe.overhead());
        self.subject.probe.overhead() + baseline.unwrap_or_default()
    }

    pub(super) fn label(&self) -> String {
        let params = self.params.iter().map(|(name, value)| match value {
            Value::String(text) => format!(", {name} {text}"),
            value => format!(", {name} {value}"),
        });
        let params: String = params.collect();
        format!("{} {}{params}", self.experiment, self.transport)
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

#[cfg(test)]
mod tests;
