//! One reading of a process as tables for people.

use std::fmt::Write;

use dunlin_nexus::insight::{Endpoint, Snapshot, Values};

use super::columns::{Columns, count, rate, time};

/// Everything that a process shows. `all`: counters that are 0 as well.
pub(super) fn render(snapshot: &Snapshot, all: bool) -> String {
    let mut text = format!(
        "process {} ({}), nexus at {}, dunlin {}, up {}\n",
        snapshot.pid,
        snapshot.program,
        snapshot.address,
        snapshot.release,
        time(newest(snapshot).saturating_sub(snapshot.started_ns)),
    );
    text += &numbers("control plane", &snapshot.nexus, all);
    for endpoint in &snapshot.endpoints {
        text += &endpoint_tables(endpoint, all);
    }
    if snapshot.endpoints.is_empty() {
        text += "no endpoints\n";
    }
    text
}

/// One line for each process.
pub(super) fn list(snapshots: &[(u32, Snapshot)]) -> String {
    let mut columns = Columns::new(
        3,
        &[
            "PROGRAM",
            "NEXUS",
            "RELEASE",
            "PID",
            "UP",
            "ENDPOINTS",
            "SESSIONS",
            "REQUESTS OUT",
            "REQUESTS IN",
        ],
    );
    for (pid, snapshot) in snapshots {
        let sum = |value: &dyn Fn(&Endpoint) -> u64| -> String {
            count(snapshot.endpoints.iter().map(value).sum())
        };
        columns.row(vec![
            snapshot.program.clone(),
            snapshot.address.clone(),
            snapshot.release.clone(),
            pid.to_string(),
            time(newest(snapshot).saturating_sub(snapshot.started_ns)),
            snapshot.endpoints.len().to_string(),
            sum(&|endpoint| endpoint.gauges.get("sessions")),
            sum(&|endpoint| endpoint.counters.get("requests_sent")),
            sum(&|endpoint| endpoint.counters.get("requests_received")),
        ]);
    }
    columns.render("")
}

/// When the process wrote last.
fn newest(snapshot: &Snapshot) -> u64 {
    let written = snapshot
        .endpoints
        .iter()
        .map(|endpoint| endpoint.written_ns);
    written.max().unwrap_or(snapshot.started_ns)
}

fn endpoint_tables(endpoint: &Endpoint, all: bool) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "\nendpoint {} ({}), {} sessions",
        endpoint.index,
        endpoint.transport,
        count(endpoint.gauges.get("sessions")),
    );
    text += &numbers("now", &endpoint.gauges, all);
    text += &numbers("counters", &endpoint.counters, all);
    text += &numbers("drops", &endpoint.drops, all);
    text += &numbers("transport", &endpoint.transport_counters, all);
    text += &times(endpoint);
    text += &sessions(endpoint);
    text
}

/// A heading and one line for each number.
fn numbers(heading: &str, values: &Values, all: bool) -> String {
    let mut columns = Columns::new(1, &[heading, ""]);
    for (name, value) in values.iter().filter(|(_, value)| all || *value != 0) {
        columns.row(vec![format!("  {name}"), count(value)]);
    }
    columns.render("  ")
}

fn times(endpoint: &Endpoint) -> String {
    let headings = [
        "times", "count", "mean", "50 %", "90 %", "99 %", "99.9 %", "longest",
    ];
    let mut columns = Columns::new(1, &headings);
    for (name, histogram) in &endpoint.histograms {
        if histogram.count() == 0 {
            continue;
        }
        let mut row = vec![format!("  {name}"), count(histogram.count())];
        row.push(time(histogram.mean()));
        row.extend([0.5, 0.9, 0.99, 0.999].map(|part| time(histogram.quantile(part))));
        row.push(time(histogram.longest()));
        columns.row(row);
    }
    columns.render("  ")
}

fn sessions(endpoint: &Endpoint) -> String {
    let headings = [
        "sessions",
        "peer",
        "remote",
        "in flight",
        "waiting",
        "credits",
        "rtt",
        "rtt min",
        "rate",
    ];
    let mut columns = Columns::new(0, &headings);
    for session in &endpoint.sessions {
        columns.row(session_cells(session));
    }
    columns.render("  ")
}

/// A session's cells, in the order of the headings above.
pub(crate) fn session_cells(session: &Values) -> Vec<String> {
    let per_second = session.get("rate");
    vec![
        session.get("number").to_string(),
        session.get("peer").to_string(),
        session.get("remote").to_string(),
        format!("{}/{}", session.get("in_flight"), session.get("window")),
        session.get("backlog").to_string(),
        format!("{}/{}", session.get("credits"), session.get("credit_limit")),
        time(session.get("rtt_ns")),
        time(session.get("rtt_min_ns")),
        match per_second {
            0 => "line".into(),
            // Three digits are shown.
            _ => format!("{}B/s", rate(per_second as f64)),
        },
    ]
}
