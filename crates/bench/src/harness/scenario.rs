//! A probe that runs a shipped scenario with some keys changed. Each round has its own seed.

use std::time::Duration;

use anyhow::Context;
use toml::Value;

use super::probe::{Measurement, Metric, Probe};
use dunlin_scenario::{Done, Source};
use harness::signal;

/// A scenario, and the function that reads values from its report.
pub(crate) struct Simulated {
    source: Source,
    metrics: &'static [Metric],
    values: fn(&Done) -> Vec<f64>,
    /// Approximate time of a run.
    takes: Duration,
    seed: i64,
}

impl Simulated {
    /// A probe for the shipped file `name` with the text `text`, in which `sets` replaces values.
    ///
    /// Panics if the file is not a scenario or lacks a key of `sets`. The test
    /// `every_case_has_its_scenario` creates every such probe, so it finds these mistakes.
    pub(crate) fn new(name: &str, text: &str, sets: &[(&str, Value)]) -> Self {
        let shipped = "shipped scenarios can be read";
        let mut source = Source::parse(name.to_owned(), text.to_owned()).expect(shipped);
        for (key, value) in sets {
            source.set_value(key, value.clone()).expect(shipped);
        }
        Self {
            source,
            metrics: &[],
            values: |_| Vec::new(),
            takes: Duration::ZERO,
            seed: 1,
        }
    }

    /// Reads a value for each metric from a report.
    pub(crate) fn reading(
        mut self,
        metrics: &'static [Metric],
        values: fn(&Done) -> Vec<f64>,
    ) -> Self {
        (self.metrics, self.values) = (metrics, values);
        self
    }

    /// Sets the approximate time of a run.
    pub(crate) fn taking(mut self, seconds: u64) -> Self {
        self.takes = Duration::from_secs(seconds);
        self
    }
}

impl Probe for Simulated {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn metrics(&self) -> &'static [Metric] {
        self.metrics
    }

    fn overhead(&self) -> Duration {
        self.takes
    }

    fn is_timed(&self) -> bool {
        false
    }

    /// Ignores the span, which is real time: the simulator has its own clock.
    fn measure(&mut self, _span: Duration) -> anyhow::Result<Measurement> {
        self.source.set_value("seed", self.seed.into())?;
        self.seed += 1;
        let mut variants = self.source.variants()?;
        let variant = variants.pop().context("a scenario is one run at least")?;
        let done = dunlin_scenario::run(variant, None)?;
        // A run that a signal has cut short does not count as a measurement.
        signal::check()?;
        Ok(Measurement {
            values: (self.values)(&done),
            alarms: Vec::new(),
            details: dunlin_scenario::text(&done)
                .lines()
                .map(str::to_owned)
                .collect(),
        })
    }
}
