//! `cluster`: each of the paper's 100 hosts sends small RPCs to all others; a host has 1 to 10
//! endpoints (eRPC §6.3, figure 5).

use std::time::Duration;

use serde_json::Value;

use crate::harness::case::Case;
use crate::harness::experiment::{Experiment, Section};
use crate::harness::probe::Metric;
use crate::harness::scenario::Simulated;
use crate::output::chart::{Wanted, chart, measured_line};
use crate::output::papers::{Beside, Param, Published};
use dunlin_scenario::{Done, micros};
use harness::draw::{Axis, Line, Picture, Scale};
use harness::row::Row;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "cluster",
    about: "Small RPCs among 100 simulated hosts with up to two million sides of sessions; \
            not part of `all`",
    cases: |_| Ok(cases()),
    usual_time: Duration::from_secs(1200 * 1000),
    usual_runs: 1,
    is_in_all: false,
    section: Some(Section {
        title: "Cluster",
        text: "32-byte RPCs from all hosts to all others, 100 simulated hosts in five racks, with \
               up to two million sides of sessions. The costs of the simulated CPU are set so that \
               one thread reaches the rate of the paper.",
    }),
    charts,
    published: PUBLISHED,
    ..Experiment::BASE
};

/// Figures of the paper.
const PUBLISHED: &[Published] = &[
    published(
        "latency_p50_us",
        1.0,
        12.7,
        "eRPC, CX4, 100 nodes",
        "eRPC, figure 5",
    ),
    published(
        "latency_p9999_us",
        10.0,
        700.0,
        "eRPC, CX4 (below this)",
        "eRPC, figure 5",
    ),
    published(
        "rpc_per_s_per_host",
        10.0,
        12.3e6,
        "eRPC, CX4, 100 nodes",
        "eRPC, §6.3",
    ),
];

const CLUSTER: (&str, &str) = (
    "scenarios/cluster.toml",
    include_str!("../../../../scenarios/cluster.toml"),
);

/// Numbers of endpoints of a host, each with the approximate seconds of a run.
const ENDPOINTS: [(u32, u64); 4] = [(1, 100), (2, 200), (5, 350), (10, 400)];

const METRICS: [Metric; 6] = [
    Metric::alone("rpc_per_s_per_host", "1/s"),
    Metric::alone("latency_p50_us", "us"),
    Metric::alone("latency_p99_us", "us"),
    Metric::alone("latency_p9999_us", "us"),
    Metric::alone("resent", ""),
    Metric::alone("failed", ""),
];

/// One case for each number of endpoints.
pub(crate) fn cases() -> Vec<Case> {
    let case = |(endpoints, seconds): (u32, u64)| {
        let params = [("endpoints", Value::from(endpoints))];
        let sets = [("load.0.endpoints", i64::from(endpoints).into())];
        let subject = Simulated::new(CLUSTER.0, CLUSTER.1, &sets)
            .reading(&METRICS, values)
            .taking(seconds);
        Case::new("cluster", "sim", &params, subject)
    };
    ENDPOINTS.into_iter().map(case).collect()
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
fn values(done: &Done) -> Vec<f64> {
    let load = &done.report.loads[0];
    let steady = &load.steady;
    vec![
        steady.rpcs_per_host,
        micros(steady.latency.p50),
        micros(steady.latency.p99),
        micros(steady.latency.p9999),
        steady.resent_share(),
        (steady.failed + load.opening.failed) as f64,
    ]
}

fn charts(rows: &[&Row]) -> Vec<Picture> {
    let x = || Axis::new("endpoints of a host, on 100 hosts", "", Scale::Each);
    let of = |metric, name: &str, colour| {
        let wanted = Wanted {
            metric,
            x: "endpoints",
            params: &[],
        };
        let of: Vec<&Row> = rows.iter().filter(|row| wanted.is(row)).copied().collect();
        let mut lines = vec![measured_line(name, Some(colour), &of, wanted.x)];
        // One chart has several published values, so each takes the colour of its neighbouring
        // line.
        let published = wanted.published(PUBLISHED, Beside::Median).into_iter();
        lines.extend(published.map(|line| Line {
            colour: Some(colour),
            ..line
        }));
        lines.retain(|line| !line.points.is_empty());
        lines
    };
    let latency = [
        ("latency_p50_us", "median"),
        ("latency_p99_us", "99th percentile"),
        ("latency_p9999_us", "99.99th percentile"),
    ];
    let latency = latency.into_iter().enumerate();
    let latency = latency.flat_map(|(colour, (metric, name))| of(metric, name, colour));
    vec![
        chart(
            "Cluster: round trip of 32-byte RPCs, 60 in flight a thread",
            x(),
            Axis::new("round trip", "us", Scale::Log),
            latency.collect(),
        ),
        chart(
            "Cluster: rate of a host",
            x(),
            Axis::new("RPCs per second", "1/s", Scale::Linear),
            of("rpc_per_s_per_host", "sim", 5),
        ),
    ]
}

const fn published(
    metric: &'static str,
    endpoints: f64,
    value: f64,
    what: &'static str,
    source: &'static str,
) -> Published {
    Published {
        metric,
        params: [
            Some(("endpoints", Param::Number(endpoints))),
            None,
            None,
            None,
        ],
        beside: Beside::Median,
        value,
        what,
        source,
    }
}
