//! The arguments of `dunlin bench`, and its help.

use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use dunlin_bench::harness::experiment::Experiment;
use dunlin_bench::harness::selection::Selection;

use super::compare;
use super::named::Named;
use harness::output::Target;

const EXAMPLES: &str = "\
Examples:
  dunlin bench                          latency, rate and idling, with their baselines
  dunlin bench latency                  every size over shm, auto and udp
  dunlin bench rate --transport shm     only shared memory
  dunlin bench rate --size 64,1024      messages of these sizes only, in every batch
  dunlin bench rate --only batch=3      only the cases with this parameter
  dunlin bench rate --transport xdp     AF_XDP between two network namespaces, as root
  dunlin bench rate --transport dpdk    DPDK between two devices of memif
  dunlin bench slow-handler --seconds 120 --runs 9
  dunlin bench all --json rows.jsonl    a quarter of an hour; a file gets a JSON object per row
  dunlin bench raw --json - | jq .      JSON on the standard output
  dunlin bench compare --with ../old/dunlin rate    this build against another one
  dunlin bench rate --svg rate.svg      a picture of the rows
  dunlin bench rate --verbose           also the counters of both processes
  dunlin bench bandwidth --seconds 300  long enough for four messages of a gigabyte each
  dunlin bench factors                  gains of optimisations, cost of control; a minute
  dunlin bench incast --json -          congestion control in the simulator; some minutes
  dunlin bench kv --items-mib 64        the key-value service with small tables
  dunlin bench memcached                dunlin memcached against Debian's memcached
  dunlin bench store-memory             hit ratio, resident memory, bytes of an item: counts
  dunlin bench latency --realtime       on a machine that also does other work (as root)

Each experiment starts its own client and server processes. Each figure is the median of --runs
rounds. In each round, its baseline is measured right before it. A row for which fewer than 7
rounds count says \"not measured\", and how many rounds counted. A row is invalid if its baseline
shows that the machine was disturbed; run it again when the machine is quiet. Ctrl-C shows what was
measured so far. Processes that spin run on the first two processors. Even with --realtime, the
kernel gives other threads 5 % of these processors' time, which shows in the largest round trips.

In factors, two processes switch one optimisation off and on again every 10 ms. rate_ratio is the
median ratio of neighbouring intervals, over --runs pairs of processes. cells_together corresponds
to eRPC's descriptors for several packets, which shared memory does not have. Instructions are
counted only if valgrind is installed.

In slow-handler, handlers in the dispatch thread compute. Handlers in worker threads sleep, like a
handler that waits for a disk: if they computed, all threads would compete for two processors.

store, store-memory, kv and memcached take about 8, 2, 6 and 2 GiB of memory; --items-mib
changes that.

Exit codes: 0, all was measured; 1, something failed; 2, wrong usage; 130, Ctrl-C.";

/// The arguments of `dunlin bench`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(super) command: Option<Command>,
    /// Experiments to run
    #[arg(
        value_name = "NAME",
        default_value = "summary",
        hide_default_value = true,
        value_parser = Named::parser()
    )]
    pub(super) experiment: Named,
    #[command(flatten)]
    pub(super) selection: Selection,
    /// About how long all rounds may take together; cases that do not fit in are left out
    #[arg(long, value_name = "S", value_parser = seconds)]
    seconds: Option<Duration>,
    /// Rounds; a row has the median, the smallest and the largest of them
    /// (7; in `factors`, 11; in long simulations and `store-memory`, 1)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: Option<u32>,
    /// One JSON object per row, into a file or (`-`) to the standard output
    #[arg(long, value_name = "FILE|-")]
    pub(super) json: Option<Target>,
    /// A picture of the rows, with all charts that `dunlin report` would show
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
    /// Give the measuring threads priority over all others, for a busy machine (needs root)
    #[arg(long)]
    pub(super) realtime: bool,
    /// Show the counters and the resources of both processes of each measurement
    #[arg(long, short)]
    pub(super) verbose: bool,
}

/// The subcommands of `dunlin bench`. Without one, it measures this build.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Measures this build and other programs in turn, and shows which is better
    Compare(Box<compare::Args>),
}

impl Args {
    /// The arguments of `dunlin bench all`, with `--seconds` if `seconds` is given, and no other
    /// option.
    pub(super) fn everything(seconds: Option<Duration>) -> Self {
        let usual = crate::Args::parse_from(["dunlin", "bench", "all"]);
        let crate::Command::Bench(usual) = usual.command else {
            unreachable!("the arguments name the command");
        };
        Self { seconds, ..usual }
    }

    /// Checks options that depend on each other, which `clap` cannot.
    ///
    /// # Errors
    /// An option was given that the experiment does not have.
    pub(super) fn check(&self) -> Result<(), clap::Error> {
        let Some(refusal) = self.experiment.refusal(&self.selection) else {
            return Ok(());
        };
        Err(crate::Args::command().error(ErrorKind::ArgumentConflict, refusal))
    }

    /// The number of rounds of an experiment. By default, a long simulation has only one, because
    /// its seeds give nearly equal results.
    pub(super) fn runs(&self, experiment: &Experiment) -> u32 {
        self.runs.unwrap_or(experiment.usual_runs)
    }

    /// The time for an experiment: its share of the given time.
    pub(super) fn budget(&self, experiment: &Experiment) -> Duration {
        let usual = experiment.usual_time;
        match self.seconds {
            None => usual,
            Some(seconds) => {
                let all = self.experiment.experiments().map(|it| it.usual_time);
                seconds.mul_f64(usual.as_secs_f64() / all.sum::<Duration>().as_secs_f64())
            }
        }
    }
}

/// A span of time.
///
/// # Errors
/// The text is not a number, or the number is too small or too large.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if !(0.0..=86_400.0).contains(&number) || number == 0.0 {
        return Err("not between 0 and 86400".to_owned());
    }
    Ok(Duration::from_secs_f64(number))
}
