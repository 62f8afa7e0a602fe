//! Rows as charts. A transport's lines have the same colour everywhere; baselines are dashed, and
//! diamonds are figures of papers. Experiments build their charts with these functions.

use serde_json::Value;

use super::papers::{Beside, Published};
use harness::draw::{Axis, Bar, Bars, Chart, Kind, Line, Picture, Point};
use harness::figure;
use harness::row::Row;

/// Transports in the order of legends; a transport's index is its colour.
pub(crate) const TRANSPORTS: [&str; 6] = ["shm", "auto", "udp", "tcp", "none", "sim"];

/// The colour of a transport: its index in [`TRANSPORTS`].
pub(crate) fn colour(transport: &str) -> Option<usize> {
    TRANSPORTS.iter().position(|it| *it == transport)
}

/// Selects the rows of lines, and the parameter on their x axis.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) metric: &'a str,
    pub(crate) x: &'a str,
    /// Parameters that rows must have.
    pub(crate) params: &'a [(&'a str, &'a str)],
}

impl Wanted<'_> {
    /// True if this row is selected.
    pub(crate) fn is(&self, row: &Row) -> bool {
        let has = |&(name, value): &(&str, &str)| word(row, name).as_deref() == Some(value);
        row.metric == self.metric && self.params.iter().all(has)
    }

    /// The experiment's `published` figures that belong to these rows, with one line for each
    /// quantity and machine.
    pub(crate) fn published(&self, published: &[Published], beside: Beside) -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
        for it in published {
            let is = it.metric == self.metric
                && it.beside == beside
                && self.params.iter().all(|(name, value)| it.says(name, value));
            let Some(x) = it.number(self.x).filter(|_| is) else {
                continue;
            };
            let point = Point {
                hint: format!("{} ({})", it.what, it.source),
                ..Point::at(x, it.value)
            };
            match lines.iter_mut().find(|line| line.name == it.what) {
                Some(line) => line.points.push(point),
                None => lines.push(Line {
                    name: it.what.to_owned(),
                    colour: None,
                    kind: Kind::Published,
                    points: vec![point],
                    letter: None,
                }),
            }
        }
        if let [_, _, ..] = lines[..] {
            for (line, letter) in lines.iter_mut().zip('a'..='z') {
                line.letter = Some(letter.to_string());
            }
        }
        lines
    }
}

impl Published {
    /// True if the figure was measured with this value of the parameter, or does not have the
    /// parameter.
    fn says(&self, name: &str, value: &str) -> bool {
        let number = self.number(name).map(|number| number.to_string());
        let word = self.word(name).map(str::to_owned);
        number.or(word).is_none_or(|it| it == value)
    }
}

/// A parameter of a row as text.
pub(crate) fn word(row: &Row, name: &str) -> Option<String> {
    row.params.get(name).map(word_of)
}

/// A parameter as text.
pub(crate) fn word_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A remark after a ratio of two rows: empty if they may be compared.
pub(crate) fn unlike(one: &Row, other: &Row) -> &'static str {
    match one.valid && other.valid && one.state.is_like(&other.state) {
        true => "",
        false => " (not both valid in one state of the machine)",
    }
}

/// For each transport, the line of its medians and the line of its baseline.
pub(crate) fn by_transport(rows: &[&Row], wanted: Wanted<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    for transport in TRANSPORTS {
        let of = |row: &&&Row| row.transport == transport && wanted.is(row);
        let rows: Vec<&Row> = rows.iter().filter(of).copied().collect();
        lines.push(measured_line(transport, colour(transport), &rows, wanted.x));
        // `auto` has the baseline of `shm`.
        if transport != "auto" {
            lines.push(baseline_line(colour(transport), &rows, wanted.x));
        }
    }
    lines.retain(|line| !line.points.is_empty());
    lines
}

/// A line of medians with their spread.
pub(crate) fn measured_line(name: &str, colour: Option<usize>, rows: &[&Row], x: &str) -> Line {
    let point = |row: &&Row| {
        Some(Point {
            x: row.params.get(x)?.as_f64()?,
            y: row.median,
            spread: Some((row.min, row.max)),
            valid: row.valid,
            hint: hint(row),
        })
    };
    line(name, colour, Kind::Measured, rows.iter().filter_map(point))
}

/// A line of the rows' baselines.
pub(crate) fn baseline_line(colour: Option<usize>, rows: &[&Row], x: &str) -> Line {
    let point = |row: &&Row| Some(Point::at(row.params.get(x)?.as_f64()?, row.baseline?));
    let name = rows.iter().find_map(|row| row.baseline_name.as_deref());
    let points = rows.iter().filter_map(point);
    line(name.unwrap_or_default(), colour, Kind::Baseline, points)
}

/// A line of ratios to the baseline.
pub(crate) fn ratio_line(name: &str, colour: Option<usize>, rows: &[&Row], x: &str) -> Line {
    let point = |row: &&Row| {
        Some(Point {
            valid: row.valid,
            hint: hint(row),
            ..Point::at(row.params.get(x)?.as_f64()?, row.ratio?)
        })
    };
    line(name, colour, Kind::Measured, rows.iter().filter_map(point))
}

fn line(
    name: &str,
    colour: Option<usize>,
    kind: Kind,
    points: impl Iterator<Item = Point>,
) -> Line {
    let mut points: Vec<Point> = points.collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    Line {
        name: name.to_owned(),
        colour,
        kind,
        points,
        letter: None,
    }
}

/// Everything about a row that a reader may want to know.
fn hint(row: &Row) -> String {
    let [median, min, max] = [row.median, row.min, row.max].map(|it| figure::figure(it, &row.unit));
    let params = row.params.iter().map(|(name, value)| match value {
        Value::String(text) => format!(", {name} {text}"),
        value => format!(", {name} {value}"),
    });
    let params: String = params.collect();
    let mut text = format!("{}{params}: {median} ({min} to {max})", row.transport);
    if let (Some(ratio), Some(name)) = (row.ratio, &row.baseline_name) {
        text += &format!(", {ratio:.2} × {name}");
    }
    if !row.valid {
        text += "; invalid: the machine was disturbed";
    }
    text
}

/// A bar for a row.
pub(crate) fn bar(row: &Row, name: String, colour: Option<usize>) -> Bar {
    Bar {
        name,
        colour,
        value: row.median,
        spread: Some((row.min, row.max)),
        valid: row.valid,
        baseline: row.baseline,
        published: None,
    }
}

/// A chart of lines.
pub(crate) fn chart(title: &str, x: Axis, y: Axis, lines: Vec<Line>) -> Picture {
    let title = title.to_owned();
    Picture::Lines(Chart { title, x, y, lines })
}

/// A chart of bars with one baseline for all.
pub(crate) fn bars(title: &str, axis: Axis, baseline: &str, bars: Vec<Bar>) -> Picture {
    Picture::Bars(Bars {
        title: title.to_owned(),
        axis,
        baseline: baseline.to_owned(),
        published: String::new(),
        bars,
    })
}
