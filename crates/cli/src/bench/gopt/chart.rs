//! Pictures of the rows: how much faster each look-up is than `plain`, by width.

use plotters::prelude::RGBColor;
use serde_json::Value;

use crate::bench::plot::{Chart, Line};
use crate::bench::row::Row;

/// Look-ups and their colours.
const LOOKUPS: [(&str, RGBColor); 7] = [
    ("pointer-chasing", RGBColor(31, 119, 180)),
    ("cuckoo", RGBColor(255, 127, 14)),
    ("ipv4", RGBColor(44, 160, 44)),
    ("ipv6", RGBColor(214, 39, 40)),
    ("mica", RGBColor(148, 103, 189)),
    ("btree", RGBColor(140, 86, 75)),
    ("aho-corasick", RGBColor(127, 127, 127)),
];

/// A chart for look-ups alone and one for those in handlers, in Rust and in C.
pub(in crate::bench) fn charts(rows: &[Row]) -> Vec<Chart> {
    let chart = |title, shape, forms| Chart {
        title,
        x_label: "look-ups at a time",
        y_label: "speed-up over plain",
        lines: lines(rows, shape, forms),
    };
    vec![
        chart("Look-ups alone", "tight", ["gopt", "hand", "batch"]),
        chart(
            "Look-ups in a handler",
            "handler",
            ["gopt", "hand", "batch"],
        ),
        chart(
            "Look-ups alone, in C",
            "tight",
            ["c-gopt", "c-hand", "c-batch"],
        ),
        chart(
            "Look-ups in a handler, in C",
            "handler",
            ["c-gopt", "c-hand", "c-batch"],
        ),
    ]
}

fn lines(rows: &[Row], shape: &str, forms: [&str; 3]) -> Vec<Line> {
    let mut lines = Vec::new();
    for (lookup, colour) in LOOKUPS {
        for form in forms {
            let wanted = rows.iter().filter(|row| {
                let is = |name: &str, value: &str| {
                    row.params.get(name).and_then(Value::as_str) == Some(value)
                };
                row.experiment == "gopt"
                    && row.metric == "lookups_per_s"
                    && is("lookup", lookup)
                    && is("shape", shape)
                    && is("form", form)
            });
            let point = |row: &Row| Some((row.params.get("batch")?.as_f64()?, row.ratio?));
            let points: Vec<(f64, f64)> = wanted.filter_map(point).collect();
            if !points.is_empty() {
                lines.push(Line {
                    name: format!("{lookup}, {form}"),
                    colour,
                    is_baseline: form.ends_with("hand"),
                    points,
                });
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests;
