//! The budget file and the comparison with it: pure functions of text and numbers.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context, ensure};

use super::builds::Build;
use super::callgrind::{SIDES, Sides, UNITS};

/// The file with the ceilings.
pub(super) const FILE: &str = "budget.toml";

/// A new ceiling is above its count by this fraction of the count.
const MARGIN: f64 = 0.005;

/// A ceiling that is above its count by more than this fraction could be lowered.
const SLACK: f64 = 0.02;

/// A row of the file: the most instructions, stores and loads of each side.
pub(super) type Ceilings = Sides<u32>;

/// The file: the ceilings of each row in each section, and bounds on differences of rows.
#[derive(Debug)]
pub(super) struct Budget(BTreeMap<(String, String), Ceilings>, Vec<Extra>);

/// A bound on a difference: the most instructions, of both sides together, by which a row may be
/// above another one of its section.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Extra {
    section: String,
    pub(super) row: String,
    pub(super) than: String,
    most: u32,
}

impl Budget {
    /// Reads lines of the form `name = [[instructions, stores, loads], [the same of the server]]`,
    /// in a section for each build, and of the form `name - other = instructions`. The file must
    /// contain all rows of each and no others.
    pub(super) fn parse(text: &str, rows: impl Fn(Build) -> Vec<String>) -> anyhow::Result<Self> {
        let mut budget = Self(BTreeMap::new(), Vec::new());
        let mut section = "";
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if let Some(name) = line.strip_prefix('[') {
                section = name.trim_end_matches(']');
                let builds = Build::ALL.map(Build::name);
                ensure!(
                    builds.contains(&section),
                    "{FILE}: `{line}` is not a section; the sections are {builds:?}"
                );
            } else if !line.is_empty() {
                let build = Build::ALL.into_iter().find(|it| it.name() == section);
                for row in budget.read(section, line)? {
                    ensure!(
                        build.is_some_and(|build| rows(build).contains(&row)),
                        "{FILE}: [{section}] has a row `{row}`, which is not counted"
                    );
                }
            }
        }
        for build in Build::ALL {
            for row in rows(build) {
                budget.ceilings(build, &row)?;
            }
        }
        Ok(budget)
    }

    /// Reads one row, or a bound on the difference of two; returns their names.
    fn read(&mut self, section: &str, line: &str) -> anyhow::Result<Vec<String>> {
        ensure!(!section.is_empty(), "{FILE}: `{line}` is in no section");
        let wrong = || {
            format!(
                "{FILE}: `{line}` is not `name = [[instructions, stores, loads], [the same of the \
                 server]]` in whole numbers; `cargo xtask budget --print` prints such rows"
            )
        };
        let (name, numbers) = line.split_once('=').with_context(wrong)?;
        if let Some((row, than)) = name.split_once(" - ") {
            let [row, than] = [row, than].map(|name| name.trim().to_owned());
            self.1.push(Extra {
                section: section.to_owned(),
                row: row.clone(),
                than: than.clone(),
                most: numbers.trim().parse().with_context(wrong)?,
            });
            return Ok(vec![row, than]);
        }
        let ceilings = serde_json::from_str(numbers).with_context(wrong)?;
        let name = name.trim().to_owned();
        let before = self.0.insert((section.to_owned(), name.clone()), ceilings);
        ensure!(before.is_none(), "{FILE}: [{section}] has `{name}` twice");
        Ok(vec![name])
    }

    /// The bounds on differences of a section's rows.
    pub(super) fn extras(&self, build: Build) -> impl Iterator<Item = &Extra> {
        self.all_extras().filter(move |it| it.is_of(build))
    }

    /// The bounds of all sections.
    pub(super) fn all_extras(&self) -> impl Iterator<Item = &Extra> {
        self.1.iter()
    }

    /// The ceilings of a row.
    pub(super) fn ceilings(&self, build: Build, row: &str) -> anyhow::Result<Ceilings> {
        let found = self.0.get(&(build.name().to_owned(), row.to_owned()));
        found.copied().with_context(|| {
            format!(
                "{FILE}: [{}] has no row `{row}`; `cargo xtask budget --print {row}` prints it",
                build.name()
            )
        })
    }
}

/// Describes the counts that are above their ceilings.
pub(super) fn excesses(
    build: Build,
    row: &str,
    counts: &Sides<f64>,
    ceilings: &Ceilings,
) -> Vec<String> {
    let numbers = each(counts, ceilings).filter(|(_, _, count, ceiling)| count > ceiling);
    let text = |(side, unit, count, ceiling): (&str, &str, f64, f64)| {
        format!(
            "OVER BUDGET: [{}] {row}: the {side} needs {count:.1} {unit}, but may need {ceiling}",
            build.name()
        )
    };
    numbers.map(text).collect()
}

impl Extra {
    pub(super) fn is_of(&self, build: Build) -> bool {
        self.section == build.name()
    }

    /// Describes the difference if it is above its bound.
    pub(super) fn excess(&self, row: &Sides<f64>, than: &Sides<f64>) -> Option<String> {
        let instructions = |counts: &Sides<f64>| counts.iter().map(|side| side[0]).sum::<f64>();
        let more = instructions(row) - instructions(than);
        (more > f64::from(self.most)).then(|| {
            format!(
                "OVER BUDGET: [{}] {} needs {more:.1} instructions more than {}, but may need {} \
                 more",
                self.section, self.row, self.than, self.most
            )
        })
    }
}

/// The lower count of each pair.
pub(super) fn least(one: Sides<f64>, other: Sides<f64>) -> Sides<f64> {
    std::array::from_fn(|side| std::array::from_fn(|unit| one[side][unit].min(other[side][unit])))
}

/// The number of ceilings that are so far above their counts that they should be lowered.
pub(super) fn loose(counts: &Sides<f64>, ceilings: &Ceilings) -> usize {
    let is_loose = |count: f64, ceiling| f64::from(ceiling_for(count)) < ceiling * (1.0 - SLACK);
    let numbers = each(counts, ceilings);
    numbers
        .filter(|(_, _, count, ceiling)| is_loose(*count, *ceiling))
        .count()
}

/// Side, unit, count and ceiling of each number.
fn each<'a>(
    counts: &'a Sides<f64>,
    ceilings: &'a Ceilings,
) -> impl Iterator<Item = (&'static str, &'static str, f64, f64)> + 'a {
    let places = (0..SIDES.len()).flat_map(|side| (0..UNITS.len()).map(move |unit| (side, unit)));
    places.map(|(side, unit)| {
        let ceiling = f64::from(ceilings[side][unit]);
        (SIDES[side], UNITS[unit], counts[side][unit], ceiling)
    })
}

/// A row of the file that allows these counts, plus [`MARGIN`].
pub(super) fn file_row(name: &str, counts: &Sides<f64>) -> String {
    let mut row = format!("{name:14} = [");
    for (at, side) in counts.iter().enumerate() {
        let [instructions, stores, loads] = side.map(ceiling_for);
        let comma = if at == 0 { ", " } else { "]" };
        write!(row, "[{instructions:4}, {stores:4}, {loads:4}]{comma}").expect("a string has room");
    }
    row
}

/// The ceiling for a count.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts are positive and far below 2^32"
)]
fn ceiling_for(count: f64) -> u32 {
    (count * (1.0 + MARGIN)).ceil() as u32
}

#[cfg(test)]
mod tests;
