//! The first difference between two runs, for a reader: where and when, both sides, the differing
//! values, the preceding events, and the command that repeats it.
//!
//! Made by `differential`, printed by `bin/seeds` and by tests.

use std::fmt;

use crate::cluster::mutants::Mutant;
use crate::world::Line;

/// Two runs of a seed that differ.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The seed.
    pub seed: u64,
    /// The name of the comparison.
    pub comparison: &'static str,
    /// The mutant of the second variant.
    pub mutant: Option<Mutant>,
    /// The number of equal facts before the first different one.
    pub fact: usize,
    /// How many lines of each side come before the first different one.
    pub before: usize,
    /// The promise that a checker found broken in the second run.
    pub failure: Option<String>,
    /// The host of each port.
    pub hosts: Vec<usize>,
    /// The specification, and the variant that differs from it.
    pub sides: [Side; 2],
}

/// The facts of one run around the first different one.
#[derive(Clone, Debug)]
pub struct Side {
    /// The variant.
    pub name: &'static str,
    /// Whether a second run of this variant equalled its first one. If not, the simulator is at
    /// fault.
    pub repeats: bool,
    /// The facts as text.
    pub lines: Vec<Line>,
}

impl Difference {
    /// The first different fact of each side; `None` if that side's run ended before it.
    pub fn first(&self) -> [Option<&Line>; 2] {
        self.sides
            .each_ref()
            .map(|side| side.lines.get(self.before))
    }

    /// The fields in which the first different facts differ: name, and both values.
    pub fn fields(&self) -> Vec<(&'static str, [&str; 2])> {
        let [Some(first), Some(second)] = self.first() else {
            return Vec::new();
        };
        let pairs = first.fields.iter().zip(&second.fields);
        let named = pairs.take_while(|((name, _), (other, _))| name == other);
        named
            .filter(|((_, value), (_, other))| value != other)
            .map(|((name, value), (_, other))| (*name, [value.as_str(), other.as_str()]))
            .collect()
    }

    /// The one command that repeats it.
    pub fn replay(&self) -> String {
        let seed = self.seed;
        let planted = self.mutant.map_or(String::new(), |mutant| {
            format!(" --mutant {}", mutant.name())
        });
        format!("cargo xtask seeds --differential --seed {seed}{planted}")
    }

    /// The difference in one sentence.
    pub fn summary(&self) -> String {
        let [first, second] = self.first().map(|line| match line {
            Some(line) => format!("{} {}", self.place(line).trim_start(), line.what),
            None => "the run is over".to_owned(),
        });
        let fields = self.fields();
        let names: Vec<_> = fields.iter().map(|(name, _)| *name).collect();
        let [a, b] = self.sides.each_ref().map(|side| side.name);
        if first != second {
            format!("{a:?}: {first}; {b:?}: {second}")
        } else {
            format!("{first}: {} differ", names.join(", "))
        }
    }

    fn place(&self, line: &Line) -> String {
        let (micros, nanos) = (line.at.0 / 1000, line.at.0 % 1000);
        let at = format!("{micros:>7}.{nanos:03}");
        match line.port {
            None => format!("{at} world           "),
            Some(port) => {
                let host = self.hosts.get(port.0).copied().unwrap_or(usize::MAX);
                format!("{at} host {host} endpoint {}", port.0)
            }
        }
    }
}

/// Longest value of a field that is printed whole.
const LONGEST: usize = 400;

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, fact, .. } = self;
        let [a, b] = &self.sides;
        writeln!(
            f,
            "seed {seed}: {:?} and {:?} differ after {fact} equal facts:",
            a.name, b.name
        )?;
        for line in a.lines.iter().take(self.before) {
            writeln!(f, "    {} {}", self.place(line), line.what)?;
        }
        for side in &self.sides {
            writeln!(f, "  {:?}:", side.name)?;
            let lines = side.lines.get(self.before..).unwrap_or_default();
            for (index, line) in lines.iter().enumerate() {
                let mark = if index == 0 { '>' } else { ' ' };
                writeln!(f, "  {mark} {} {}", self.place(line), line.what)?;
            }
            if lines.is_empty() {
                writeln!(f, "  > the run is over")?;
            }
        }
        self.write_fields(f)?;
        for side in self.sides.iter().filter(|side| !side.repeats) {
            let name = side.name;
            writeln!(
                f,
                "two runs of {name:?} differ from each other: the simulator is at fault"
            )?;
        }
        if let Some(failure) = &self.failure {
            writeln!(f, "a checker found in {:?}: {failure}", b.name)?;
        }
        write!(f, "replay it with: {}", self.replay())
    }
}

impl Difference {
    fn write_fields(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [Some(first), Some(second)] = self.first()
            && first.at != second.at
        {
            writeln!(f, "  time: {} ns | {} ns", first.at.0, second.at.0)?;
        }
        for (name, values) in self.fields() {
            let [first, second] = values.map(|value| around_difference(value, values));
            writeln!(f, "  {name}: {first} | {second}")?;
        }
        Ok(())
    }
}

/// Shortens a long value to the part that begins shortly before the first difference.
fn around_difference(value: &str, [first, second]: [&str; 2]) -> String {
    if first.len().max(second.len()) <= LONGEST {
        return value.to_owned();
    }
    let same = first
        .bytes()
        .zip(second.bytes())
        .take_while(|(byte, other)| byte == other)
        .count();
    let skipped = same.saturating_sub(LONGEST / 4);
    let shown: String = value.chars().skip(skipped).take(LONGEST).collect();
    format!("…{shown}… (from character {skipped})")
}
