//! Options of `bench compare`, and its help.

use std::time::Duration;

use dunlin_bench::harness::selection::Selection;

use super::program::Program;
use super::tally::ENOUGH;
use crate::bench::args::seconds;
use crate::bench::named::Named;
use harness::output::Target;

const EXAMPLES: &str = "\
Examples:
  dunlin bench compare --with ../old/target/release/dunlin
  dunlin bench compare --with ./old latency --transport shm --size 8,32,56
  dunlin bench compare --with ./old rate --transport shm --only batch=3
  dunlin bench compare --with peer:./erpc-no-control latency rate --transport shm
  dunlin bench compare --with ./old --with peer:./erpc-shipped rate --json rows.jsonl
  dunlin bench compare --with ./old rate --rounds 200 --every-state

In each round, this build and the others measure the same case one after the other, in processes of
their own. Before and after each measurement, a cache line goes back and forth between the two
processors: a ping-pong. A round counts for two programs if the ping-pongs around their measurements
differ by at most 30 %. Rounds whose ping-pongs agree belong to one state of the machine. A case is
done when 7 rounds of one state count; if 60 rounds do not achieve that, it is \"not measured\".

A ratio is this build's figure divided by the other one's in the same round; a row has the median
and the range of the ratios. There is a verdict only if all ratios lie on one side of 1: for times,
below 1 is better; for rates, above 1.

After `peer:` comes any program that takes the experiment and name=value pairs as arguments, and
prints one JSON object; docs/comparing.md describes it. Another dunlin only needs to have this
command itself. Build both in the same way, for example with `cargo build --release`.

Exit codes: 0, it ran to its end; 1, something failed; 2, wrong usage; 130, Ctrl-C. In all cases
the figures measured so far are written.";

/// The options of `bench compare`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Experiments to compare
    #[arg(value_name = "NAME", default_values = ["latency", "rate"],
        value_parser = Named::parser())]
    pub(super) experiments: Vec<Named>,
    /// Another build of dunlin, or `peer:` and any program that measures; can be repeated
    #[arg(long, value_name = "PROGRAM", required = true)]
    pub(super) with: Vec<Program>,
    #[command(flatten)]
    pub(super) selection: Selection,
    /// How long each measurement takes
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "0.3")]
    pub(super) seconds: Duration,
    /// The most rounds to try
    #[arg(long, value_name = "N", default_value_t = 60,
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) rounds: u32,
    /// Continue to the last round, so that slower states of the machine have rows as well
    #[arg(long)]
    pub(super) every_state: bool,
    /// How long a program may take to answer
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "30")]
    pub(super) limit: Duration,
    /// One JSON object per row, into a file or (`-`) to the standard output
    #[arg(long, value_name = "FILE|-")]
    pub(super) json: Option<Target>,
    /// Give the measuring threads priority over all others, for a busy machine (needs root)
    #[arg(long)]
    pub(super) realtime: bool,
}

// The help names this number.
const _: () = assert!(ENOUGH == 7);

impl Args {
    /// The reason why this cannot be compared.
    pub(super) fn refusal(&self) -> Option<String> {
        let mut refusals = self.experiments.iter().map(|named| match named {
            Named::One(one) if one.is_compared => named.refusal(&self.selection),
            _ => Some("all and factors have no cases to compare".to_owned()),
        });
        refusals.find_map(|it| it)
    }
}
