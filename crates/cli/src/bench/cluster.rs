//! `cluster`: small RPCs of everybody to everybody on the paper's 100 hosts, 1 to 10 endpoints each
//! (eRPC §6.3, figure 5).

use serde_json::Value;

use super::case::Case;
use super::probe::Metric;
use super::scenario::Simulated;
use crate::sim::Done;
use crate::sim::micros;

const CLUSTER: (&str, &str) = (
    "scenarios/cluster.toml",
    include_str!("../../../../scenarios/cluster.toml"),
);

/// Endpoints of a host, and what a run takes, about, in seconds.
const ENDPOINTS: [(u32, u64); 4] = [(1, 100), (2, 200), (5, 350), (10, 400)];

const METRICS: [Metric; 6] = [
    Metric::alone("rpc_per_s_per_host", "1/s"),
    Metric::alone("latency_p50_us", "us"),
    Metric::alone("latency_p99_us", "us"),
    Metric::alone("latency_p9999_us", "us"),
    Metric::alone("resent", ""),
    Metric::alone("failed", ""),
];

/// Every number of endpoints.
pub(super) fn cases() -> Vec<Case> {
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
