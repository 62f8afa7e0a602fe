//! Aims: figures that the rows of an experiment should reach. A line for each, below the table,
//! says which are reached. Rows that are not valid are not judged.

use harness::row::Row;
use serde_json::{Map, Value};

use super::chart::{word, word_of};

/// The valid rounds that a row of `bench compare` needs.
const ROUNDS: usize = 7;

/// A figure of some rows, and its bound.
#[derive(Clone, Copy, Debug)]
pub struct Aim {
    pub(crate) metric: &'static str,
    pub(crate) transport: &'static str,
    /// The parameters of the rows; others may have any value.
    pub(crate) params: &'static [(&'static str, &'static str)],
    pub(crate) of: Of,
    pub(crate) bound: Bound,
}

/// The figure of a row.
#[derive(Clone, Copy, Debug)]
pub enum Of {
    /// The row's value.
    Value,
    /// The row's value, divided by its baseline.
    Ratio,
    /// The row's value, divided by the value of the row that differs only in this parameter, which
    /// has this value there.
    Over(&'static str, &'static str),
}

/// The limit of a figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Bound {
    /// This, or more.
    AtLeast(f64),
    /// This, or less.
    AtMost(f64),
    /// The baseline's value, or any that the row's spread reaches.
    Spread,
}

/// The aims for the rate over memif, against eRPC over its own transport for memif: with one packet
/// in each datagram, and with several.
const OVER_ERPC: [Aim; 2] = [
    over_erpc(&[("size", "32"), ("packing", "false")], 1.5),
    over_erpc(&[("size", "32"), ("packing", "true")], 2.5),
];

const fn over_erpc(params: &'static [(&'static str, &'static str)], least: f64) -> Aim {
    Aim::of_ratio(("rpc_per_s", "dpdk"), params, Bound::AtLeast(least))
}

/// The bound for the ratio of a row of `bench compare` to this other program.
pub fn of_other(what: [&str; 2], params: &Map<String, Value>, other: &str) -> Option<Bound> {
    let is_for = |aim: &&Aim| aim.is_of(what, &|name| params.get(name).map(word_of));
    let aim = OVER_ERPC.iter().find(is_for);
    aim.filter(|_| other.contains("erpc-dpdk"))
        .map(|aim| aim.bound)
}

impl Bound {
    /// The judgement of a ratio of `bench compare` from this number of valid rounds.
    pub fn judge_rounds(self, ratio: f64, rounds: usize) -> String {
        let shortage = format!("{rounds} of {ROUNDS} valid rounds");
        self.judge(ratio, Some(shortage).filter(|_| rounds < ROUNDS))
    }

    /// The judgement of a figure; `shortage`: the reason why it cannot be judged.
    fn judge(self, figure: f64, shortage: Option<String>) -> String {
        let (is_reached, wanted) = match self {
            Self::AtLeast(least) => (figure >= least, format!("at least {least}")),
            Self::AtMost(most) => (figure <= most, format!("at most {most}")),
            Self::Spread => (figure <= 1.0, "at most 1 within the spread".into()),
        };
        let verdict = match (shortage, is_reached) {
            (Some(shortage), _) => format!("not judged, {shortage}"),
            (None, true) => "reached".to_owned(),
            (None, false) => "missed".to_owned(),
        };
        format!("{verdict}: {figure:.3}, {wanted}")
    }
}

impl Aim {
    /// The aim for the ratio of a row to its baseline.
    pub(crate) const fn of_ratio(
        (metric, transport): (&'static str, &'static str),
        params: &'static [(&'static str, &'static str)],
        bound: Bound,
    ) -> Self {
        Self {
            metric,
            transport,
            params,
            of: Of::Ratio,
            bound,
        }
    }

    fn is_of(&self, what: [&str; 2], param: &dyn Fn(&str) -> Option<String>) -> bool {
        let has = |(name, value): &(&str, &str)| param(name).as_deref() == Some(*value);
        what == [self.metric, self.transport] && self.params.iter().all(has)
    }

    /// True if the row is of this kind.
    pub(crate) fn is_for(&self, row: &Row) -> bool {
        let [_, metric, transport] = row.what();
        self.is_of([metric, transport], &|name| word(row, name))
    }

    /// The line for a row; `None` if the row has no such figure.
    fn line(&self, row: &Row, rows: &[Row]) -> Option<String> {
        let mut name = format!("{} {} {}", row.experiment, row.transport, row.metric);
        let (mut figure, mut short) = (row.median, shortage(row));
        match self.of {
            Of::Value => {}
            Of::Ratio => {
                figure = row.ratio?;
                name += &format!(" / {}", row.baseline_name.as_deref()?);
            }
            Of::Over(param, value) => {
                let other = rows
                    .iter()
                    .find(|other| is_same_but(row, other, param, value))?;
                figure = row.median / other.median;
                short = short.or_else(|| shortage(other));
                name += &format!(" / that with {param} {value}");
            }
        }
        if matches!(self.bound, Bound::Spread) {
            // The smallest value decides, as a ratio to the baseline.
            figure = row.min / row.baseline?;
        }
        let judgement = self.bound.judge(figure, short);
        let params = row.params.iter().map(|(param, _)| {
            let value = word(row, param).unwrap_or_default();
            format!(", {param} {value}")
        });
        let params: String = params.collect();
        Some(format!("{judgement}  {name}{params}"))
    }
}

/// The reason why a row cannot be judged.
fn shortage(row: &Row) -> Option<String> {
    let invalid = (!row.valid).then(|| "the row is invalid".to_owned());
    invalid.or_else(|| row.shortage())
}

/// The lines of aims for rows of one experiment.
pub(crate) fn lines(aims: &[Aim], rows: &[Row]) -> Vec<String> {
    let judged = |aim: &Aim| -> Vec<String> {
        let those = rows.iter().filter(|row| aim.is_for(row));
        those.filter_map(|row| aim.line(row, rows)).collect()
    };
    aims.iter().flat_map(judged).collect()
}

/// Whether a row differs from `other` only in this parameter, which has this value in `other`.
fn is_same_but(row: &Row, other: &Row, param: &str, value: &str) -> bool {
    let others = |row: &Row| {
        let mut params = row.params.clone();
        params.remove(param);
        params
    };
    row.what() == other.what()
        && word(other, param).as_deref() == Some(value)
        && others(row) == others(other)
}

#[cfg(test)]
mod tests;
