//! What `dunlin bench` can be told, and what its help says.

use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, ValueEnum};
use serde::{Deserialize, Serialize};

use super::compare;
use super::selection::Selection;
use harness::output::Target;

const EXAMPLES: &str = "\
Examples:
  dunlin bench                          latency, rate and idling beside their baselines
  dunlin bench latency                  every size over shm, auto and udp
  dunlin bench rate --transport shm     shared memory alone
  dunlin bench rate --size 8,56,1000    messages of other sizes than 32 bytes
  dunlin bench rate --only batch=3      of all cases those with this parameter
  dunlin bench slow-handler --seconds 120 --runs 9
  dunlin bench all --json rows.jsonl    everything, and one JSON object a row in a file
  dunlin bench raw --json - | jq .      JSON on the standard output, the table beside it
  dunlin bench compare --with ../old/dunlin rate    this build beside another one
  dunlin bench rate --svg rate.svg      a picture of the rows
  dunlin bench rate --verbose           what both processes of each measurement counted
  dunlin bench bandwidth --seconds 300  with four messages of a gigabyte at a time
  dunlin bench factors                  what optimisations are worth, and control costs; a minute
  dunlin bench incast --json -          congestion control in the simulator; some minutes
  dunlin bench latency --realtime       on a machine that does other work meanwhile (as root)

Each experiment starts its own client and server processes. Each figure is the median of --runs
rounds, beside its baseline, which is measured right before it in each round; the last column is
their ratio. A row is invalid if its baseline shows that the machine was disturbed; run it again
when the machine is quiet. Ctrl-C shows what was measured so far. Where two processes spin, they
do so on the first two processors. With --realtime the system takes 5 % of their time for other
threads all the same, which shows in the largest round trips.

Without valgrind there are no counts of instructions.

In factors, two processes switch something off and on again every 10 ms; rate_ratio is the median
ratio of neighbours, and a row that of --runs pairs of processes. Shared memory has no descriptors
that could serve many packets; cells_together is what corresponds.

In slow-handler, handlers in the dispatch thread compute; those in worker threads sleep, as a
handler does that waits for a disk, because with two processors they would fight for them.

Exit codes: 0, all was measured; 1, something failed; 2, wrong usage; 130, Ctrl-C.";

/// What `dunlin bench` can be told.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(super) command: Option<Command>,
    /// What to measure
    #[arg(
        value_name = "NAME",
        default_value = "summary",
        hide_default_value = true
    )]
    pub(super) experiment: Experiment,
    #[command(flatten)]
    pub(super) selection: Selection,
    /// How long all rounds together take, about; cases that take longer are left out
    #[arg(long, value_name = "S", value_parser = seconds)]
    seconds: Option<Duration>,
    /// Rounds; a row has the median, the smallest and the largest of them
    /// (5; in `factors`, 11; in what is simulated at length, 1)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: Option<u32>,
    /// One JSON object a row, into a file or (`-`) to the standard output
    #[arg(long, value_name = "FILE|-")]
    pub(super) json: Option<Target>,
    /// A picture of the rows: all charts that `dunlin report` would show of them
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
    /// Run the measuring threads before all others of a busy machine (needs root)
    #[arg(long)]
    pub(super) realtime: bool,
    /// Show what both processes of each measurement counted and used
    #[arg(long, short)]
    pub(super) verbose: bool,
}

/// What `dunlin bench` does other than measuring this build.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Measures this build and other programs in turn, and says which is better
    Compare(Box<compare::Args>),
}

/// The experiments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Experiment {
    /// Latency, rate and idling, a few rows of each: what plain `dunlin bench` measures
    Summary,
    /// The machine itself: round trips, rates, copies, clocks
    Raw,
    /// Round trips of one RPC at a time, 8 to 1024 bytes
    Latency,
    /// RPCs per second, 60 in flight over 8 sessions, in batches
    Rate,
    /// Messages of 32 bytes to 1 GiB, one and four at a time, beside copies, datagrams and TCP
    Bandwidth,
    /// 8 MB requests over networks that lose packets: a simulated one, and udp on purpose
    Loss,
    /// The same over a simulated one that delivers some of them late
    Reorder,
    /// Small RPCs while 8 MB messages go over the same session
    Mixed,
    /// RPCs over shared memory with optimisations of eRPC, table 3, or congestion control off; not
    /// part of `all`
    Factors,
    /// 8 MB requests of 20 to 1000 simulated hosts to one, under each congestion control scheme;
    /// not part of `all`
    Incast,
    /// 64 KB RPCs among 100 simulated hosts that send to another one meanwhile; not part of `all`
    #[value(alias = "incast_background")]
    IncastBackground,
    /// Small RPCs among 100 simulated hosts with up to two million sides of sessions; not part of
    /// `all`
    Cluster,
    /// 1 to 20 000 sessions between two endpoints: rate, and memory per session
    Sessions,
    /// The first RPC after a silence, and processor time of a server without work
    Idle,
    /// Handlers that compute in the dispatch thread or sleep in worker threads, and fast RPCs
    /// beside them
    SlowHandler,
    /// The same RPCs by the poll API, futures, and a typed service; not part of `all`
    Faces,
    /// Everything above that takes a quarter of an hour together, without the summary
    All,
}

