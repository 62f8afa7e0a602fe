//! What `dunlin bench gopt` can be told, and the words of its rows.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Widths that are measured unless others are asked for.
const WIDTHS: [usize; 9] = [1, 2, 4, 8, 16, 24, 32, 48, 64];

/// Size of a table unless another is asked for. No last-level cache of today holds much of it.
const TABLE_MIB: u32 = 2048;

/// Options that no other experiment has.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Options of gopt")]
pub(crate) struct Options {
    /// Which look-ups; without it, all
    #[arg(long, value_enum, value_delimiter = ',', value_name = "L,...")]
    lookup: Vec<Lookup>,
    /// Look-ups alone, or among other work as in a handler; without it, both
    #[arg(long, value_enum, value_delimiter = ',', value_name = "S,...")]
    shape: Vec<Shape>,
    /// Widths of batches, 1 to 64; without it, nine of them
    #[arg(long, value_parser = width, value_delimiter = ',', value_name = "N,...")]
    batch: Vec<usize>,
    /// About how large each table is; 2048 if not given, and then memory for two is needed
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    table_mib: Option<u32>,
}

/// What is looked up, and in what.
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

/// What stands between look-ups.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Shape {
    /// Nothing
    Tight,
    /// Between 500 and 700 instructions of other work for each item
    Handler,
}

impl Options {
    /// The first of these options that was given.
    pub(in crate::bench) fn given(&self) -> Option<&'static str> {
        let options = [
            ("--lookup", !self.lookup.is_empty()),
            ("--shape", !self.shape.is_empty()),
            ("--batch", !self.batch.is_empty()),
            ("--table-mib", self.table_mib.is_some()),
        ];
        let mut given = options.into_iter().filter(|(_, is_given)| *is_given);
        given.next().map(|(name, _)| name)
    }

    /// Each look-up once, in the order of the help.
    pub(super) fn lookups(&self) -> Vec<Lookup> {
        once(&self.lookup, Lookup::value_variants())
    }

    /// The shapes that a look-up has: a traversal has no item to work on between its look-ups.
    pub(super) fn shapes(&self, lookup: Lookup) -> Vec<Shape> {
        let mut shapes = once(&self.shape, Shape::value_variants());
        shapes.retain(|&shape| shape == Shape::Tight || lookup != Lookup::AhoCorasick);
        shapes
    }

    /// Widths, ascending.
    pub(super) fn widths(&self) -> Vec<usize> {
        once(&self.batch, &WIDTHS)
    }

    pub(super) fn table_mib(&self) -> u32 {
        self.table_mib.unwrap_or(TABLE_MIB)
    }
}

impl Lookup {
    /// Its name in rows.
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
    /// Its name in rows.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Tight => "tight",
            Self::Handler => "handler",
        }
    }
}

/// What was given, or else all there is; sorted, each once.
fn once<T: Copy + Ord>(given: &[T], all: &[T]) -> Vec<T> {
    let mut chosen = if given.is_empty() { all } else { given }.to_vec();
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}

fn width(text: &str) -> Result<usize, String> {
    let number: usize = text.parse().map_err(|_| "not a number".to_owned())?;
    if !(1..=::gopt::MAX_WIDTH).contains(&number) {
        return Err(format!("not between 1 and {}", ::gopt::MAX_WIDTH));
    }
    Ok(number)
}
