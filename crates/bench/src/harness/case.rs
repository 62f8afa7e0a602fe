//! One case of an experiment: its subject, its baseline, its parameters, and the rows made of its
//! rounds. Experiments make cases, and [`super::plan`] measures them.
//!
//! A ping-pong before and after each measurement shows the state of the machine. The rows of a case
//! use only the rounds in one state of the machine: the state with the most rounds. A round that
//! fails leaves no values; if half of the rounds fail, the rows are not valid. If fewer than
//! [`ENOUGH`] rounds count, the rows are not measured, and say so.

use std::time::Duration;

use anyhow::bail;
use serde_json::{Map, Value};

use super::probe::{Against, Measurement, Metric, Probe};
use harness::row::{ENOUGH, Row, Spread};
use harness::signal;
use harness::state::{Condition, Reason, states, steady};

/// Approximate time of a ping-pong.
const PING_TAKES: Duration = Duration::from_millis(6);

/// A case that has failed this number of times, and has no values yet, is not tried again: each
/// failure may have taken as long as the harness waits for a process that hangs.
const GIVEN_UP_AFTER: usize = 3;

/// One combination of an experiment's parameters, and the values measured with it.
pub struct Case {
    experiment: &'static str,
    transport: &'static str,
    params: Map<String, Value>,
    subject: Measured,
    baseline: Option<Measured>,
    /// Times of the ping-pongs of each round, in ns; empty for a round without ping-pongs.
    pings: Vec<Vec<f64>>,
    alarms: Vec<String>,
    /// The reasons of the rounds that failed.
    failures: Vec<String>,
}

/// Plays a ping-pong and returns its time in ns. Tests use a substitute.
pub type Pinger<'a> = &'a mut dyn FnMut() -> anyhow::Result<Option<f64>>;

/// The rounds that count.
struct Counted {
    rounds: Vec<usize>,
    state: Condition,
    /// False if no round stayed in one state; then all rounds count.
    is_steady: bool,
}

/// A probe and the values of the rounds so far.
struct Measured {
    probe: Box<dyn Probe>,
    rounds: Vec<Vec<f64>>,
}

impl Case {
    /// A case without a baseline.
    pub(crate) fn new<V: Clone + Into<Value>>(
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
            pings: Vec::new(),
            alarms: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// Adds a baseline, which is measured right before the subject in each round.
    pub(crate) fn against(mut self, baseline: impl Probe + 'static) -> Self {
        self.baseline = Some(Measured::new(baseline));
        self
    }

    /// The rows of this case: one for each metric, or none if no round was completed.
    pub fn rows(&self) -> Vec<Row> {
        let counted = self.counted();
        let metrics = 0..self.subject.probe.metrics().len();
        metrics
            .filter_map(|index| self.row(index, &counted))
            .collect()
    }

    /// The number of rounds that were measured, and how many of them count.
    pub fn rounds(&self) -> [usize; 2] {
        [self.pings.len(), self.counted().rounds.len()]
    }

    /// Rows with the metrics and parameters of this case, without measured values.
    #[cfg(test)]
    pub(crate) fn unmeasured(&self) -> Vec<Row> {
        let metrics = self.subject.probe.metrics().iter();
        let none = Spread::of([0.0].into_iter()).expect("there is a value");
        let row = |metric: &Metric| Row {
            transport: self.transport.into(),
            params: self.params.clone(),
            ..Row::new(self.experiment, (metric.name, metric.unit), none)
        };
        metrics.map(row).collect()
    }

    fn counted(&self) -> Counted {
        let rounds = self.pings.len();
        let all = |reason, is_steady| Counted {
            rounds: (0..rounds).collect(),
            state: Condition::Without(reason),
            is_steady,
        };
        if self.pings.iter().all(Vec::is_empty) {
            return all(Reason::NotMeasured, true);
        }
        let pings: Vec<Option<f64>> = self.pings.iter().map(|it| steady(it)).collect();
        match states(&pings).into_iter().next() {
            None => all(Reason::Changing, false),
            Some(group) => Counted {
                state: Condition::Steady(group.state(rounds)),
                rounds: group.rounds,
                is_steady: true,
            },
        }
    }

    /// The name of its experiment.
    pub fn experiment(&self) -> &'static str {
        self.experiment
    }

