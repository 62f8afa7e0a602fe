//! Rows of a comparison, as JSON and as a table.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value};

use super::Compared;
use super::program::Program;
use super::tally::{self, Comparison, Tried, Verdict};
use dunlin_bench::harness::selection::word;
use dunlin_bench::output::aims;
use harness::figure::figure;
use harness::machine::{self, Origin};
use harness::row::Spread;
use harness::state::State;
use harness::table;

const HEADINGS: [&str; 12] = [
    "experiment",
    "transport",
    "parameters",
    "metric",
    "with",
    "this",
    "other",
    "ratio",
    "range",
    "ping",
    "rounds",
    "verdict",
];

/// Columns from this one on hold numbers, except the last.
const FIRST_NUMBER: usize = 5;

/// One figure of this build next to another program's. The fields are the interface of `--json`.
#[derive(Serialize)]
pub(super) struct Row<'a> {
    experiment: &'a str,
    transport: &'a str,
    params: &'a Map<String, Value>,
    metric: String,
    unit: String,
    /// The other program's name on the command line.
    with: &'a str,
    verdict: Verdict,
    /// This build's figure divided by the other's.
    ratio: Option<Range>,
    this: Option<Range>,
    other: Option<Range>,
    state: Option<State>,
    /// The number of rounds from which these figures come.
    rounds: usize,
    /// The number of rounds that were tried.
    tried: usize,
    /// The number of tried rounds in which the machine changed its state.
    unsteady: usize,
    /// The number of tried rounds in which a measurement failed.
    failed: usize,
    run: &'static Origin,
    other_run: Option<Value>,
}

/// Median, smallest and largest value of the rounds.
#[derive(Clone, Copy, Serialize)]
struct Range {
    median: f64,
    min: f64,
    max: f64,
}

impl From<Spread> for Range {
    fn from(Spread { median, min, max }: Spread) -> Self {
        Self { median, min, max }
    }
}

/// Every row, case by case and program by program.
pub(super) fn rows<'a>(compared: &'a [Compared], with: &'a [Program]) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    for it in compared {
        for (index, program) in with.iter().enumerate() {
            let tried = tally::tried(&it.rounds, index, it.failures.len());
            let found = tally::comparisons(&it.rounds, index).into_iter();
            rows.extend(found.map(|found| row(it, program, tried, found)));
        }
    }
    rows
}

fn row<'a>(
    compared: &'a Compared,
    program: &'a Program,
    tried: Tried,
    found: Comparison,
) -> Row<'a> {
    Row {
        experiment: compared.case.experiment(),
        transport: compared.case.transport(),
        params: compared.case.params(),
        metric: found.metric,
        unit: found.unit,
        with: program.name(),
        verdict: found.verdict,
        ratio: found.ratio.map(Range::from),
        this: found.this.map(Range::from),
        other: found.other.map(Range::from),
        state: found.state,
        rounds: found.rounds,
        tried: tried.rounds,
        unsteady: tried.unsteady,
        failed: tried.failed,
        run: Origin::here(),
        other_run: found.other_run,
    }
}

/// The table, and remarks for the reader below it.
pub(super) fn text(rows: &[Row<'_>], notes: &[String]) -> String {
    let mut text = table::layout(HEADINGS, FIRST_NUMBER, rows.iter().map(cells));
    for line in rows.iter().filter_map(aim) {
        text += &format!("\n{line}");
    }
    for note in notes {
        text += &format!("\nnote: {note}");
    }
    let mut others = BTreeSet::new();
    for row in rows {
        if let Some(run) = &row.other_run {
            others.insert(format!("\n{}: {run}", row.with));
        }
    }
    text.extend(others);
    text + &format!("\nmachine: {}\n", machine::describe())
}

/// The judgement of a row that has an aim.
fn aim(row: &Row<'_>) -> Option<String> {
    let what = [row.metric.as_str(), row.transport];
    let bound = aims::of_other(what, row.params, row.with)?;
    let judged = bound.judge_rounds(row.ratio?.median, row.rounds);
    let params = row
        .params
        .iter()
        .map(|(name, value)| format!(" {name} {}", word(value)));
    let params: String = params.collect();
    let Row {
        experiment,
        transport,
        with,
        ..
    } = row;
    Some(format!(
        "{judged}  {experiment} {transport}{params}, with {with}"
    ))
}

fn cells(row: &Row<'_>) -> [String; HEADINGS.len()] {
    let params = row.params.iter();
    let params = params.map(|(name, value)| format!("{name} {}", word(value)));
    let median =
        |range: Option<Range>| range.map_or_else(String::new, |it| figure(it.median, &row.unit));
    let ratio = |of: fn(Range) -> String| row.ratio.map_or_else(String::new, of);
    [
        row.experiment.to_owned(),
        row.transport.to_owned(),
        params.collect::<Vec<_>>().join(", "),
        row.metric.clone(),
        row.with.to_owned(),
        median(row.this),
        median(row.other),
        ratio(|it| format!("{:.2}", it.median)),
        ratio(|it| format!("{:.2} to {:.2}", it.min, it.max)),
        row.state
            .map_or_else(String::new, |it| figure(it.ping_ns, "ns")),
        format!("{} of {}", row.rounds, row.tried),
        match row.verdict {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Differs => "differs",
            Verdict::None => "none",
            Verdict::NotMeasured => "not measured",
        }
        .to_owned(),
    ]
}
