//! Rows as charts, for each experiment those that say most. Lines of a transport have the same
//! colour everywhere; baselines are dashed, and diamonds are what the papers have published.

mod measured;
mod simulated;

use serde_json::Value;

use super::papers::{Beside, PUBLISHED, Published};
use harness::draw::{self, Axis, Bar, Bars, Chart, Kind, Line, Picture, Point};
use harness::figure;
use harness::row::Row;

/// Transports in the order of legends; the place of each is its colour.
const TRANSPORTS: [&str; 6] = ["shm", "auto", "udp", "tcp", "none", "sim"];

/// A picture of all that can be drawn of these rows.
pub(super) fn draw(rows: &[Row]) -> String {
    let mut experiments: Vec<&str> = Vec::new();
    for row in rows {
        if !experiments.contains(&&*row.experiment) {
            experiments.push(&row.experiment);
        }
    }
    let charts: Vec<Picture> = experiments
        .into_iter()
        .flat_map(|it| of(it, rows))
        .collect();
    draw::sheet(&charts, 2)
}

/// The charts of an experiment; those without a line are left out.
pub(crate) fn of(experiment: &str, rows: &[Row]) -> Vec<Picture> {
    let rows: Vec<&Row> = rows
        .iter()
        .filter(|row| row.experiment == experiment)
        .collect();
    let rows = &rows[..];
    let charts = match experiment {
        "latency" => measured::latency(rows),
        "rate" => measured::rate(rows),
        "bandwidth" => measured::bandwidth(rows),
        "mixed" => measured::mixed(rows),
        "sessions" => measured::sessions(rows),
        "idle" => measured::idle(rows),
        "slow-handler" => measured::slow_handler(rows),
        "faces" => measured::faces(rows),
        "loss" => simulated::loss(rows),
        "reorder" => simulated::reorder(rows),
        "incast" => simulated::incast(rows),
        "incast_background" => simulated::incast_background(rows),
        "cluster" => simulated::cluster(rows),
        _ => Vec::new(),
    };
    let has_lines = |picture: &Picture| match picture {
        Picture::Lines(chart) => chart.lines.iter().any(|line| line.kind == Kind::Measured),
        Picture::Bars(bars) => !bars.bars.is_empty(),
    };
    charts.into_iter().filter(has_lines).collect()
}

/// The place of a transport.
fn colour(transport: &str) -> Option<usize> {
    TRANSPORTS.iter().position(|it| *it == transport)
}

/// Which rows become lines, and by what they are put in order.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    metric: &'a str,
    x: &'a str,
    /// Parameters that rows must have.
    params: &'a [(&'a str, &'a str)],
}

impl Wanted<'_> {
    fn is(&self, row: &Row) -> bool {
        let has = |&(name, value): &(&str, &str)| word(row, name).as_deref() == Some(value);
        row.metric == self.metric && self.params.iter().all(has)
    }

    /// The published figures that belong to them, one line for each thing that was measured.
    fn published(&self, experiment: &str, beside: Beside) -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
        for it in PUBLISHED {
            let is = it.experiment == experiment
                && it.metric == self.metric
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
    /// It was measured with this parameter, or says nothing of it.
    fn says(&self, name: &str, value: &str) -> bool {
        let number = self.number(name).map(|number| number.to_string());
        let word = self.word(name).map(str::to_owned);
        number.or(word).is_none_or(|it| it == value)
    }
}

/// A parameter of a row as text.
fn word(row: &Row, name: &str) -> Option<String> {
    Some(match row.params.get(name)? {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    })
}

/// For each transport the line of its medians, and that of its baseline.
fn by_transport(rows: &[&Row], wanted: Wanted<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    for transport in TRANSPORTS {
        let of = |row: &&&Row| row.transport == transport && wanted.is(row);
        let rows: Vec<&Row> = rows.iter().filter(of).copied().collect();
        lines.push(measured_line(transport, colour(transport), &rows, wanted.x));
        // The baseline of auto is that of shm.
        if transport != "auto" {
            lines.push(baseline_line(colour(transport), &rows, wanted.x));
        }
    }
    lines.retain(|line| !line.points.is_empty());
    lines
}

/// Medians with their spread.
fn measured_line(name: &str, colour: Option<usize>, rows: &[&Row], x: &str) -> Line {
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

/// What they were compared with.
fn baseline_line(colour: Option<usize>, rows: &[&Row], x: &str) -> Line {
    let point = |row: &&Row| Some(Point::at(row.params.get(x)?.as_f64()?, row.baseline?));
    let name = rows.iter().find_map(|row| row.baseline_name.as_deref());
    let points = rows.iter().filter_map(point);
    line(name.unwrap_or_default(), colour, Kind::Baseline, points)
}

/// How many times the baseline.
fn ratio_line(name: &str, colour: Option<usize>, rows: &[&Row], x: &str) -> Line {
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

/// All of a row that a reader may want to know.
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

/// A bar of a row.
fn bar(row: &Row, name: String, colour: Option<usize>) -> Bar {
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
fn chart(title: &str, x: Axis, y: Axis, lines: Vec<Line>) -> Picture {
    let title = title.to_owned();
    Picture::Lines(Chart { title, x, y, lines })
}

/// Bars, whose baseline is the same for all.
fn bars(title: &str, axis: Axis, baseline: &str, bars: Vec<Bar>) -> Picture {
    Picture::Bars(Bars {
        title: title.to_owned(),
        axis,
        baseline: baseline.to_owned(),
        published: String::new(),
        bars,
    })
}

#[cfg(test)]
mod tests;
