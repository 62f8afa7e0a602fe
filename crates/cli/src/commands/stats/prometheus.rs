//! Readings in the text format of Prometheus: every counter as a counter, every histogram with
//! buckets at powers of two, in seconds.
//!
//! Names of a process's values are letters, digits and `_` (the reader refuses others), so they are
//! valid after the prefix.

use std::fmt::Write;

use dunlin_insight::{Endpoint, Group, Histogram, Snapshot};

/// The groups of an endpoint, with the text for their metrics' names.
const COUNTED: [(Group, &str, &str); 3] = [
    (Group::Counters, "", "Events at an endpoint since its start"),
    (
        Group::Transport,
        "transport_",
        "Counter of an endpoint's transport",
    ),
    (
        Group::OwnCounters,
        "",
        "Counter of the program at an endpoint",
    ),
];

/// Numbers of a transport that are not counts.
const SIZES: [&str; 1] = ["umem_bytes"];

/// The numbers that may fall.
const FALLING: [(Group, &str); 2] = [
    (Group::Gauges, "State of an endpoint"),
    (Group::OwnGauges, "State of the program at an endpoint"),
];

/// The whole text. The samples of a metric are adjacent, as the format requires.
pub(super) fn render(snapshots: &[Snapshot]) -> String {
    let mut text = String::new();
    let all: Vec<(&Snapshot, &Endpoint)> = snapshots
        .iter()
        .flat_map(|snapshot| snapshot.endpoints.iter().map(move |e| (snapshot, e)))
        .collect();
    process(&mut text, snapshots);
    let Some((_, first)) = all.first() else {
        return text;
    };
    for (group, infix, help) in COUNTED {
        for name in names(&all, group) {
            let (metric, kind) = match SIZES.contains(&name) {
                true => (format!("dunlin_{infix}{name}"), "gauge"),
                false => (format!("dunlin_{infix}{name}_total"), "counter"),
            };
            begin(&mut text, &metric, kind, help);
            samples(&mut text, &metric, &all, (group, name));
        }
    }
    let help = "Packets that were dropped and not answered";
    begin(&mut text, "dunlin_drops_total", "counter", help);
    for (snapshot, endpoint) in &all {
        for (reason, value) in endpoint.drops.iter() {
            let labels = format!("{},reason=\"{reason}\"", labels(snapshot, endpoint));
            sample(&mut text, "dunlin_drops_total", &labels, value);
        }
    }
    for (group, help) in FALLING {
        for name in names(&all, group) {
            let metric = format!("dunlin_{name}");
            begin(&mut text, &metric, "gauge", help);
            samples(&mut text, &metric, &all, (group, name));
        }
    }
    for (name, _) in &first.histograms {
        let metric = format!("dunlin_{name}_seconds");
        begin(
            &mut text,
            &metric,
            "histogram",
            "Times that an endpoint measured",
        );
        for (snapshot, endpoint) in &all {
            if let Some(times) = endpoint.histogram(name) {
                histogram(&mut text, &metric, &labels(snapshot, endpoint), times);
            }
        }
    }
    text
}

/// The names of a group's values. All endpoints that have the group have the same names, unless
/// their processes are of different releases or programs.
fn names<'a>(all: &[(&Snapshot, &'a Endpoint)], group: Group) -> Vec<&'a str> {
    let mut names = Vec::new();
    for (_, endpoint) in all {
        for (name, _) in endpoint.group(group).iter() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// One sample for each endpoint that has the value.
fn samples(
    text: &mut String,
    metric: &str,
    all: &[(&Snapshot, &Endpoint)],
    (group, name): (Group, &str),
) {
    for (snapshot, endpoint) in all {
        let mut values = endpoint.group(group).iter();
        if let Some((_, value)) = values.find(|(known, _)| *known == name) {
            sample(text, metric, &labels(snapshot, endpoint), value);
        }
    }
}

fn process(text: &mut String, snapshots: &[Snapshot]) {
    begin(
        text,
        "dunlin_start_time_seconds",
        "gauge",
        "When a nexus began",
    );
    for snapshot in snapshots {
        let seconds = snapshot.started_ns as f64 / 1e9;
        let labels = labels_of(snapshot);
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(text, "dunlin_start_time_seconds{{{labels}}} {seconds:.3}");
    }
    let Some(first) = snapshots.first() else {
        return;
    };
    for (name, _) in first.nexus.iter() {
        let metric = format!("dunlin_nexus_{name}_total");
        begin(text, &metric, "counter", "Counter of a control plane");
        for snapshot in snapshots {
            sample(
                text,
                &metric,
                &labels_of(snapshot),
                snapshot.nexus.get(name),
            );
        }
    }
}

fn begin(text: &mut String, metric: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {metric} {help}\n# TYPE {metric} {kind}");
}

fn sample(text: &mut String, metric: &str, labels: &str, value: u64) {
    let _ = writeln!(text, "{metric}{{{labels}}} {value}");
}

/// Writes every bucket, so that all readings have the same buckets, and the bucket for infinity.
fn histogram(text: &mut String, metric: &str, labels: &str, times: &Histogram) {
    let count = times.count();
    for (up_to, seen) in times.up_to_powers_of_two() {
        let seconds = up_to as f64 / 1e9;
        let _ = writeln!(text, "{metric}_bucket{{{labels},le=\"{seconds}\"}} {seen}");
    }
    let _ = writeln!(text, "{metric}_bucket{{{labels},le=\"+Inf\"}} {count}");
    let sum = times.sum() as f64 / 1e9;
    let _ = writeln!(text, "{metric}_sum{{{labels}}} {sum}");
    let _ = writeln!(text, "{metric}_count{{{labels}}} {count}");
}

fn labels(snapshot: &Snapshot, endpoint: &Endpoint) -> String {
    format!(
        "{},endpoint=\"{}\",transport=\"{}\"",
        labels_of(snapshot),
        endpoint.index,
        endpoint.transport
    )
}

fn labels_of(snapshot: &Snapshot) -> String {
    format!(
        "program=\"{}\",pid=\"{}\",nexus=\"{}\"",
        escaped(&snapshot.program),
        snapshot.pid,
        escaped(&snapshot.address)
    )
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}
