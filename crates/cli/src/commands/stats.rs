//! `dunlin stats`: the counters and times of a running process, read from the memory file in which
//! the process publishes them (`dunlin_insight`), without asking the process.

mod columns;
mod json;
mod prometheus;
mod rates;
mod tables;
mod target;

use std::time::Duration;

use crate::say::print;
pub(crate) use columns::{count, rate, time};
use harness::signal;
pub(crate) use rates::{Between, all_between};
pub(crate) use tables::{SESSION_COLUMNS, session_cells};
pub(crate) use target::{Opened, Target};

const EXAMPLES: &str = "\
Examples:
  dunlin stats                        the processes of this host that can be read
  dunlin stats 4711                   all counters and measurements of one of them
  dunlin stats 4711 --watch           what happens in each second, until Ctrl-C
  dunlin stats 4711 --watch 0.2 --json     the same, one JSON object per line
  dunlin stats 10.0.0.7:31850         a process on another host, by the address of its nexus
  dunlin stats 4711 --prometheus      as text for Prometheus
  cp /proc/4711/fd/8 saved; dunlin stats ./saved     a saved copy (a path has a `/`)

Counters start with the process. Times are in nanoseconds in JSON, and in seconds in Prometheus's
text. Only the user of a process can read it by its number, unless `nexus.hidden` hides it.

Exit codes: 0, it was shown; 1, the process cannot be read, or has ended; 2, wrong usage; 130,
Ctrl-C.";

/// The arguments of `dunlin stats`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A process by its number, or by the address of its nexus; by default, all are listed
    #[arg(value_name = "PID|HOST:PORT|PATH")]
    target: Option<Target>,
    /// Shows what happens in each interval, until Ctrl-C or the end of the process
    #[arg(
        long,
        value_name = "SECONDS",
        num_args = 0..=1,
        default_missing_value = "1",
        value_parser = interval,
        requires = "target"
    )]
    watch: Option<Duration>,
    /// Intervals to watch; by default there is no end
    #[arg(long, value_name = "N", requires = "watch")]
    count: Option<u64>,
    /// The text format of Prometheus
    #[arg(long, conflicts_with_all = ["json", "watch"], requires = "target")]
    prometheus: bool,
    /// One JSON object for each process or interval
    #[arg(long)]
    json: bool,
    /// Shows counters that are 0 as well
    #[arg(long)]
    all: bool,
}

/// Shows the chosen processes.
///
/// # Errors
/// There is no such process, or it cannot be read; [`signal::Interrupted`] after Ctrl-C.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let Some(target) = &args.target else {
        return list(args.json);
    };
    let mut opened = Opened::open(target)?;
    if let Some(interval) = args.watch {
        return watch(&mut opened, interval, args);
    }
    let snapshots = opened.read()?;
    let text = match (args.prometheus, args.json) {
        (true, _) => prometheus::render(&snapshots),
        (_, true) => snapshots.iter().map(json::line).collect(),
        _ => snapshots
            .iter()
            .map(|snapshot| tables::render(snapshot, args.all))
            .collect::<Vec<_>>()
            .join("\n"),
    };
    print(&text)
}

/// Lists every process that this user may read.
fn list(as_json: bool) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for found in dunlin_insight::all() {
        let mut file = found.file;
        match dunlin_insight::Snapshot::read(&mut file) {
            Ok(snapshot) => rows.push((found.pid, snapshot)),
            // The process may have ended by now.
            Err(_) if !found.path.exists() => {}
            Err(error) => eprintln!("dunlin: process {}: {error}", found.pid),
        }
    }
    if as_json {
        return print(
            &rows
                .iter()
                .map(|(pid, s)| json::summary(*pid, s))
                .collect::<String>(),
        );
    }
    if rows.is_empty() {
        eprintln!("dunlin: no process of this user shows counters");
    }
    print(&tables::list(&rows))
}

/// Prints the rates of each interval.
fn watch(opened: &mut Opened, interval: Duration, args: &Args) -> anyhow::Result<()> {
    signal::watch()?;
    let mut before = opened.read()?;
    let mut shown = 0;
    while args.count.is_none_or(|count| shown < count) {
        pause(interval)?;
        let after = opened.read()?;
        let between = rates::all_between(&before, &after);
        let text = match args.json {
            true => between.iter().map(json::rates).collect(),
            false => rates::lines(&between, shown),
        };
        print(&text)?;
        before = after;
        shown += 1;
    }
    Ok(())
}

/// Waits for this time, or until Ctrl-C.
pub(crate) fn pause(span: Duration) -> Result<(), signal::Interrupted> {
    const STEP: Duration = Duration::from_millis(20);
    let end = std::time::Instant::now() + span;
    loop {
        signal::check()?;
        let left = end.saturating_duration_since(std::time::Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(STEP));
    }
}

/// An interval in seconds.
pub(crate) fn interval(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "it is not a number of seconds")?;
    match (0.05..=3600.0).contains(&seconds) {
        true => Ok(Duration::from_secs_f64(seconds)),
        false => Err("choose from 0.05 to 3600 seconds".into()),
    }
}

#[cfg(test)]
pub(crate) mod tests;
