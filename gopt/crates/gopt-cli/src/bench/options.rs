//! The arguments of `gopt bench`, and the words of its rows.

use std::path::PathBuf;

use clap::ValueEnum;
use harness::output::Target;
use serde::{Deserialize, Serialize};

/// The widths that are measured by default.
const WIDTHS: [usize; 9] = [1, 2, 4, 8, 16, 24, 32, 48, 64];

const EXAMPLES: &str = "\
Examples:
  gopt bench --svg gopt.svg           all look-ups, as a picture too; three minutes, 5 GB
  gopt bench --lookup cuckoo,mica --shape handler --batch 8,16,32
  gopt bench --json rows.jsonl        one JSON object per row, in a file
  gopt bench --json - | jq .          JSON on the standard output, the table on the standard error
  gopt bench --from rows.jsonl --svg gopt.svg
  gopt bench --table-mib 64 --runs 1  quick, but the tables fit the cache: rows are invalid

Each look-up has a process, which measures the plain and the interleaved forms in turns. The table
shows the best width of each form; --verbose and --json show all widths. Each figure is the median
of --runs rounds, next to that of its baseline; the last column is their ratio. Without valgrind
there are no counts of instructions. In aho-corasick, a look-up is one byte of a packet. Ctrl-C
shows the figures so far. Processes run on the first processor; a figure counts processor time.

Exit codes: 0, all was measured; 1, something failed; 2, wrong usage; 130, Ctrl-C.";

/// The arguments of `gopt bench`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Look-ups to measure; by default, all
    #[arg(long, value_enum, value_delimiter = ',', value_name = "L,...")]
    lookup: Vec<Lookup>,
    /// Look-ups alone, or among other work as in a handler; by default, both
    #[arg(long, value_enum, value_delimiter = ',', value_name = "S,...")]
    shape: Vec<Shape>,
    /// Widths of batches, 1 to 64; by default, nine of them
    #[arg(long, value_parser = width, value_delimiter = ',', value_name = "N,...")]
    batch: Vec<usize>,
    /// Approximate size of each table; memory for two of them is needed
    #[arg(long, value_name = "MIB", default_value_t = 2048)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub(super) table_mib: u32,
    /// Rounds; a row has their median, smallest and largest figure
    #[arg(long, value_name = "N", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) runs: u32,
    /// One JSON object per row, into a file or (`-`) to the standard output
    #[arg(long, value_name = "FILE|-")]
    pub(super) json: Option<Target>,
    /// A picture of the rows
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
    /// Show the rows of earlier runs, and measure nothing
    #[arg(long, value_name = "JSONL", num_args = 1..)]
    #[arg(conflicts_with_all = ["lookup", "shape", "batch", "table_mib", "runs", "realtime"])]
    pub(super) from: Vec<PathBuf>,
    /// Give the measuring processes priority over all ordinary programs (needs root)
    #[arg(long)]
    pub(super) realtime: bool,
    /// Show all widths
    #[arg(long, short)]
    pub(super) verbose: bool,
}

/// The keys of a look-up, and its table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Lookup {
    /// 100 dependent reads
    PointerChasing,
    /// Cuckoo hashing, 2 hashes, 8 slots
    Cuckoo,
    /// Routes in DIR-24-8
    Ipv4,
    /// Routes in a multi-bit trie
    Ipv6,
    /// MICA's index and log
    Mica,
    /// A static B+-tree
    Btree,
    /// Pattern matching; a look-up is a byte of a packet
    AhoCorasick,
}

/// The work between look-ups.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Shape {
    /// Nothing
    Tight,
    /// Between 500 and 700 instructions of other work for each item
    Handler,
}

impl Args {
    /// Each look-up once, in the order of the help.
    pub(super) fn lookups(&self) -> Vec<Lookup> {
        once(&self.lookup, Lookup::value_variants())
    }

    /// The shapes of a look-up. `AhoCorasick` has no item to work on between two look-ups, so it
    /// has no shape but [`Shape::Tight`].
    pub(super) fn shapes(&self, lookup: Lookup) -> Vec<Shape> {
        let mut shapes = once(&self.shape, Shape::value_variants());
        shapes.retain(|&shape| shape == Shape::Tight || lookup != Lookup::AhoCorasick);
        shapes
    }

    /// Widths, ascending.
    pub(super) fn widths(&self) -> Vec<usize> {
        once(&self.batch, &WIDTHS)
    }
}

impl Lookup {
    /// The look-up's name in rows.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::PointerChasing => "pointer-chasing",
            Self::Cuckoo => "cuckoo",
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
            Self::Mica => "mica",
            Self::Btree => "btree",
            Self::AhoCorasick => "aho-corasick",
        }
    }
}

impl Shape {
    /// The shape's name in rows.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Tight => "tight",
            Self::Handler => "handler",
        }
    }
}

/// The given values, or all if none are given; sorted, each once.
fn once<T: Copy + Ord>(given: &[T], all: &[T]) -> Vec<T> {
    let mut chosen = if given.is_empty() { all } else { given }.to_vec();
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}

fn width(text: &str) -> Result<usize, String> {
    let number: usize = text.parse().map_err(|_| "not a number".to_owned())?;
    if !(1..=gopt::MAX_WIDTH).contains(&number) {
        return Err(format!("not between 1 and {}", gopt::MAX_WIDTH));
    }
    Ok(number)
}
