//! The results for people: one table, a line for each peer at each size.

use std::fmt::Write;
use std::fs;

use crate::aims::{self, Figure, Reached};
use crate::args::Name;
use crate::plan::{MANY, Results};
use crate::row::Row;

/// The table, with the failures below it.
pub(crate) fn render(results: &Results, aims: bool) -> String {
    let mut text = heading(results);
    let mut size = None;
    let mut rows = results.rows.as_slice();
    while let Some(first) = rows.first() {
        let is_same =
            |row: &Row| row.transport == first.transport && row.params.size == first.params.size;
        let end = rows
            .iter()
            .position(|row| !is_same(row))
            .unwrap_or(rows.len());
        if size.replace(first.params.size) != Some(first.params.size) {
            let title = format!("{} B each way", first.params.size);
            let _ = writeln!(
                text,
                "\n{title:<24}{:>12}{:>13}{:>12}{:>22}{:>12}{:>11}",
                "median", "p99", "calls/s", "(least to most)", "CPU s/M", "sys/call"
            );
        }
        line(&mut text, &rows[..end]);
        rows = &rows[end..];
    }
    if aims {
        text += &aims::render(|name, figure| reached(&results.rows, name, figure));
    }
    for failure in &results.failures {
        let _ = writeln!(text, "not measured: {failure}");
    }
    text
}

/// The figure of a peer for its aims.
fn reached(rows: &[Row], name: Name, figure: Figure) -> Option<Reached> {
    let metric = match figure {
        Figure::Median => "rtt_p50",
        Figure::Rate => "rpc_per_s",
        Figure::Cpu => "cpu_per_million",
        Figure::SystemCalls => "system_calls",
    };
    let name = name.text();
    let is_it =
        |row: &&Row| row.transport == name && row.metric == metric && row.params.size == aims::SIZE;
    let row = rows.iter().find(is_it)?;
    Some(Reached {
        median: row.median,
        valid_rounds: if row.valid { row.runs } else { 0 },
    })
}

fn heading(results: &Results) -> String {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or("unknown", |text| text.trim_start_matches([' ', '\t', ':']));
    let count = cpus
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    format!(
        "{count} processors, {model}; load {}; medians, complete rounds: {}\n\
         round trips with one call in flight; rate and processor time of both sides with {MANY}\n",
        load.split_whitespace().next().unwrap_or("unknown"),
        results.rounds
    )
}

/// A line about one peer at one size.
fn line(text: &mut String, rows: &[Row]) {
    let find = |metric: &str| rows.iter().find(|row| row.metric == metric);
    let time = |metric| find(metric).map_or_else(|| "-".to_owned(), |row| micros(row.median));
    let rate = find("rpc_per_s");
    let (calls, range) = rate.map_or_else(Default::default, |row| {
        (
            count(row.median),
            format!("({} to {})", count(row.min), count(row.max)),
        )
    });
    let cpu = find("cpu_per_million");
    let cpu = cpu.map_or_else(|| "-".to_owned(), |row| format!("{:.2}", row.median));
    let system_calls = find("system_calls");
    let system_calls =
        system_calls.map_or_else(|| "-".to_owned(), |row| format!("{:.3}", row.median));
    let _ = write!(
        text,
        "{:<24}{:>12}{:>13}{calls:>12}{range:>22}{cpu:>12}{system_calls:>11}",
        rows[0].transport,
        time("rtt_p50"),
        time("rtt_p99")
    );
    if let Some(inflight) = rate.map(|row| row.params.inflight).filter(|it| *it != MANY) {
        let _ = write!(text, "  {inflight} in flight");
    }
    let lost: f64 = rows
        .iter()
        .filter(|row| row.metric == "lost")
        .map(|row| row.max)
        .sum();
    if lost > 0.0 {
        let _ = write!(text, "  up to {lost} sent again");
    }
    if rows.iter().any(|row| !row.valid) {
        text.push_str("  INVALID");
    }
    text.push('\n');
}

fn micros(ns: f64) -> String {
    format!("{:.2} µs", ns / 1e3)
}

fn count(value: f64) -> String {
    match value {
        _ if value >= 1e6 => format!("{:.2} M", value / 1e6),
        _ if value >= 1e4 => format!("{:.0} k", value / 1e3),
        _ if value >= 1e3 => format!("{:.1} k", value / 1e3),
        _ => format!("{value:.0}"),
    }
}
