//! Pictures of the rows: the speed-up of each look-up over `plain`, by width.

use harness::draw::{Axis, Chart, Kind, Line, Picture, Point, Scale};
use harness::row::Row;
use serde_json::Value;

/// Look-ups; the index of each is its colour.
const LOOKUPS: [&str; 7] = [
    "pointer-chasing",
    "cuckoo",
    "ipv4",
    "ipv6",
    "mica",
    "btree",
    "aho-corasick",
];

/// Charts for look-ups alone and for look-ups in handlers, in Rust and in C. Charts without a line
/// are left out.
pub(super) fn charts(rows: &[Row]) -> Vec<Picture> {
    let rust = ["gopt", "hand", "batch"];
    let c = ["c-gopt", "c-hand", "c-batch"];
    let charts = [
        ("Look-ups alone", "tight", rust),
        ("Look-ups in a handler", "handler", rust),
        ("Look-ups alone, in C", "tight", c),
        ("Look-ups in a handler, in C", "handler", c),
    ];
    let chart = |(title, shape, forms): (&str, &str, [&str; 3])| Chart {
        title: title.to_owned(),
        x: Axis::new("look-ups at a time", "", Scale::Each),
        y: Axis::new("times as fast as plain", "", Scale::Log),
        lines: lines(rows, shape, forms),
    };
    let has_lines = |chart: &Chart| chart.lines.iter().any(|line| line.kind == Kind::Measured);
    let charts = charts.into_iter().map(chart).filter(has_lines);
    charts.map(Picture::Lines).collect()
}

fn lines(rows: &[Row], shape: &str, forms: [&str; 3]) -> Vec<Line> {
    let mut lines = Vec::new();
    for (colour, lookup) in LOOKUPS.into_iter().enumerate() {
        for form in forms {
            let wanted = rows.iter().filter(|row| {
                let is = |name: &str, value: &str| {
                    row.params.get(name).and_then(Value::as_str) == Some(value)
                };
                row.metric == "lookups_per_s"
                    && is("lookup", lookup)
                    && is("shape", shape)
                    && is("form", form)
            });
            let point = |row: &Row| {
                Some(Point {
                    valid: row.valid,
                    hint: format!("{lookup}, {form}: {:.2} times plain", row.ratio?),
                    ..Point::at(row.params.get("batch")?.as_f64()?, row.ratio?)
                })
            };
            let points: Vec<Point> = wanted.filter_map(point).collect();
            if !points.is_empty() {
                lines.push(Line {
                    name: format!("{lookup}, {form}"),
                    colour: Some(colour),
                    kind: match form.ends_with("hand") {
                        true => Kind::Baseline,
                        false => Kind::Measured,
                    },
                    points,
                    letter: None,
                });
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests;
