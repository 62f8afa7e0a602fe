//! One reading of a process as readable tables.

use std::fmt::Write;

use dunlin_insight::{Endpoint, SessionRow, Snapshot, Values, Whereabouts};

use super::columns::{Columns, count, rate, time};

/// All values of a process. `all`: also counters that are 0.
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

/// When the process last published.
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
    text += &numbers("program, now", &endpoint.own_gauges, all);
    text += &numbers("program", &endpoint.own_counters, all);
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
    let mut headings = SESSION_COLUMNS.map(|(heading, ..)| heading);
    headings[0] = "sessions";
    let mut columns = Columns::new(0, &headings);
    for session in &endpoint.sessions {
        columns.row(session_cells(session));
    }
    columns.render("  ")
}

/// A column: its heading, its usual width, and the text of a row.
pub(crate) type SessionColumn = (&'static str, u16, fn(&SessionRow) -> String);

/// The columns of a session, the most important first.
pub(crate) const SESSION_COLUMNS: [SessionColumn; 10] = [
    ("session", 7, |session| session.get("number").to_string()),
    ("with", 23, |session| place(&session.place)),
    ("in flight", 9, |session| {
        part(session, "in_flight", "window")
    }),
    ("rtt", 7, |session| time(session.get("rtt_ns"))),
    ("rtt min", 7, |session| time(session.get("rtt_min_ns"))),
    ("rate", 8, |session| match session.get("rate") {
        0 => "line".into(),
        // Three digits are shown.
        per_second => format!("{}B/s", rate(per_second as f64)),
    }),
    ("waiting", 7, |session| session.get("backlog").to_string()),
    ("credits", 7, |session| {
        part(session, "credits", "credit_limit")
    }),
    ("peer", 5, |session| session.get("peer").to_string()),
    ("remote", 6, |session| session.get("remote").to_string()),
];

/// A session's cells, in the order of the columns.
pub(crate) fn session_cells(session: &SessionRow) -> Vec<String> {
    SESSION_COLUMNS
        .iter()
        .map(|(.., cell)| cell(session))
        .collect()
}

/// The address of a nexus and, after a slash, the index of its endpoint, if they are known.
fn place(place: &Whereabouts) -> String {
    let nexus = place.nexus.map_or("?".into(), |nexus| nexus.to_string());
    match place.endpoint {
        Some(endpoint) => format!("{nexus}/{endpoint}"),
        None => nexus,
    }
}

fn part(session: &SessionRow, of: &str, all: &str) -> String {
    format!("{}/{}", session.get(of), session.get(all))
}
