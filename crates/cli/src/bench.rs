//! `dunlin bench`: experiments, each a list of cases that [`plan`] measures in rounds, beside the
//! baselines of [`raw`]. Design §14 says which figures count: medians of several rounds, as ratios
//! to what this machine can do without the library, measured at the same time.

mod machine;
mod output;
mod plan;
mod plausible;
mod probe;
mod progress;
pub(crate) mod raw;
mod row;
mod rtt;
mod table;
mod ticks;
mod work;

use std::time::Duration;

use clap::ValueEnum;

use crate::signal;
use output::{Output, Target};

const EXAMPLES: &str = "\
Examples:
  dunlin bench raw                      what this machine can do without Dunlin
  dunlin bench raw --transport shm      shared memory alone
  dunlin bench raw --seconds 60 --runs 9
  dunlin bench raw --json rows.jsonl    the table, and one JSON object a row in a file
  dunlin bench raw --json - | jq .      JSON on the standard output, the table beside it

Each figure is the median of --runs rounds. A row is invalid if its baseline shows that the
machine was disturbed; run it again when the machine is quiet. Ctrl-C shows what was measured so
far.";

/// What `dunlin bench` can be told.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// What to measure
    #[arg(value_name = "NAME")]
    experiment: Experiment,
    /// Over what
    #[arg(long, value_enum, value_delimiter = ',', default_value = "shm,udp")]
    transport: Vec<Transport>,
    /// How long all rounds together take, about
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "20")]
    seconds: Duration,
    /// Rounds; a row has the median, the smallest and the largest of them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    #[arg(default_value_t = 5)]
    runs: u32,
    /// One JSON object a row, into a file or (`-`) to the standard output
    #[arg(long, value_name = "FILE|-")]
    json: Option<Target>,
}

/// The experiments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Experiment {
    /// The machine itself: round trips, rates, copies, clocks
    Raw,
}

/// What packets travel over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum)]
enum Transport {
    /// Shared memory between processes of this host
    Shm,
    /// Kernel UDP over loopback
    Udp,
}

/// Runs the experiment that was asked for and writes its rows.
///
/// # Errors
/// [`signal::Interrupted`], after what was measured so far has been written; or a process could
/// not be started, failed or hung; or the rows cannot be written.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    signal::watch()?;
    let mut output = Output::open(args.json.as_ref())?;
    let mut cases = match args.experiment {
        Experiment::Raw => raw::cases(&args.transport),
    };
    let ended = plan::run(&mut cases, args.runs, args.seconds);
    let rows: Vec<row::Row> = cases.iter().flat_map(plan::Case::rows).collect();
    output.write(&rows, &machine::describe())?;
    ended
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if !(0.0..=86_400.0).contains(&number) || number == 0.0 {
        return Err("not between 0 and 86400".to_owned());
    }
    Ok(Duration::from_secs_f64(number))
}
