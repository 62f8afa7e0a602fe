//! `dunlin bench`: runs the experiments of `dunlin_bench`, and writes their rows.

mod answer;
mod args;
mod compare;
mod named;

use std::time::Duration;

use dunlin_bench::baselines::ping::Ping;
use dunlin_bench::experiments;
use dunlin_bench::harness::case::Case;
use dunlin_bench::harness::experiment::Experiment;
use dunlin_bench::harness::plan::{self, Plan};
use harness::output::{Output, Results};
use harness::row::Row;
use harness::{seat, signal, table};

pub(crate) use answer::MeasureArgs;
use args::Command;
pub(crate) use args::{Args, seconds};
pub(crate) use compare::contract::SUBCOMMAND;

/// Rows, notes, and the result.
type Everything = (Vec<Row>, Vec<String>, anyhow::Result<()>);

/// Runs the chosen experiment and writes its rows.
///
/// # Errors
/// [`signal::Interrupted`], after the rows measured so far have been written; or no round of a case
/// succeeded; or the rows cannot be written.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(Command::Compare(args)) = &args.command {
        return compare::run(args);
    }
    args.check().unwrap_or_else(|error| error.exit());
    signal::watch()?;
    if args.realtime {
        seat::use_realtime();
    }
    let mut output = Output::open(args.json.as_ref(), args.svg.as_deref())?;
    let mut results = Results::begin();
    let mut show = |rows: &[Row]| output.show(&table::render(rows));
    let ended = all(args, &mut results, &mut show);
    let rows = &results.rows;
    let text = results.text(experiments::lines(rows));
    output.write(rows, &text, || experiments::draw(rows))?;
    ended
}

/// Measures one case for another dunlin, which compares this program with itself.
///
/// # Errors
/// The arguments do not form a request, or measuring failed.
pub(crate) fn measure_one(args: &MeasureArgs) -> anyhow::Result<()> {
    answer::run(args)
}

/// Runs the experiments of `all`. Returns the rows, remarks about disturbances, and the result. If
/// an experiment fails, the rows measured before it are returned as well.
///
/// # Errors
/// Signals cannot be watched.
pub(crate) fn everything(seconds: Option<Duration>) -> anyhow::Result<Everything> {
    signal::watch()?;
    let args = Args::everything(seconds);
    let mut results = Results::begin();
    let ended = all(&args, &mut results, &mut |_| Ok(()));
    let left_out = results.left_out.into_iter();
    let left_out = left_out.map(|case| format!("left out, more --seconds are needed: {case}"));
    let early = ended.as_ref().err();
    let early = early.map(|error| format!("the run ended early: {error:#}"));
    let notes = early.into_iter().chain(results.alarms).chain(left_out);
    let notes = notes.collect();
    Ok((results.rows, notes, ended))
}

/// Runs all chosen experiments. A case without a single good round is an error only after the last
/// experiment.
fn all(
    args: &Args,
    results: &mut Results,
    show: &mut dyn FnMut(&[Row]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut lacking = None;
    for experiment in args.experiment.experiments() {
        let missing = measure(experiment, args, results, show)?;
        lacking = lacking.or(missing);
    }
    lacking.map_or(Ok(()), Err)
}

/// Runs one experiment, and shows its rows as soon as they are measured. The rows are in the
/// results even if the experiment ends early. Returns the error of the first case without a good
/// round.
fn measure(
    experiment: &Experiment,
    args: &Args,
    results: &mut Results,
    show: &mut dyn FnMut(&[Row]) -> anyhow::Result<()>,
) -> anyhow::Result<Option<anyhow::Error>> {
    let mut cases = experiment.cases(&args.selection)?;
    let plan = Plan {
        runs: args.runs(experiment),
        budget: args.budget(experiment),
        verbose: args.verbose,
    };
    results.left_out.extend(plan::leave_out(&mut cases, plan));
    let mut ping = Ping::default();
    let mut lacking = None;
    for (cases, plan) in plan::groups(&mut cases, plan) {
        let ended = plan::run(cases, plan, &mut || ping.now());
        let rows: Vec<Row> = cases.iter().flat_map(Case::rows).collect();
        for case in cases {
            results.count(case.rounds());
            results.alarms.extend_from_slice(case.alarms());
            results.alarms.extend(case.failures());
            lacking = lacking.or(case.check().err());
        }
        show(&rows)?;
        results.rows.extend(rows);
        ended?;
    }
    Ok(lacking)
}
