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
their own, and a cache line goes to and fro between the two processors before and after each
measurement. A round counts for two programs if the ping-pongs around their measurements differ by
at most 30 %; rounds whose ping-pongs agree as well were measured in one state of the machine. A
case is done when one state has given 7 rounds that count, and is \"not measured\" if 60 rounds did
not bring that.

A ratio is that of this build's figure to the other's in the same round; a row has their median and
range. There is a verdict only if all ratios lie on one side of 1. Below 1 is better for times,
above for rates.

`peer:` is followed by any program that takes the experiment and words name=value as arguments and
prints one JSON object; the page docs/comparing.md says which. A dunlin needs no more than to have
this command itself. Build both in the same way, such as by `cargo build --release`.

Exit codes: 0, it ran to its end; 1, something failed; 2, wrong usage; 130, Ctrl-C. What was
measured until then is written in any case.";

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
    /// Most rounds that are tried
    #[arg(long, value_name = "N", default_value_t = 60,
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) rounds: u32,
    /// Go on to the last round, so that slower states of the machine have rows as well
    #[arg(long)]
    pub(super) every_state: bool,
    /// How long a program may take to answer
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "30")]
    pub(super) limit: Duration,
    /// One JSON object a row, into a file or (`-`) to the standard output
    #[arg(long, value_name = "FILE|-")]
    pub(super) json: Option<Target>,
    /// Run the measuring threads before all others of a busy machine (needs root)
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
