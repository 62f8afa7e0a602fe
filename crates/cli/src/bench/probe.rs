//! One thing that can be measured again and again: an experiment's subject, or its baseline.

use std::time::Duration;

use crate::sys;

/// One figure of a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Metric {
    /// Its name in JSON.
    pub(super) name: &'static str,
    /// `ns`, `1/s`, `GB/s`, and so on.
    pub(super) unit: &'static str,
    /// Which figure of the baseline it is divided by.
    pub(super) baseline: Option<usize>,
}

/// Something to measure. Each measurement starts afresh, in processes of its own.
pub(super) trait Probe {
    /// What it is, in a few words.
    fn name(&self) -> &'static str;

    /// What [`Probe::measure`] returns, in order.
    fn metrics(&self) -> &'static [Metric];

    /// Measures for `span`, and returns one value for each metric.
    ///
    /// # Errors
    /// [`crate::signal::Interrupted`]; or a process could not be started, failed or hung.
    fn measure(&mut self, span: Duration) -> anyhow::Result<Vec<f64>>;

    /// False if these medians show that the machine was disturbed, so that nothing that is
    /// compared with them means much.
    fn is_plausible(&self, _medians: &[f64]) -> bool {
        true
    }
}

/// How long to wait for the report of a process that measures for `span`.
pub(super) fn patience(span: Duration) -> Duration {
    span + Duration::from_secs(10)
}

/// The processors of an experiment with two processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cpus {
    pub(super) client: Option<usize>,
    pub(super) server: Option<usize>,
}

impl Cpus {
    /// The first processor for the client, the second for the server; none if there is only one,
    /// because two spinning processes on it would wait for their time slices.
    pub(super) fn pick() -> Self {
        match sys::allowed_cpus().as_deref() {
            Ok([client, server, ..]) => Self {
                client: Some(*client),
                server: Some(*server),
            },
            _ => Self {
                client: None,
                server: None,
            },
        }
    }
}
