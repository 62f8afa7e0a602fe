//! Aims: figures that the rows of an experiment should reach. A line for each, below the table,
//! says which are reached. Rows that are not valid are not judged.

use harness::row::Row;

use super::chart::word;

/// A figure of some rows, and its bound.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Aim {
    pub(crate) metric: &'static str,
    pub(crate) transport: &'static str,
    /// The parameters of the rows; others may have any value.
    pub(crate) params: &'static [(&'static str, &'static str)],
    pub(crate) of: Of,
    pub(crate) bound: Bound,
}

/// The figure of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Of {
    /// The row's value.
    Value,
    /// Its value over that of its baseline.
    Ratio,
    /// Its value over that of the row whose parameter has this value, and that is otherwise the
    /// same.
    Over(&'static str, &'static str),
}

/// The limit of a figure.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
    /// The baseline's value, or any that the row's spread reaches.
    Spread,
}

impl Aim {
    /// True if the row is of this kind.
    pub(crate) fn is_for(&self, row: &Row) -> bool {
        let has = |(name, value): &(&str, &str)| word(row, name).as_deref() == Some(*value);
        row.metric == self.metric && row.transport == self.transport && self.params.iter().all(has)
    }

    /// The line for a row; `None` if the row has no such figure.
    fn line(&self, row: &Row, rows: &[Row]) -> Option<String> {
        let mut name = format!("{} {} {}", row.experiment, row.transport, row.metric);
        let (mut figure, mut is_valid) = (row.median, row.valid);
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
                is_valid &= other.valid;
                name += &format!(" / that with {param} {value}");
            }
        }
        let (is_reached, wanted) = match self.bound {
            Bound::AtLeast(least) => (figure >= least, format!("at least {least}")),
            Bound::AtMost(most) => (figure <= most, format!("at most {most}")),
            Bound::Spread => (
                row.min <= row.baseline?,
                "at most 1 within the spread".into(),
            ),
        };
        let verdict = match (is_valid, is_reached) {
            (false, _) => "not judged, the row is invalid",
            (true, true) => "reached",
            (true, false) => "missed",
        };
        let params = row.params.iter().map(|(param, _)| {
            let value = word(row, param).unwrap_or_default();
            format!(", {param} {value}")
        });
        let params: String = params.collect();
        Some(format!("{verdict}: {figure:.3}, {wanted}  {name}{params}"))
    }
}

/// The lines of aims for rows of one experiment.
pub(crate) fn lines(aims: &[Aim], rows: &[Row]) -> Vec<String> {
    let judged = |aim: &Aim| -> Vec<String> {
        let those = rows.iter().filter(|row| aim.is_for(row));
        those.filter_map(|row| aim.line(row, rows)).collect()
    };
    aims.iter().flat_map(judged).collect()
}

/// Whether a row differs from another in this parameter alone, which has this value there.
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
