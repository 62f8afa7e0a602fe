//! The other side of `bench compare`: a hidden subcommand that measures one case, as the
//! [`contract`] asks, and prints the answer. A comparison starts both this build and other builds
//! in this way.

use std::time::Duration;

use anyhow::Context;
use clap::ValueEnum;
use dunlin_bench::experiments;
use dunlin_bench::harness::case::Case;
use dunlin_bench::harness::selection::Selection;
use dunlin_bench::harness::transport::Transport;

use super::compare::contract::{self, Answer, Figure, Request};
use crate::say;
use harness::machine::Origin;
use harness::{seat, sys};

/// Arguments of the hidden subcommand.
#[derive(Debug, clap::Args)]
pub(crate) struct MeasureArgs {
    /// The experiment, and its parameters.
    words: Vec<String>,
}

/// Measures and answers.
///
/// # Errors
/// The arguments do not form a request, or measuring failed.
pub(super) fn run(args: &MeasureArgs) -> anyhow::Result<()> {
    sys::die_with_parent()?;
    let request = Request::parse(&args.words)?;
    if request.realtime {
        seat::use_realtime();
    }
    let answer = match find(&request)? {
        Some(case) => measure(case, request.seconds)?,
        None => Answer {
            unsupported: Some("this build has no such case".to_owned()),
            ..Answer::default()
        },
    };
    say::print(&format!("{}\n", serde_json::to_string(&answer)?))
}

/// The case with exactly these parameters.
fn find(request: &Request) -> anyhow::Result<Option<Case>> {
    let experiment = experiments::find(&request.experiment).filter(|it| it.is_compared);
    let Some(experiment) = experiment else {
        return Ok(None);
    };
    let transport = Transport::from_str(&request.transport, false).ok();
    let size = request.params.get("size").and_then(|it| it.parse().ok());
    let cases = experiment.cases(&Selection::one(transport, size))?;
    let is_meant = |case: &Case| {
        case.transport() == request.transport && contract::params(case.params()) == request.params
    };
    Ok(cases.into_iter().find(is_meant))
}

fn measure(mut case: Case, seconds: f64) -> anyhow::Result<Answer> {
    let span = Duration::try_from_secs_f64(seconds).context("seconds")?;
    let (metrics, measurement) = case.measure_subject(span)?;
    let figures = metrics.iter().zip(measurement.values);
    let figures = figures.map(|(metric, value)| Figure {
        metric: metric.name.to_owned(),
        unit: metric.unit.to_owned(),
        value,
    });
    Ok(Answer {
        figures: figures.collect(),
        unsupported: None,
        notes: measurement.alarms,
        run: Some(serde_json::to_value(Origin::here())?),
    })
}
