//! The parts of the receive path that tests reach, from the output of `llvm-cov export`.
//!
//! Two things are counted, and enough of both must be reached. An *outcome* is one side of a
//! condition: of an `if`, a `while`, a guard, or one operand of `&&` and `||`. The compiler makes
//! no conditions for the arms of a `match`, for `if let` chains without a boolean condition, and
//! for `?`. Therefore *regions* are counted too: each arm, each body and each early return is one.
//!
//! A generic function is compiled once for every set of types, and each program has its own copies.
//! A place in the source counts once, and is reached if any copy reaches it. Code that is not built
//! for tests (planted bugs) does not count; tests are in other files.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use anyhow::{Context, ensure};
use serde_json::Value;

/// Regions of this kind are code; others are gaps, skipped text and calls of macros.
const CODE: u64 = 0;

/// A piece of source: line and column of its first byte, and of the first byte after it.
type Span = [u64; 4];

/// The counts of one file's places.
#[derive(Debug, Default)]
struct File {
    regions: BTreeMap<Span, u64>,
    /// For each condition, how often it was true and how often false.
    conditions: BTreeMap<Span, [u64; 2]>,
}

/// The number of reached places, and of all places.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Share {
    reached: usize,
    all: usize,
}

impl Share {
    fn of(counts: impl Iterator<Item = u64>) -> Self {
        let mut share = Self::default();
        for count in counts {
            share.all += 1;
            share.reached += usize::from(count != 0);
        }
        share
    }

    fn plus(self, other: Self) -> Self {
        Self {
            reached: self.reached + other.reached,
            all: self.all + other.all,
        }
    }

    /// The reached fraction; if there are no places, all are reached.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    fn part(self) -> f64 {
        match self.all {
            0 => 1.0,
            all => self.reached as f64 / all as f64,
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.part() * 100.0;
        write!(f, "{:>5} of {:>5} {percent:>6.1} %", self.reached, self.all)
    }
}

impl File {
    fn outcomes(&self) -> Share {
        Share::of(self.conditions.values().flatten().copied())
    }

    fn regions(&self) -> Share {
        Share::of(self.regions.values().copied())
    }
}

/// All files, by their paths from the root of the workspace.
#[derive(Debug)]
pub(super) struct Report {
    files: BTreeMap<String, File>,
}

impl Report {
    /// Reads the export. Every file that was asked for must be in it.
    pub(super) fn read(export: &Value, root: &Path, wanted: &[&str]) -> anyhow::Result<Self> {
        let mut files: BTreeMap<String, File> = BTreeMap::new();
        let functions = export["data"][0]["functions"].as_array();
        for function in functions.context("the export has no functions")? {
            let names = function["filenames"].as_array();
            let names: Vec<Option<&str>> = names
                .context("a function has no files")?
                .iter()
                .map(|name| relative(name, root).filter(|name| wanted.contains(name)))
                .collect();
            for region in entries(&function["regions"])? {
                let [span @ .., count, file, _, kind] = numbers::<8>(region)?;
                let name = names.get(usize::try_from(file)?).copied().flatten();
                if let (Some(name), CODE) = (name, kind) {
                    let file = files.entry(name.to_owned()).or_default();
                    *file.regions.entry(span).or_default() += count;
                }
            }
            for branch in entries(&function["branches"])? {
                let [span @ .., yes, no, file, _, _] = numbers::<9>(branch)?;
                let name = names.get(usize::try_from(file)?).copied().flatten();
                if let Some(name) = name {
                    let file = files.entry(name.to_owned()).or_default();
                    let counts = file.conditions.entry(span).or_default();
                    counts[0] += yes;
                    counts[1] += no;
                }
            }
        }
        for name in wanted {
            ensure!(files.contains_key(*name), "nothing was counted in {name}");
        }
        Ok(Self { files })
    }

    /// Whether both figures are at least `least`.
    pub(super) fn is_enough(&self, least: f64) -> bool {
        self.outcomes().part() >= least && self.regions().part() >= least
    }

    fn outcomes(&self) -> Share {
        let all = self.files.values().map(File::outcomes);
        all.fold(Share::default(), Share::plus)
    }

    fn regions(&self) -> Share {
        let all = self.files.values().map(File::regions);
        all.fold(Share::default(), Share::plus)
    }
}

impl fmt::Display for Report {
    /// Writes the places that are not reached, and then a table.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, file) in &self.files {
            for ([line, column, ..], [yes, no]) in &file.conditions {
                for (count, outcome) in [(yes, "true"), (no, "false")] {
                    if *count == 0 {
                        writeln!(f, "{name}:{line}:{column}: never {outcome}")?;
                    }
                }
            }
            for ([line, column, ..], count) in &file.regions {
                if *count == 0 {
                    writeln!(f, "{name}:{line}:{column}: never reached")?;
                }
            }
        }
        writeln!(f, "{:47} {:^23}  {:^23}", "", "outcomes", "regions")?;
        for (name, file) in &self.files {
            writeln!(f, "{name:36} {}  {}", file.outcomes(), file.regions())?;
        }
        let name = "receive path";
        writeln!(f, "{name:36} {}  {}", self.outcomes(), self.regions())
    }
}

/// The path of a file from the root, if it lies below the root.
fn relative<'a>(name: &'a Value, root: &Path) -> Option<&'a str> {
    let below = Path::new(name.as_str()?).strip_prefix(root).ok()?;
    below.to_str()
}

fn entries(list: &Value) -> anyhow::Result<&Vec<Value>> {
    list.as_array().context("a function has no list of counts")
}

fn numbers<const N: usize>(entry: &Value) -> anyhow::Result<[u64; N]> {
    let all = entry.as_array().context("an entry is not a list")?;
    let numbers: Option<Vec<u64>> = all.iter().map(Value::as_u64).collect();
    let numbers = numbers.context("an entry has something other than numbers")?;
    numbers
        .try_into()
        .map_err(|_| anyhow::anyhow!("an entry does not have {N} numbers"))
}

#[cfg(test)]
mod tests;
