//! `dunlin bench`: experiments, each a list of cases that [`plan`] measures in rounds, beside the
//! baselines of [`raw`]. Design §14 says which figures count: medians of several rounds, as ratios
//! to what this machine can do without the library, measured at the same time.

mod answer;
mod args;
pub(crate) mod bandwidth;
mod case;
mod cluster;
mod compare;
mod experiment;
pub(crate) mod faces;
pub(crate) mod factors;
pub(crate) mod idle;
mod incast;
pub(crate) mod latency;
mod loss;
mod lossy;
pub(crate) mod mixed;
pub(crate) mod papers;
mod ping;
mod plan;
mod plausible;
pub(crate) mod plot;
mod probe;
pub(crate) mod rate;
mod ratios;
pub(crate) mod raw;
mod rtt;
#[cfg(test)]
pub(crate) mod sample;
mod scenario;
mod selection;
pub(crate) mod sessions;
pub(crate) mod slow_handler;
pub(crate) mod subject;
mod ticks;
mod work;

use std::time::Duration;

use harness::output::{Output, Results};
use harness::row::Row;
use harness::{seat, signal};

pub(crate) use answer::MeasureArgs;
pub(crate) use args::Args;
use args::Command;
use case::Case;
pub(crate) use compare::contract::SUBCOMMAND;
pub(crate) use experiment::{Experiment, Transport, seconds};
use ping::Ping;
use plan::Plan;
use rate::{Pattern, Rate};
use selection::Selection;

/// How long the idle server of the experiment is watched, and that of the summary.
const WATCHED: [Duration; 2] = [Duration::from_secs(3), Duration::from_secs(1)];

/// Rows, notes, and how it ended.
type Everything = (Vec<Row>, Vec<String>, anyhow::Result<()>);

/// Runs the experiment that was asked for and writes its rows.
///
/// # Errors
/// [`signal::Interrupted`], after what was measured so far has been written; or a process could
/// not be started, failed or hung; or the rows cannot be written.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(Command::Compare(args)) = &args.command {
        return compare::run(args, cases);
    }
    args.check().unwrap_or_else(|error| error.exit());
    signal::watch()?;
    if args.realtime {
        seat::use_realtime();
    }
    let mut output = Output::open(args.json.as_ref(), args.svg.as_deref())?;
    let mut results = Results::begin();
    let ended = args
        .experiments()
        .into_iter()
        .try_for_each(|experiment| measure(experiment, args, &mut results));
    let rows = &results.rows;
    let text = results.text(rows, ratios::lines(rows));
    output.write(rows, &text, || plot::draw(rows))?;
    ended
}

/// Measures one case for another dunlin that compares this one with itself.
///
/// # Errors
/// The arguments are no request, or measuring failed.
pub(crate) fn measure_one(args: &MeasureArgs) -> anyhow::Result<()> {
    answer::run(args, cases)
}

/// Runs the experiments of `all`. Returns the rows, what should not have happened, and how it
/// ended: what was measured before an experiment failed is there.
///
/// # Errors
/// Signals cannot be watched.
pub(crate) fn everything(seconds: Option<Duration>) -> anyhow::Result<Everything> {
    signal::watch()?;
    let args = Args::everything(seconds);
    let mut results = Results::begin();
    let mut experiments = args.experiments().into_iter();
    let ended = experiments.try_for_each(|it| measure(it, &args, &mut results));
    let left_out = results.left_out.into_iter();
    let left_out = left_out.map(|case| format!("left out, more --seconds are needed: {case}"));
    let early = ended.as_ref().err();
    let early = early.map(|error| format!("the run ended early: {error:#}"));
    let notes = early.into_iter().chain(results.alarms).chain(left_out);
    let notes = notes.collect();
    Ok((results.rows, notes, ended))
}

/// One experiment. What was measured is in the results, also when it ends early.
fn measure(experiment: Experiment, args: &Args, results: &mut Results) -> anyhow::Result<()> {
    let mut cases = match experiment {
        Experiment::Factors => factors::cases(results)?,
        _ => cases(experiment, &args.selection),
    };
    args.selection.keep(&mut cases);
    let plan = Plan {
        runs: args.runs(experiment),
        budget: args.budget(experiment),
        verbose: args.verbose,
    };
    results.left_out.extend(plan::leave_out(&mut cases, plan));
    let mut ping = Ping::default();
    let ended = plan::run(&mut cases, plan, &mut || ping.now());
    for case in &cases {
        results.count(case.rounds());
        results.rows.extend(case.rows());
        results.alarms.extend_from_slice(case.alarms());
    }
    ended
}

/// The cases of an experiment, with the sizes and transports that were asked for.
fn cases(experiment: Experiment, selection: &Selection) -> Vec<Case> {
    let transports = &selection.transports(experiment)[..];
    let sizes = selection.sizes();
    match experiment {
        Experiment::Summary => summary(transports),
        Experiment::Raw => raw::cases(transports),
        Experiment::Latency => latency::cases(transports, sizes.unwrap_or(&latency::SIZES)),
        Experiment::Rate => rate::cases(transports, sizes.unwrap_or(&[rate::USUAL_SIZE])),
        Experiment::Bandwidth => bandwidth::cases(transports),
        Experiment::Loss => loss::loss_cases(transports),
        Experiment::Reorder => loss::reorder_cases(),
        Experiment::Mixed => mixed::cases(transports),
        Experiment::Sessions => sessions::cases(transports),
        Experiment::Idle => idle::cases(transports, WATCHED[0]),
        Experiment::Incast => incast::cases(),
        Experiment::IncastBackground => incast::background_cases(),
        Experiment::Cluster => cluster::cases(),
        Experiment::SlowHandler => slow_handler::cases(transports),
        Experiment::Faces => faces::cases(transports),
        // `All` stands for others, see `Args::experiments`; these have no cases, or theirs fail.
        Experiment::All | Experiment::Factors => Vec::new(),
    }
}

/// Latency, rate and idling in few rows.
fn summary(transports: &[Transport]) -> Vec<Case> {
    let mut cases = Vec::new();
    for size in [32, 1024] {
        cases.extend(transports.iter().map(|&it| latency::case(it, size)));
    }
    for &transport in transports {
        let batch = if transport == Transport::Udp { 16 } else { 3 };
        for pattern in [Pattern::OneWay, Pattern::Symmetric] {
            cases.push(rate::case(Rate::usual(transport, pattern, batch)));
        }
    }
    for &transport in transports {
        cases.push(idle::first(transport, 100));
        cases.push(idle::processor(transport, WATCHED[1]));
    }
    cases
}
