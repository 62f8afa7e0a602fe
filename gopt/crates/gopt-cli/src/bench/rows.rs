//! Makes rows from the rates of rounds, and chooses the rows of the summary.

use std::collections::BTreeMap;

use anyhow::ensure;
use harness::row::{Row, Spread};
use serde_json::{Map, Value};

use super::ENOUGH_LINES;
use super::form::{Cell, Form};
use super::instructions::Counted;
use super::measure::{Job, Made};
use super::options::Shape;

/// The name of this experiment in rows.
pub(super) const EXPERIMENT: &str = "gopt";

/// Look-ups per second.
pub(super) const RATE: &str = "lookups_per_s";

/// Cache lines that are read per second, by the look-up in the form `hand` or by a loop that only
/// reads cache lines.
const LINES: &str = "lines_per_s";

const INSTRUCTIONS: &str = "instructions_per_lookup";

/// The name, in rows, of the loop that only reads random lines.
const NO_LOOKUP: &str = "lines";

/// The results of the rounds of one shape of one look-up.
#[derive(Debug)]
pub(super) struct Rates<'a> {
    job: &'a Job,
    shape: Shape,
    made: Made,
    cells: Vec<Cell>,
    /// For each round, the rates of all cells.
    rounds: Vec<Vec<f64>>,
}

/// Rates of lines by width, from the rounds of all look-ups.
#[derive(Debug, Default)]
pub(super) struct LineRates {
    by_width: BTreeMap<usize, Vec<f64>>,
}

impl Made {
    /// True if the table is too large for a cache to hold much of it.
    pub(super) const fn is_large(&self) -> bool {
        self.bytes / 64 >= ENOUGH_LINES
    }
}

impl<'a> Rates<'a> {
    /// Results without rounds so far.
    pub(super) fn new(job: &'a Job, shape: Shape, made: Made) -> Self {
        Self {
            job,
            shape,
            made,
            cells: job.cells(shape),
            rounds: Vec::new(),
        }
    }

    /// Adds a round.
    ///
    /// # Errors
    /// It does not have a rate for each cell.
    pub(super) fn add(&mut self, round: Vec<f64>) -> anyhow::Result<()> {
        let (found, expected) = (round.len(), self.cells.len());
        ensure!(found == expected, "{found} rates, not {expected}");
        self.rounds.push(round);
        Ok(())
    }

    /// A row for each form and width, and one for the lines that `hand` reads; no rows without
    /// rounds.
    pub(super) fn rows(&self) -> Vec<Row> {
        let cells = self.cells.iter().enumerate();
        let lookups = cells.filter(|(_, cell)| cell.form != Form::Lines);
        lookups
            .flat_map(|(at, &cell)| [self.rate(at, cell), self.lines(at, cell)])
            .flatten()
            .collect()
    }

    fn rate(&self, at: usize, cell: Cell) -> Option<Row> {
        let baseline = cell.form.baseline().and_then(|form| {
            let at = self.cells.iter().position(|cell| cell.form == form)?;
            Some((self.spread(at)?.median, form.name()))
        });
        let params = params(
            self.job.lookup.name(),
            cell.form,
            Some(self.shape),
            cell.batch,
        );
        Some(self.row(params, (RATE, "1/s"), self.spread(at)?, baseline))
    }

    /// The rate of lines that `hand` reads, compared with the machine's best rate in the same
    /// rounds.
    fn lines(&self, at: usize, cell: Cell) -> Option<Row> {
        if !cell.form.is_by_hand() || self.made.lines == 0.0 {
            return None;
        }
        let lines = |it: f64| it * self.made.lines;
        let Spread { median, min, max } = self.spread(at)?;
        let spread = Spread {
            median: lines(median),
            min: lines(min),
            max: lines(max),
        };
        let best = Some((self.best_line_rate()?, "random lines"));
        let params = params(
            self.job.lookup.name(),
            cell.form,
            Some(self.shape),
            cell.batch,
        );
        Some(self.row(params, (LINES, "1/s"), spread, best))
    }

    fn best_line_rate(&self) -> Option<f64> {
        let cells = self.cells.iter().enumerate();
        let lines = cells.filter(|(_, cell)| cell.form == Form::Lines);
        let medians = lines.filter_map(|(at, _)| Some(self.spread(at)?.median));
        medians.max_by(f64::total_cmp)
    }

    fn spread(&self, at: usize) -> Option<Spread> {
        Spread::of(self.rounds.iter().map(|round| round[at]))
    }