    /// The transport, as rows name it.
    pub fn transport(&self) -> &'static str {
        self.transport
    }

    /// Its parameters, in order.
    pub fn params(&self) -> &Map<String, Value> {
        &self.params
    }

    /// Signs of trouble in its rounds, such as retransmissions.
    pub fn alarms(&self) -> &[String] {
        &self.alarms
    }

    fn row(&self, index: usize, counted: &Counted) -> Option<Row> {
        let metric = self.subject.probe.metrics()[index];
        let rounds = &counted.rounds[..];
        let spread = self.subject.spread(index, rounds)?;
        let judge = self.baseline.as_ref().unwrap_or(&self.subject);
        let row = Row {
            transport: self.transport.into(),
            params: self.params.clone(),
            runs: rounds.len(),
            valid: counted.is_steady
                && self.has_enough_rounds()
                && judge.is_plausible(rounds)
                && !self.is_overloaded(rounds),
            measured: Some(!self.is_timed() || rounds.len() >= ENOUGH),
            state: counted.state,
            ..Row::new(self.experiment, (metric.name, metric.unit), spread)
        };
        Some(match self.compared(metric.against, rounds) {
            Some((baseline, name)) => row.against(baseline, name.to_owned()),
            None => row,
        })
    }

    /// True if the subject or the baseline was overloaded (`Probe::is_overloaded`).
    fn is_overloaded(&self, rounds: &[usize]) -> bool {
        let baseline = self.baseline.iter();
        let mut both = baseline.chain([&self.subject]);
        both.any(|it| it.is_overloaded(rounds))
    }

    /// The median of a figure's baseline, and the name of that baseline.
    fn compared(&self, against: Against, rounds: &[usize]) -> Option<(f64, &str)> {
        let (measured, index, name) = match against {
            Against::Nothing => return None,
            Against::Own { index, name } => (&self.subject, index, name),
            Against::Baseline(index) => {
                let baseline = self.baseline.as_ref()?;
                (baseline, index, baseline.probe.name())
            }
        };
        Some((measured.spread(index, rounds)?.median, name))
    }

    /// Measures one round. Returns the counts of its measurements.
    pub(crate) fn measure(
        &mut self,
        round: u32,
        span: Duration,
        ping: Pinger<'_>,
    ) -> anyhow::Result<Vec<String>> {
        let mut pings = Vec::new();
        let is_timed = self.is_timed();
        let mut ping = || -> anyhow::Result<()> {
            if is_timed {
                pings.extend(ping()?);
            }
            Ok(())
        };
        ping()?;
        // Stores the baseline's values only after the subject was measured: both lists are indexed
        // by round, so a round that fails must add to neither.
        let mut baseline = None;
        if let Some(it) = &mut self.baseline {
            baseline = Some(it.probe.measure(span)?);
            ping()?;
        }
        let subject = self.subject.probe.measure(span)?;
        ping()?;
        self.pings.push(pings);
        self.note_alarms(round, &subject);
        let details = subject.details.clone();
        self.subject.rounds.push(subject.values);
        if let (Some(measured), Some(values)) = (&mut self.baseline, baseline) {
            measured.rounds.push(values.values);
        }
        Ok(details)
    }

    /// Notes a round that failed. The reason may be a machine so busy that a process got no
    /// processor for longer than its peer waits, so a later round may succeed. Returns a line for
    /// the user.
    ///
    /// # Errors
    /// The error itself, if a later round would end in the same way: the user has ended the run, or
    /// the figures do not depend on the machine.
    pub(crate) fn on_failure(
        &mut self,
        round: u32,
        error: anyhow::Error,
    ) -> anyhow::Result<String> {
        if error.is::<signal::Interrupted>() || !self.is_timed() {
            return Err(error);
        }
        let reason = format!("{error:#}");
        let line = format!(
            "the machine is busy: {}, round {round}: {reason}",
            self.label()
        );
        self.failures.push(reason);
        Ok(line)
    }

    /// True if further rounds are not worth their time.
    pub(crate) fn is_given_up(&self) -> bool {
        self.pings.is_empty() && self.failures.len() >= GIVEN_UP_AFTER
    }

    fn has_enough_rounds(&self) -> bool {
        self.pings.len() > self.failures.len()
    }

    /// The number of rounds that failed, and the first reason, for readers of the rows.
    pub fn failures(&self) -> Option<String> {
        let first = self.failures.first()?;
        let (failed, all) = (self.failures.len(), self.failures.len() + self.pings.len());
        let label = self.label();
        Some(format!(
            "the machine is busy: {failed} of {all} rounds of {label} failed: {first}"
        ))
    }

    /// # Errors
    /// Every round failed: the case has no rows.
    pub fn check(&self) -> anyhow::Result<()> {
        match self.failures.last() {
            Some(last) if self.pings.is_empty() => {
                bail!("no round of {} succeeded; the last: {last}", self.label())
            }
            _ => Ok(()),
        }
    }

    /// Measures the subject of the case, without its baseline.
    pub fn measure_subject(
        &mut self,
        span: Duration,
    ) -> anyhow::Result<(&'static [Metric], Measurement)> {
        let probe = &mut self.subject.probe;
        Ok((probe.metrics(), probe.measure(span)?))
    }

    /// True if its figures depend on the machine's speed.
    pub fn is_timed(&self) -> bool {
        self.subject.probe.is_timed()
    }

    /// Adds a warning for readers of the rows.
    pub(crate) fn note(&mut self, alarm: String) {
        self.alarms.push(alarm);
    }

    fn note_alarms(&mut self, round: u32, measurement: &Measurement) {
        if !measurement.alarms.is_empty() {
            let alarms = measurement.alarms.join("; ");
            self.note(format!("{}, round {round}: {alarms}", self.label()));
        }
    }

    /// How many measurements a round makes.
    pub(crate) fn measurements(&self) -> u32 {
        1 + u32::from(self.baseline.is_some())
    }

    /// Approximate time that a round takes in addition to its spans.
    pub(crate) fn overhead(&self) -> Duration {
        let baseline = self.baseline.as_ref().map(|it| it.probe.overhead());
        let pings = match self.is_timed() {
            true => PING_TAKES * (1 + self.measurements()),
            false => Duration::ZERO,
        };
        self.subject.probe.overhead() + baseline.unwrap_or_default() + pings
    }

    /// Its experiment, transport and parameters, for people to read.
    pub fn label(&self) -> String {
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

    fn spread(&self, index: usize, rounds: &[usize]) -> Option<Spread> {
        Spread::of(rounds.iter().map(|&round| self.rounds[round][index]))
    }

    fn is_plausible(&self, rounds: &[usize]) -> bool {
        let medians = self.medians(rounds);
        medians.is_some_and(|it| self.probe.is_plausible(&it))
    }

    fn is_overloaded(&self, rounds: &[usize]) -> bool {
        let medians = self.medians(rounds);
        medians.is_some_and(|it| self.probe.is_overloaded(&it))
    }

    fn medians(&self, rounds: &[usize]) -> Option<Vec<f64>> {
        let metrics = 0..self.probe.metrics().len();
        let medians = metrics.map(|index| self.spread(index, rounds).map(|it| it.median));
        medians.collect()
    }
}

#[cfg(test)]
mod tests;
