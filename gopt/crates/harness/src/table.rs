//! Rows as a table for people, and the form of such tables.

use crate::figure::figure;
use crate::row::Row;

const HEADINGS: [&str; 11] = [
    "experiment",
    "transport",
    "parameters",
    "metric",
    "median",
    "min",
    "max",
    "baseline",
    "ratio",
    "ping",
    "",
];

/// The first column of numbers. Columns from this one on are aligned to the right.
const FIRST_NUMBER: usize = 4;

/// Renders rows as a table.
pub fn render(rows: &[Row]) -> String {
    layout(HEADINGS, FIRST_NUMBER, rows.iter().map(cells))
}

/// Renders a table, every line with its line end. Columns from `first_number` on are aligned to the
/// right; columns that are empty in all rows are left out.
pub fn layout<const N: usize>(
    headings: [&str; N],
    first_number: usize,
    rows: impl Iterator<Item = [String; N]>,
) -> String {
    let mut lines = vec![headings.map(str::to_owned)];
    lines.extend(rows);
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let is_used = |&column: &usize| lines[1..].iter().any(|line| !line[column].is_empty());
    let columns: Vec<(usize, usize)> = (0..N)
        .filter(is_used)
        .map(|column| (column, width(column).unwrap_or(0)))
        .collect();
    let mut text = String::new();
    for line in &lines {
        let padded = columns
            .iter()
            .map(|&(column, width)| match column < first_number {
                true => format!("{:width$}", line[column]),
                false => format!("{:>width$}", line[column]),
            });
        text += padded.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}

fn cells(row: &Row) -> [String; HEADINGS.len()] {
    let params = row.params.iter().map(|(name, value)| match value.as_str() {
        Some(text) => format!("{name} {text}"),
        None => format!("{name} {value}"),
    });
    [
        row.experiment.to_string(),
        row.transport.to_string(),
        params.collect::<Vec<_>>().join(", "),
        row.metric.to_string(),
        figure(row.median, &row.unit),
        figure(row.min, &row.unit),
        figure(row.max, &row.unit),
        row.baseline
            .map_or_else(String::new, |baseline| figure(baseline, &row.unit)),
        row.ratio
            .map_or_else(String::new, |ratio| format!("{ratio:.2}")),
        row.state
            .state()
            .map_or_else(String::new, |state| figure(state.ping_ns, "ns")),
        remark(row),
    ]
}

/// The reasons for which a reader should not rely on a row.
fn remark(row: &Row) -> String {
    let invalid = (!row.valid).then(|| "INVALID".to_owned());
    let reasons: Vec<String> = invalid.into_iter().chain(row.shortage()).collect();
    reasons.join(", ")
}

#[cfg(test)]
mod tests;
