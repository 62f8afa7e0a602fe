//! Tables of text, and numbers in a readable form.

use std::fmt::Write;

/// Rows of cells in columns.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    rows: Vec<Vec<String>>,
    /// Number of columns from the left that hold words; the others hold numbers and are aligned to
    /// the right.
    words: usize,
}

impl Columns {
    pub(crate) fn new(words: usize, headings: &[&str]) -> Self {
        let headings = headings.iter().map(|&heading| heading.to_owned());
        Self {
            rows: vec![headings.collect()],
            words,
        }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Every line with its end; nothing without rows.
    pub(crate) fn render(&self, indent: &str) -> String {
        let mut text = String::new();
        if self.rows.len() < 2 {
            return text;
        }
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.rows[0].len()).map(width).collect();
        for row in &self.rows {
            let mut line = indent.to_owned();
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                let gap = if column == 0 { "" } else { "  " };
                // Writing to a string cannot fail.
                let _ = match column < self.words {
                    true => write!(line, "{gap}{cell:width$}"),
                    false => write!(line, "{gap}{cell:>width$}"),
                };
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}

/// A number with its thousands separated.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place != 0 && (digits.len() - place).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// Nanoseconds with three digits and a fitting unit.
pub(crate) fn time(ns: u64) -> String {
    const UNITS: [(f64, &str); 4] = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
    if ns == 0 {
        return "-".into();
    }
    // A float has 53 bits, and three digits are shown.
    let ns = ns as f64;
    let unit = UNITS.iter().find(|(unit, _)| ns >= *unit);
    let (unit, name) = unit.unwrap_or(&(1.0, "ns"));
    format!("{} {name}", three_digits(ns / unit))
}

/// A rate, with three digits and a prefix.
pub(crate) fn rate(per_second: f64) -> String {
    const UNITS: [(f64, &str); 3] = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    match UNITS.iter().find(|(unit, _)| per_second >= *unit) {
        Some((unit, name)) => format!("{}{name}", three_digits(per_second / unit)),
        None if per_second == 0.0 => "0".into(),
        None => three_digits(per_second),
    }
}

fn three_digits(number: f64) -> String {
    match number {
        100.0.. => format!("{number:.0}"),
        10.0.. => format!("{number:.1}"),
        _ => format!("{number:.2}"),
    }
}
