//! Tables of a section: the published figures next to the measured ones, and all rows.

use std::fmt::Write as _;

use dunlin_bench::output::papers::{Beside, Published};
use serde_json::Value;

use harness::draw::escape;
use harness::figure::figure;
use harness::row::Row;

/// The published figures of an experiment, each with our figures from the rows that measure the
/// same quantity.
pub(super) fn published(out: &mut String, all: &[Published], rows: &[&Row]) {
    // Without rows, even the unit of the published figures is unknown.
    if all.is_empty() || rows.is_empty() {
        return;
    }
    *out += "<h3>Compared with published figures</h3>\n<div class=\"wide\"><table>\n<thead><tr>\
             <th>figure</th><th>here</th><th class=\"number\">published</th><th>for</th>\
             <th>source</th></tr></thead>\n<tbody>\n";
    // Published values of the same figure are adjacent, with the measured value next to all of
    // them.
    for same in all.chunk_by(|a, b| a.label() == b.label()) {
        let mut beside: Vec<&Row> = rows.to_vec();
        beside.retain(|row| same[0].is_beside(row));
        let beside: Vec<String> = beside.into_iter().map(|row| here(&same[0], row)).collect();
        let here = match beside.is_empty() {
            true => "<span class=\"none\">not measured</span>".to_owned(),
            false => beside.join("<br>"),
        };
        let unit = rows.iter().find(|row| row.metric == same[0].metric);
        let unit = unit.map_or("", |row| &*row.unit);
        let value = |it: &Published| match it.beside {
            Beside::Median => escape(&figure(it.value, unit)),
            Beside::Ratio => format!("{} ×", it.value),
        };
        let column = |of: &dyn Fn(&Published) -> String| -> String {
            same.iter().map(of).collect::<Vec<_>>().join("<br>")
        };
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{here}</td><td class=\"number\">{}</td><td>{}</td><td>{}</td></tr>",
            escape(&same[0].label()),
            column(&value),
            column(&|it| escape(it.what)),
            column(&|it| escape(it.source))
        );
    }
    *out += "</tbody></table></div>\n";
}

/// Every row, with all figures.
pub(super) fn all(out: &mut String, rows: &[&Row]) {
    let _ = writeln!(
        out,
        "<details><summary>All {} rows</summary>\n<div class=\"wide\"><table>\n<thead><tr>\
         <th>transport</th><th>parameters</th><th>metric</th><th class=\"number\">median</th>\
         <th class=\"number\">smallest</th><th class=\"number\">largest</th>\
         <th class=\"number\">rounds</th><th class=\"number\">baseline</th>\
         <th class=\"number\">ratio</th><th>compared with</th></tr></thead>\n<tbody>",
        rows.len()
    );
    for row in rows {
        let [median, min, max] = [row.median, row.min, row.max].map(|it| figure(it, &row.unit));
        let baseline = row
            .baseline
            .map(|it| figure(it, &row.unit))
            .unwrap_or_default();
        let ratio = row.ratio.map(|it| format!("{it:.2}")).unwrap_or_default();
        let numbers = [median, min, max, row.runs.to_string(), baseline, ratio];
        let class = if row.valid { "" } else { " class=\"invalid\"" };
        let doubt = match doubts(row).as_str() {
            "" => String::new(),
            doubts => format!(" ({doubts})"),
        };
        let _ = write!(
            out,
            "<tr{class}><td>{}</td><td>{}</td><td>{}{doubt}</td>",
            escape(&row.transport),
            escape(&params(row)),
            escape(&row.metric)
        );
        for number in numbers {
            let _ = write!(out, "<td class=\"number\">{}</td>", escape(&number));
        }
        let name = row.baseline_name.as_deref().unwrap_or_default();
        let _ = writeln!(out, "<td>{}</td></tr>", escape(name));
    }
    *out += "</tbody></table></div></details>\n";
}

/// The figure that was measured here.
fn here(published: &Published, row: &Row) -> String {
    let value = match (published.beside, row.ratio) {
        (Beside::Ratio, Some(ratio)) => format!("{ratio:.2} ×"),
        (Beside::Ratio, None) => "no baseline".to_owned(),
        (Beside::Median, Some(ratio)) => {
            format!("{} ({ratio:.2} × baseline)", figure(row.median, &row.unit))
        }
        (Beside::Median, None) => figure(row.median, &row.unit),
    };
    let others = row.params.iter().filter(|(name, _)| {
        !published.all_params().any(|(it, _)| it == *name)
            && !matches!(name.as_str(), "inflight" | "packing")
    });
    let others: String = others
        .map(|(name, value)| format!(", {}", named(name, value)))
        .collect();
    let doubt = match doubts(row).as_str() {
        "" => String::new(),
        doubts => format!(", {doubts}"),
    };
    escape(&format!("{}{others}: {value}{doubt}", row.transport))
}

/// The reasons for which a reader should not rely on a row.
pub(super) fn doubts(row: &Row) -> String {
    let invalid = (!row.valid).then(|| "invalid".to_owned());
    let doubts: Vec<String> = invalid.into_iter().chain(row.shortage()).collect();
    doubts.join(", ")
}

fn params(row: &Row) -> String {
    let params = row.params.iter().map(|(name, value)| named(name, value));
    params.collect::<Vec<_>>().join(", ")
}

fn named(name: &str, value: &Value) -> String {
    match value {
        Value::String(text) => format!("{name} {text}"),
        value => format!("{name} {value}"),
    }
}