    fn row(
        &self,
        params: Map<String, Value>,
        (metric, unit): (&'static str, &'static str),
        spread: Spread,
        baseline: Option<(f64, &'static str)>,
    ) -> Row {
        Row {
            runs: self.rounds.len(),
            valid: self.made.is_large(),
            ..row(params, (metric, unit), spread, baseline)
        }
    }
}

impl LineRates {
    /// Adds the rates of lines that were measured with one look-up.
    pub(super) fn add(&mut self, rates: &Rates<'_>) {
        for (at, cell) in rates.cells.iter().enumerate() {
            if cell.form == Form::Lines {
                let all = self.by_width.entry(cell.width()).or_default();
                all.extend(rates.rounds.iter().map(|round| round[at]));
            }
        }
    }

    /// A row for each width.
    pub(super) fn rows(&self) -> Vec<Row> {
        let row = |(&width, rates): (&usize, &Vec<f64>)| {
            let spread = Spread::of(rates.iter().copied())?;
            let params = params(NO_LOOKUP, Form::Lines, Some(Shape::Tight), Some(width));
            Some(Row {
                runs: rates.len(),
                ..row(params, (LINES, "1/s"), spread, None)
            })
        };
        self.by_width.iter().filter_map(row).collect()
    }
}

/// Rows of callgrind's counts. They do not depend on the size of the table.
pub(super) fn instructions(job: &Job, counted: &[Counted]) -> Vec<Row> {
    let row = |it: &Counted| {
        let plain = |other: &&Counted| {
            other.shape == it.shape && Some(other.cell.form) == it.cell.form.baseline()
        };
        let plain = counted.iter().find(plain);
        let baseline = plain.map(|plain| (plain.instructions, plain.cell.form.name()));
        let count = Spread {
            median: it.instructions,
            min: it.instructions,
            max: it.instructions,
        };
        let cell = it.cell;
        let params = params(job.lookup.name(), cell.form, Some(it.shape), cell.batch);
        row(params, (INSTRUCTIONS, "instructions"), count, baseline)
    };
    counted.iter().map(row).collect()
}

/// True unless another width of the same form and look-up is faster.
pub(super) fn is_best(row: &Row, rows: &[Row]) -> bool {
    let is_rate = row.experiment == EXPERIMENT && [RATE, LINES].contains(&&*row.metric);
    !is_rate || best(rows, &row.metric, key(row)).is_none_or(|best| best == row)
}

/// Lines for each look-up and shape: each interleaved form compared with the hand-written one, or
/// with the plain one if there is none; and the plain form in Rust compared with that in C.
pub(super) fn ratios(rows: &[Row]) -> Vec<String> {
    let pairs = [
        ("gopt", "hand"),
        ("batch", "plain"),
        ("c-gopt", "c-hand"),
        ("c-batch", "c-plain"),
        ("plain", "c-plain"),
    ];
    let shown = rows
        .iter()
        .filter(|row| row.experiment == EXPERIMENT && row.metric == RATE);
    let line = |row: &Row| {
        let [lookup, form, shape] = key(row);
        let (_, other) = pairs.into_iter().find(|(first, _)| *first == form)?;
        let other = best(rows, RATE, [lookup, other, shape])?;
        (best(rows, RATE, key(row)) == Some(row)).then(|| {
            let ratio = row.median / other.median;
            let [first, second] = [row, other].map(of_a_width);
            format!("{first} / {second}: {ratio:.2}  {lookup}, {shape}")
        })
    };
    shown.filter_map(line).collect()
}

fn of_a_width(row: &Row) -> String {
    let [_, form, _] = key(row);
    match row.params.get("batch") {
        Some(width) => format!("{form} at {width}"),
        None => form.to_owned(),
    }
}

/// The fastest of the rows of a look-up, form and shape.
fn best<'a>(rows: &'a [Row], metric: &str, wanted: [&str; 3]) -> Option<&'a Row> {
    let rows = rows
        .iter()
        .filter(|row| row.experiment == EXPERIMENT && row.metric == metric && key(row) == wanted);
    rows.max_by(|a, b| a.median.total_cmp(&b.median))
}

/// Look-up, form and shape.
fn key(row: &Row) -> [&str; 3] {
    let text = |name| {
        row.params
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    ["lookup", "form", "shape"].map(text)
}

fn params(
    lookup: &str,
    form: Form,
    shape: Option<Shape>,
    batch: Option<usize>,
) -> Map<String, Value> {
    let mut params = Map::new();
    params.insert("lookup".to_owned(), lookup.into());
    params.insert("form".to_owned(), form.name().into());
    if let Some(shape) = shape {
        params.insert("shape".to_owned(), shape.name().into());
    }
    if let Some(batch) = batch {
        params.insert("batch".to_owned(), batch.into());
    }
    params
}

fn row(
    params: Map<String, Value>,
    metric: (&'static str, &'static str),
    spread: Spread,
    baseline: Option<(f64, &'static str)>,
) -> Row {
    let row = Row {
        params,
        ..Row::new(EXPERIMENT, metric, spread)
    };
    match baseline {
        Some((baseline, name)) => row.against(baseline, name),
        None => row,
    }
}

#[cfg(test)]
mod tests;
