//! `dunlin bench gopt`: look-ups that miss the cache, one after the other and interleaved (G-Opt
//! §3.3, §4.4, §5), beside the rate at which this machine brings random cache lines.
//!
//! Each look-up has a process of its own, which makes the table and measures all forms of it in
//! turns; so rounds are rounds of one look-up, and two tables are never in memory together.

mod automata;
mod chart;
mod form;
pub(crate) mod instructions;
pub(crate) mod measure;
mod options;
mod rows;
mod tables;

use std::time::Duration;

use anyhow::ensure;

use super::args::{Args, Experiment};
use super::output::Results;
use super::progress::Progress;
use super::seat::Seats;
use crate::process::{Process, Role};
use crate::signal;
pub(super) use chart::charts;
use measure::{Job, Made};
pub(crate) use options::Options;
use rows::{LineRates, Rates};
pub(super) use rows::{is_best, ratios};

/// How long to wait for a table, and then for each round. Builds without optimisation are slow.
const PATIENCE: Duration = Duration::from_secs(900);

/// Lines that a table must have so that no last-level cache of today holds most of them.
const ENOUGH_LINES: u64 = 20_000_000;

/// Memory that is needed beside tables.
const OVERHEAD_MIB: u64 = 768;

/// Measures the look-ups that were asked for. What was measured is in the results, also when it
/// ends early.
///
/// # Errors
/// [`signal::Interrupted`]; there is not enough memory; a process failed or hung.
pub(super) fn run(args: &Args, results: &mut Results) -> anyhow::Result<()> {
    let jobs = jobs(args);
    ensure_memory(args.gopt.table_mib())?;
    let rounds = jobs
        .iter()
        .map(|job| u64::from(job.runs) * job.shapes.len() as u64);
    let progress = Progress::start(rounds.sum(), u32::try_from(jobs.len())?);
    let mut lines = LineRates::default();
    let mut ended = Ok(());
    for (job, number) in jobs.iter().zip(1..) {
        progress.measuring(number, job.lookup.name());
        ended = lookup(job, &progress, &mut lines, results);
        if ended.is_err() {
            break;
        }
        progress.round_done(number);
    }
    results.rows.extend(lines.rows());
    ended
}

fn jobs(args: &Args) -> Vec<Job> {
    let lookups = args.gopt.lookups().into_iter();
    let job = |lookup| Job {
        lookup,
        shapes: args.gopt.shapes(lookup),
        widths: args.gopt.widths(),
        table_mib: args.gopt.table_mib(),
        runs: args.runs(Experiment::Gopt),
    };
    lookups
        .map(job)
        .filter(|job| !job.shapes.is_empty())
        .collect()
}

/// Measures one look-up in a process of its own.
fn lookup(
    job: &Job,
    progress: &Progress,
    lines: &mut LineRates,
    results: &mut Results,
) -> anyhow::Result<()> {
    let counted = instructions::count(job)?;
    let mut process = Process::spawn(Role::GoptLookups, Seats::pick().client, job)?;
    let made: Made = process.receive(PATIENCE)?;
    progress.say(&describe(job, made), &[]);
    results.alarms.extend(alarms(job, made));
    let mut rates: Vec<Rates> = job
        .shapes
        .iter()
        .map(|&it| Rates::new(job, it, made))
        .collect();
    let ended = rounds(job, &mut process, progress, &mut rates);
    for rates in &rates {
        lines.add(rates);
        results.rows.extend(rates.rows());
    }
    match counted {
        Some(counted) => results.rows.extend(rows::instructions(job, &counted)),
        None => results.note_once("no valgrind here: instructions_per_lookup is left out"),
    }
    ended
}

fn rounds(
    job: &Job,
    process: &mut Process,
    progress: &Progress,
    rates: &mut [Rates],
) -> anyhow::Result<()> {
    for _ in 0..job.runs {
        for rates in &mut *rates {
            signal::check()?;
            rates.add(process.receive(PATIENCE)?)?;
            progress.advance(1);
        }
    }
    Ok(())
}

fn describe(job: &Job, made: Made) -> String {
    let [mib, huge] = [made.bytes, made.huge_bytes].map(|bytes| bytes >> 20);
    let name = job.lookup.name();
    let lines = made.lines;
    format!(
        "{name}: a table of {mib} MiB, {huge} of them on huge pages, {lines:.2} lines a look-up"
    )
}

/// What makes the figures mean less than they should.
fn alarms(job: &Job, made: Made) -> Vec<String> {
    let name = job.lookup.name();
    let [mib, huge] = [made.bytes, made.huge_bytes].map(|bytes| bytes >> 20);
    let mut alarms = Vec::new();
    if made.huge_bytes < made.bytes / 2 {
        alarms.push(format!(
            "{name}: {huge} of {mib} MiB are on huge pages: look-ups wait for page tables as well"
        ));
    }
    if !made.is_large() {
        alarms.push(format!(
            "{name}: a table of {mib} MiB may lie in the cache; take --table-mib 2048"
        ));
    }
    if job.lookup == options::Lookup::Ipv4 {
        alarms.push(format!(
            "{name}: seven of eight look-ups end in the first level of 64 MiB, as large as the \
             format makes it, and partly in the last-level cache"
        ));
    }
    alarms
}

/// # Errors
/// The machine has less memory to give than two tables take: one is for the rate of lines, or is
/// needed while automata are built.
fn ensure_memory(table_mib: u32) -> anyhow::Result<()> {
    let meminfo = std::fs::read_to_string("/proc/meminfo")?;
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    let needed = 2 * u64::from(table_mib) + OVERHEAD_MIB;
    // A system that does not say is given the benefit of the doubt.
    let available = kib.map_or(u64::MAX, |kib| kib >> 10);
    ensure!(
        needed <= available,
        "tables of {table_mib} MiB take {needed} MiB in all, and {available} MiB are available; \
         say --table-mib with less"
    );
    Ok(())
}

#[cfg(test)]
mod tests;
