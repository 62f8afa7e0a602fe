//! A whole cluster with a workload, over virtual time: `dunlin sim` runs it, and the experiments
//! `incast`, `incast_background` and `cluster` measure it (design §13, §14; eRPC §6.3, §6.5).
//!
//! Each [`Load`] has its own endpoints on its hosts. Clients send requests to servers that they
//! draw at random, once or for each request. They keep a number of requests in flight, or begin
//! requests as a Poisson process. Each request begins and ends with its name. The server checks
//! both copies and answers with a function of the name, which the client checks. Invariant: a
//! report depends only on its [`Scenario`]. Called by the command line and by tests.

mod build;
pub mod bulk;
mod check;
mod definition;
mod load;
mod node;
mod report;
mod session;
mod stats;
pub mod sweep;

use dunlin_core::Check;
pub use dunlin_core::{Config, Nanos, Scheme, SessionOptions};

pub use check::Wrong;
pub use definition::Scenario;
pub use load::{Arrivals, Load, Partners};
pub use report::{Client, LoadReport, Point, Quantiles, Report, Stage};

use crate::world::net::NetHandle;
use build::Endpoints;
use report::Series;

/// The checks of each endpoint's laws: after each event in tests. A release build checks as the
/// endpoints of a program do, because it measures.
pub const CHECK: Check = if cfg!(debug_assertions) {
    Check::Event
} else {
    Check::Sweep
};

/// Runs a scenario. From time to time it calls `go_on` with the virtual time, and ends if `go_on`
/// returns false; the report covers the time until then.
///
/// # Errors
/// The scenario is wrong, or an invariant broke.
pub fn run(scenario: &Scenario, go_on: impl FnMut(Nanos) -> bool) -> Result<Report, Wrong> {
    run_on(scenario, |_| (), go_on)
}

/// Runs a scenario after `prepare` has changed the network, for example to capture frames.
///
/// # Errors
/// Like [`run`].
pub fn run_on(
    scenario: &Scenario,
    prepare: impl FnOnce(&NetHandle),
    mut go_on: impl FnMut(Nanos) -> bool,
) -> Result<Report, Wrong> {
    scenario.check()?;
    let mut endpoints = Endpoints::build(scenario)?;
    prepare(endpoints.net());
    let mut series = Series::new();
    let begin = endpoints.snapshot();
    let mut warm = None;
    let mut at = Nanos::ZERO;
    while at < scenario.end && go_on(at) {
        let mut next = (at + scenario.sample_every).min(scenario.end);
        if at < scenario.warm_up {
            next = next.min(scenario.warm_up);
        }
        endpoints.run_until(next)?;
        at = next;
        if at == scenario.warm_up {
            warm = Some(endpoints.snapshot());
        }
        series.take(&endpoints, at);
    }
    let end = endpoints.snapshot();
    let warm = warm.unwrap_or_else(|| end.clone());
    Ok(Report::new(
        scenario,
        [&begin, &warm, &end],
        &endpoints.stats(),
        &endpoints.latencies(),
        series.points,
        endpoints.net().borrow().digest(),
    ))
}

#[cfg(test)]
mod tests;
