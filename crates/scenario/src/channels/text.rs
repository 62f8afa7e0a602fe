//! Describes a run of channels for people, and as JSON.

use dunlin_sim::channel::Played;
use serde_json::{Value, json};

use super::Channels;
use crate::text::micros;

/// The text of a run for people.
pub fn channels_text(channels: &Channels, played: &Played) -> String {
    let (counters, tally) = (&played.report.counters, &played.tally);
    let [no, yes, unknown] = tally.failed;
    let runs = channels.runs(played).enumerate();
    let runs: Vec<String> = runs
        .map(|(server, runs)| format!("{runs} by server {server}"))
        .collect();
    format!(
        "{}, seed {}\n  {} calls: {} answered, {} failed ({no} did not run, {yes} ran, {unknown} \
         may have run), {} dropped; the longest took {:.1} ms\n  {} repeats free of charge, {} \
         paid for, {} hedges; {} sessions lost, {} drains\n  handlers: {}; {} began after the end \
         of their call\n",
        channels.name,
        played.report.seed,
        counters.calls,
        tally.answered,
        no + yes + unknown,
        tally.dropped,
        micros(tally.longest.0) / 1e3,
        counters.free_repeats,
        counters.paid_repeats,
        counters.hedges,
        counters.losses,
        counters.drains,
        runs.join(", "),
        tally.late_runs,
    )
}

/// The same as a JSON object.
pub fn channels_object(channels: &Channels, played: &Played) -> Value {
    let (counters, tally) = (&played.report.counters, &played.tally);
    let [no, yes, unknown] = tally.failed;
    json!({
        "scenario": channels.name,
        "seed": played.report.seed,
        "digest": format!("{:016x}", played.report.digest),
        "calls": counters.calls,
        "answered": tally.answered,
        "failed": { "not_run": no, "ran": yes, "unknown": unknown },
        "dropped": tally.dropped,
        "longest_call_us": micros(tally.longest.0),
        "free_repeats": counters.free_repeats,
        "paid_repeats": counters.paid_repeats,
        "hedges": counters.hedges,
        "losses": counters.losses,
        "drains": counters.drains,
        "runs": channels.runs(played).collect::<Vec<_>>(),
        "late_runs": tally.late_runs,
    })
}

impl Channels {
    /// The number of handlers that each server began.
    fn runs(&self, played: &Played) -> impl Iterator<Item = u64> {
        let runs = &played.tally.runs;
        let servers = 0..self.script.servers.len();
        servers.map(move |server| runs.get(&server).copied().unwrap_or(0))
    }
}