/// What packets travel over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Transport {
    /// Shared memory between processes of this host
    Shm,
    /// Both, chosen per peer; here it is shared memory
    Auto,
    /// Kernel UDP over loopback
    Udp,
}

impl Transport {
    /// Its name in rows.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Shm => "shm",
            Self::Auto => "auto",
            Self::Udp => "udp",
        }
    }
}

impl Args {
    /// All experiments of `all`, as if nothing but a time was given.
    pub(super) fn everything(seconds: Option<Duration>) -> Self {
        let usual = crate::Args::parse_from(["dunlin", "bench", "all"]);
        let crate::Command::Bench(usual) = usual.command else {
            unreachable!("the arguments name the command");
        };
        Self { seconds, ..usual }
    }

    /// Options that belong together, which `clap` does not see for itself.
    ///
    /// # Errors
    /// Which option the experiment does not have.
    pub(super) fn check(&self) -> Result<(), clap::Error> {
        let Some(refusal) = self.selection.refusal(self.experiment) else {
            return Ok(());
        };
        Err(crate::Args::command().error(ErrorKind::ArgumentConflict, refusal))
    }

    /// The experiments behind the name.
    pub(super) fn experiments(&self) -> Vec<Experiment> {
        match self.experiment {
            Experiment::All => Experiment::EACH.to_vec(),
            one => vec![one],
        }
    }

    /// Rounds of an experiment. One seed of a long simulation says nearly the same as another.
    pub(super) fn runs(&self, experiment: Experiment) -> u32 {
        let usual = match experiment {
            Experiment::Incast | Experiment::IncastBackground | Experiment::Cluster => 1,
            Experiment::Factors => 11,
            _ => 5,
        };
        self.runs.unwrap_or(usual)
    }

    /// How long an experiment takes: what was given, of which each of several has its share.
    pub(super) fn budget(&self, experiment: Experiment) -> Duration {
        let usual = experiment.usual_budget();
        match self.seconds {
            None => usual,
            Some(seconds) => {
                let all = self.experiments().into_iter().map(Experiment::usual_budget);
                seconds.mul_f64(usual.as_secs_f64() / all.sum::<Duration>().as_secs_f64())
            }
        }
    }
}

impl Experiment {
    /// The names of those that have rows under their name.
    #[cfg(test)]
    pub(crate) fn names() -> Vec<String> {
        let own = Self::value_variants().iter();
        let own = own.filter(|it| !matches!(it, Self::Summary | Self::All));
        let names = own.filter_map(Self::to_possible_value);
        names.map(|value| value.get_name().to_owned()).collect()
    }

    /// What `all` runs, one after the other.
    const EACH: [Self; 10] = [
        Self::Raw,
        Self::Latency,
        Self::Rate,
        Self::Bandwidth,
        Self::Loss,
        Self::Reorder,
        Self::Mixed,
        Self::Sessions,
        Self::Idle,
        Self::SlowHandler,
    ];

    const fn usual_budget(self) -> Duration {
        Duration::from_secs(match self {
            Self::Summary => 45,
            Self::Raw => 20,
            Self::Latency => 30,
            Self::Rate | Self::SlowHandler => 60,
            Self::Bandwidth | Self::Factors => 60,
            Self::Mixed | Self::Faces => 30,
            Self::Loss => 60,
            Self::Reorder => 5,
            Self::Sessions => 150,
            Self::Idle => 200,
            // As long as all cases take, for so many rounds.
            Self::Incast => 300 * 1000,
            Self::IncastBackground => 200 * 1000,
            Self::Cluster => 1200 * 1000,
            Self::All => 675,
        })
    }
}

/// A span of time.
///
/// # Errors
/// What it is not.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if !(0.0..=86_400.0).contains(&number) || number == 0.0 {
        return Err("not between 0 and 86400".to_owned());
    }
    Ok(Duration::from_secs_f64(number))
}
