//! One figure, in the form that machines read: one JSON object a line, with the fields of
//! `dunlin bench`.

use harness::state::Condition;
use serde::Serialize;

use crate::args::Name;
use crate::plan::{PlanCase, Sample};
use crate::state::{self, State};

/// One figure of one peer.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Row {
    experiment: &'static str,
    /// The peer.
    pub(crate) transport: String,
    pub(crate) params: Params,
    pub(crate) metric: &'static str,
    unit: &'static str,
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    /// The number of rounds from which the three values come.
    pub(crate) runs: usize,
    /// False if no round was measured in the machine's most frequent state.
    pub(crate) valid: bool,
    /// The state of the machine in those rounds.
    state: Condition,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Params {
    pub(crate) size: usize,
    pub(crate) inflight: usize,
}

/// A figure of a report: name, unit, value.
type Metric = (&'static str, &'static str, fn(&Sample) -> Option<f64>);

/// With one call in flight.
const LATENCY: [Metric; 2] = [
    ("rtt_p50", "ns", |sample| Some(sample.report.median_ns)),
    ("rtt_p99", "ns", |sample| Some(sample.report.p99_ns)),
];

/// With many calls in flight.
const RATE: [Metric; 3] = [
    ("rpc_per_s", "1/s", |sample| Some(sample.report.calls_per_s)),
    ("cpu_per_million", "s", |sample| Some(sample.report.cpu_s)),
    ("system_calls", "1", |sample| sample.system_calls),
];

/// A figure of every row.
const LOST: Metric = ("lost", "1", |sample| {
    // Counts of a run are small enough for a float to hold exactly.
    let lost = u32::try_from(sample.report.lost);
    Some(lost.map_or(f64::MAX, f64::from))
});

/// The figures of a peer at a size.
pub(crate) fn of(
    peer: Name,
    place: PlanCase,
    samples: &[Sample],
    state: Option<&State>,
) -> Vec<Row> {
    let (samples, state, valid) = state::counted(samples, state);
    let PlanCase { size, inflight, .. } = place;
    let metrics = if inflight == 1 { &LATENCY[..] } else { &RATE };
    let row = |&(metric, unit, read): &Metric| {
        let mut values: Vec<f64> = samples.iter().filter_map(|it| read(it)).collect();
        values.sort_by(f64::total_cmp);
        Some(Row {
            experiment: "peers",
            transport: peer.text(),
            params: Params { size, inflight },
            metric,
            unit,
            median: median(&values)?,
            min: *values.first()?,
            max: *values.last()?,
            runs: values.len(),
            valid,
            state,
        })
    };
    metrics.iter().chain([&LOST]).filter_map(row).collect()
}

/// All rows as lines.
///
/// # Errors
/// If a figure is not a number.
pub(crate) fn json(rows: &[Row]) -> anyhow::Result<String> {
    let mut text = String::new();
    for row in rows {
        text += &serde_json::to_string(row)?;
        text += "\n";
    }
    Ok(text)
}

/// The median; of an even number of values, the mean of the two in the middle.
fn median(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    Some(match sorted.len() % 2 {
        1 => upper,
        _ => f64::midpoint(sorted[sorted.len() / 2 - 1], upper),
    })
}
