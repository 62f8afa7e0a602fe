//! Readings as JSON, one object a line. Times are in nanoseconds.

use dunlin_insight::{Endpoint, Group, Histogram, SessionRow, Snapshot, Values};
use serde_json::{Map, Value, json};

use super::rates::Between;

/// All values of a process.
pub(super) fn line(snapshot: &Snapshot) -> String {
    let endpoints: Vec<Value> = snapshot.endpoints.iter().map(endpoint).collect();
    let mut object = head(snapshot);
    object.insert("nexus".into(), values(&snapshot.nexus));
    object.insert("endpoints".into(), endpoints.into());
    format!("{}\n", Value::from(object))
}

/// The line of one process in the list of all processes.
pub(super) fn summary(pid: u32, snapshot: &Snapshot) -> String {
    let mut object = head(snapshot);
    object.insert("pid".into(), pid.into());
    object.insert("endpoints".into(), snapshot.endpoints.len().into());
    format!("{}\n", Value::from(object))
}

/// The work of an endpoint in an interval: growth of every counter.
pub(super) fn rates(between: &Between<'_>) -> String {
    let group = |group| {
        let names = between.after.group(group).iter();
        let grown = names.map(|(name, _)| (name.to_owned(), between.growth(group, name).into()));
        Value::from(grown.collect::<Map<String, Value>>())
    };
    let times = between.after.histograms.iter();
    let times = times.map(|(name, _)| (name.clone(), times_of(&between.histogram(name))));
    let object = json!({
        "pid": between.pid,
        "endpoint": between.after.index,
        "at_ns": between.after.written_ns,
        "seconds": between.seconds(),
        "counters": group(Group::Counters),
        "drops": group(Group::Drops),
        "transport_counters": group(Group::Transport),
        "now": values(&between.after.gauges),
        "program_counters": group(Group::OwnCounters),
        "program_now": values(&between.after.own_gauges),
        "times": times.collect::<Map<String, Value>>(),
    });
    format!("{object}\n")
}

fn head(snapshot: &Snapshot) -> Map<String, Value> {
    let head = json!({
        "pid": snapshot.pid,
        "program": snapshot.program,
        "address": snapshot.address,
        "release": snapshot.release,
        "started_ns": snapshot.started_ns,
    });
    head.as_object().cloned().unwrap_or_default()
}

fn endpoint(endpoint: &Endpoint) -> Value {
    let times = endpoint.histograms.iter();
    let times = times.map(|(name, histogram)| (name.clone(), times_of(histogram)));
    json!({
        "index": endpoint.index,
        "transport": endpoint.transport,
        "at_ns": endpoint.written_ns,
        "now": values(&endpoint.gauges),
        "program_counters": values(&endpoint.own_counters),
        "program_now": values(&endpoint.own_gauges),
        "counters": values(&endpoint.counters),
        "drops": values(&endpoint.drops),
        "transport_counters": values(&endpoint.transport_counters),
        "times": times.collect::<Map<String, Value>>(),
        "sessions": endpoint.sessions.iter().map(session).collect::<Vec<_>>(),
    })
}

/// The numbers of a session, and the place of its peer as far as it is known.
fn session(row: &SessionRow) -> Value {
    let mut object = values(&row.numbers);
    object["peer_nexus"] = row.place.nexus.map(|nexus| nexus.to_string()).into();
    object["peer_endpoint"] = row.place.endpoint.into();
    object
}

fn times_of(histogram: &Histogram) -> Value {
    json!({
        "count": histogram.count(),
        "mean_ns": histogram.mean(),
        "p50_ns": histogram.quantile(0.5),
        "p90_ns": histogram.quantile(0.9),
        "p99_ns": histogram.quantile(0.99),
        "p999_ns": histogram.quantile(0.999),
        "max_ns": histogram.longest(),
    })
}

fn values(values: &Values) -> Value {
    let values = values
        .iter()
        .map(|(name, value)| (name.to_owned(), value.into()));
    Value::from(values.collect::<Map<String, Value>>())
}
