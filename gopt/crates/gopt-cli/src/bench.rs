//! `gopt bench`: look-ups that miss the cache, one after the other and interleaved (G-Opt §3.3,
//! §4.4, §5), compared with the rate at which this machine reads random cache lines.
//!
//! Each look-up runs in a process of its own, which makes the table and then measures all forms in
//! turns. So a round measures one look-up, and the tables of two look-ups are never in memory at
//! the same time.

mod automata;
mod chart;
mod form;
mod instructions;
mod measure;
mod options;
mod published;
mod read;
mod rows;
mod tables;

use std::time::Duration;

use anyhow::ensure;
use harness::draw;
use harness::output::{Output, Results};
use harness::process::{Process, Role};
use harness::progress::Progress;
use harness::row::Row;
use harness::seat::{self, Seats};
use harness::{signal, table};

use measure::{Job, Made};
pub(crate) use options::Args;
use rows::{LineRates, Rates};

/// How long the parent waits for a table, and then for each round. Builds without optimisation are
/// slow.
const PATIENCE: Duration = Duration::from_secs(900);

/// Lines that a table must have. Today no last-level cache holds most of them.
const ENOUGH_LINES: u64 = 20_000_000;

/// Memory that is needed in addition to the tables.
const OVERHEAD_MIB: u64 = 768;

/// The processes of this experiment.
pub(crate) const ROLES: [Role; 2] = [LOOKUPS, instructions::COUNT];

/// Makes a table, and measures look-ups in it.
const LOOKUPS: Role = Role::new("lookups", measure::run);

/// Measures the chosen look-ups, or reads rows of earlier runs, and writes the rows.
///
/// # Errors
/// [`signal::Interrupted`], after the rows measured so far were written; there is too little
/// memory; a process failed or hung; rows cannot be read or written.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    signal::watch()?;
    if args.realtime {
        seat::use_realtime();
    }
    let mut results = Results::begin();
    // Read before an output is opened: the same file may be input and output.
    results.rows = read::all(&args.from)?;
    let mut output = Output::open(args.json.as_ref(), args.svg.as_deref())?;
    let ended = match args.from[..] {
        [] => measure(args, &mut results),
        _ => Ok(()),
    };
    let rows = &results.rows;
    let text = table::render(&shown(rows, args.verbose)) + &results.text(lines(rows));
    output.write(rows, &text, || draw::sheet(&chart::charts(rows), 2))?;
    ended
}

/// The rows of the table: for each form, those at its best width, unless all were asked for.
fn shown(rows: &[Row], all: bool) -> Vec<Row> {
    let is_shown = |row: &&Row| all || rows::is_best(row, rows);
    rows.iter().filter(is_shown).cloned().collect()
}

/// The lines below the table.
fn lines(rows: &[Row]) -> Vec<String> {
    let mut lines = rows::ratios(rows);
    lines.extend(published::lines(rows));
    lines
}

/// Measures. Rows go into the results as soon as they are measured, even if the run ends early.
fn measure(args: &Args, results: &mut Results) -> anyhow::Result<()> {
    let jobs = jobs(args);
    ensure_memory(args.table_mib)?;
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
    let lookups = args.lookups().into_iter();
    let job = |lookup| Job {
        lookup,
        shapes: args.shapes(lookup),
        widths: args.widths(),
        table_mib: args.table_mib,
        runs: args.runs,
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
    let mut process = Process::spawn(LOOKUPS, Seats::pick().client, job)?;
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

/// Reasons to trust the figures less.
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
            "{name}: seven of eight look-ups end in the first level of 64 MiB, a size that the \
             format fixes, and the last-level cache holds a part of it"
        ));
    }
    alarms
}

/// Checks that the machine has enough memory.
///
/// # Errors
/// The machine has less free memory than two tables take. The second table measures the rate of
/// lines; for automata, building them takes as much memory instead.
fn ensure_memory(table_mib: u32) -> anyhow::Result<()> {
    let meminfo = std::fs::read_to_string("/proc/meminfo")?;
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    let needed = 2 * u64::from(table_mib) + OVERHEAD_MIB;
    // If the system does not report free memory, assume that there is enough.
    let available = kib.map_or(u64::MAX, |kib| kib >> 10);
    ensure!(
        needed <= available,
        "tables of {table_mib} MiB take {needed} MiB in all, and {available} MiB are available; \
         use a smaller --table-mib"
    );
    Ok(())
}

#[cfg(test)]
mod tests;
