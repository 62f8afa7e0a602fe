//! `dunlin report`: the rows of experiments as one page that needs no scripts and no network. Each
//! measured figure stands next to its baseline and to the figures of the papers; missing and
//! doubtful rows are named.

mod page;
mod read;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;

use dunlin_bench::experiments;

use crate::bench;
use harness::draw;
use harness::row::Row;

const EXAMPLES: &str = "\
Examples:
  dunlin bench all --json all.jsonl
  dunlin bench incast --json incast.jsonl
  dunlin report --from all.jsonl incast.jsonl -o report.html
  dunlin report -o report.html               runs the experiments of `dunlin bench all` first
  dunlin report --from latency.jsonl rate.jsonl --picture both.svg

The page is one file that any browser shows, even without a network. --from takes files that
`dunlin bench NAME --json FILE` has written, and merges several. The page names the experiments that
are in none of them.

Exit codes: 0, the page is written; 1, something failed; 2, wrong usage; 130, Ctrl-C, after a
page with the results so far has been written.";

/// The arguments of `dunlin report`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Rows of earlier runs, one JSON object a line
    #[arg(long, value_name = "JSONL", num_args = 1..)]
    from: Vec<PathBuf>,
    /// The page
    #[arg(
        short,
        long,
        value_name = "FILE.html",
        required_unless_present = "picture"
    )]
    output: Option<PathBuf>,
    /// A picture of the first chart of each experiment; if there is only one experiment, of all its
    /// charts
    #[arg(long, value_name = "FILE.svg")]
    picture: Option<PathBuf>,
    /// About how long the experiments take; not with --from
    #[arg(long, value_name = "S", value_parser = bench::seconds, conflicts_with = "from")]
    seconds: Option<std::time::Duration>,
}

/// Writes the page, the picture, or both.
///
/// # Errors
/// A file cannot be read or made; a line of a file is not a row (the error names its place); or an
/// experiment failed, after the page of the rows measured so far has been written.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    // Faults of the rows are reported before any picture is drawn, and a wrong output path before
    // any experiment runs.
    let read = match args.from.is_empty() {
        true => None,
        false => Some(read::all(&args.from)?),
    };
    let output = args.output.as_deref().map(make).transpose()?;
    let picture = args.picture.as_deref().map(make).transpose()?;
    let (rows, alarms, ended) = match read {
        Some(rows) => (rows, Vec::new(), Ok(())),
        None => bench::everything(args.seconds)?,
    };
    if let Some((path, mut file)) = output {
        let page = page::render(&rows, &alarms);
        write(&mut file, path, &page)?;
    }
    if let Some((path, mut file)) = picture {
        write(&mut file, path, &draw::sheet(&charts(&rows), 2))?;
    }
    eprintln!("{}", summary(&rows));
    ended
}

fn summary(rows: &[Row]) -> String {
    let sections = experiments::with_section().filter(|it| rows.iter().any(|row| it.owns(row)));
    let invalid = rows.iter().filter(|row| !row.valid).count();
    let few = rows.iter().filter(|row| row.shortage().is_some()).count();
    let (sections, all) = (sections.count(), experiments::with_section().count());
    format!(
        "{} rows, {invalid} of them invalid and {few} of too few rounds, in {sections} of {all} \
         sections",
        rows.len()
    )
}

/// The first chart of each experiment, which shows its main result. If there is only one
/// experiment, all its charts.
fn charts(rows: &[Row]) -> Vec<draw::Picture> {
    let mut charts: Vec<Vec<draw::Picture>> =
        experiments::ALL.iter().map(|it| it.charts(rows)).collect();
    charts.retain(|charts| !charts.is_empty());
    if charts.len() > 1 {
        charts.iter_mut().for_each(|charts| charts.truncate(1));
    }
    charts.into_iter().flatten().collect()
}

fn make(path: &Path) -> anyhow::Result<(&Path, File)> {
    let file = File::create(path).with_context(|| format!("cannot make {}", path.display()))?;
    Ok((path, file))
}

fn write(file: &mut File, path: &Path, text: &str) -> anyhow::Result<()> {
    let written = file.write_all(text.as_bytes());
    written.with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests;
