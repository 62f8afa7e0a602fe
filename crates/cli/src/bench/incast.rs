//! `incast`: 8 MB requests of many hosts to one, back to back, under each congestion control scheme
//! (eRPC §6.5, table 5); and `incast-background`: 64 KB RPCs among the others meanwhile.

use dunlin_sim::scenario::Stage;
use serde_json::Value;

use super::case::Case;
use super::probe::Metric;
use super::scenario::Simulated;
use crate::sim::Done;
use crate::sim::micros;

const INCAST: (&str, &str) = (
    "scenarios/incast.toml",
    include_str!("../../../../scenarios/incast.toml"),
);
const BACKGROUND: (&str, &str) = (
    "scenarios/background.toml",
    include_str!("../../../../scenarios/background.toml"),
);

/// Hosts that send.
const DEGREES: [u32; 5] = [20, 50, 100, 200, 1000];
/// Congestion control schemes.
const SCHEMES: [&str; 4] = ["none", "timely", "dcqcn", "swift"];
/// Whom the others call: one host each, or any.
const PARTNERS: [&str; 2] = ["fixed", "drawn"];
/// What a run takes, about, in seconds.
const RUN: u64 = 8;

const METRICS: [Metric; 9] = [
    Metric::alone("gbps", "Gbit/s"),
    Metric::alone("rtt_p50_us", "us"),
    Metric::alone("rtt_p99_us", "us"),
    Metric::alone("jain", ""),
    Metric::alone("resent", ""),
    Metric::alone("failed", ""),
    Metric::alone("opening_gbps", "Gbit/s"),
    Metric::alone("opening_rtt_p99_us", "us"),
    Metric::alone("opening_resent", ""),
];

const BACKGROUND_METRICS: [Metric; 5] = [
    Metric::alone("latency_p50_us", "us"),
    Metric::alone("latency_p99_us", "us"),
    Metric::alone("gbps", "Gbit/s"),
    Metric::alone("incast_gbps", "Gbit/s"),
    Metric::alone("resent", ""),
];

/// Every degree under every scheme.
pub(super) fn cases() -> Vec<Case> {
    let all = DEGREES
        .into_iter()
        .flat_map(|degree| SCHEMES.map(|cc| (degree, cc)));
    let case = |(degree, cc): (u32, &str)| {
        let params = [("degree", Value::from(degree)), ("cc", Value::from(cc))];
        let sets = [
            ("network.hosts", i64::from(degree + 1).into()),
            ("endpoint.cc", cc.into()),
        ];
        let subject = Simulated::new(INCAST.0, INCAST.1, &sets)
            .reading(&METRICS, values)
            .taking(RUN);
        Case::new("incast", "sim", &params, subject)
    };
    all.map(case).collect()
}

/// An incast of 100 hosts under every scheme, with other RPCs beside it.
pub(super) fn background_cases() -> Vec<Case> {
    let all = PARTNERS
        .into_iter()
        .flat_map(|partners| SCHEMES.map(|cc| (partners, cc)));
    let case = |(partners, cc): (&str, &str)| {
        let params = [
            ("degree", Value::from(100)),
            ("cc", Value::from(cc)),
            ("partners", Value::from(partners)),
        ];
        let sets = [
            ("endpoint.cc", cc.into()),
            ("load.1.partners", partners.into()),
        ];
        let subject = Simulated::new(BACKGROUND.0, BACKGROUND.1, &sets)
            .reading(&BACKGROUND_METRICS, background_values)
            .taking(4 * RUN);
        Case::new("incast_background", "sim", &params, subject)
    };
    all.map(case).collect()
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
fn values(done: &Done) -> Vec<f64> {
    let load = &done.report.loads[0];
    let p99 = |stage: &Stage| micros(stage.rtt.p99);
    let (steady, opening) = (&load.steady, &load.opening);
    vec![
        steady.gbps,
        micros(steady.rtt.p50),
        p99(steady),
        steady.jain,
        steady.resent_share(),
        (steady.failed + opening.failed) as f64,
        opening.gbps,
        p99(opening),
        opening.resent_share(),
    ]
}

fn background_values(done: &Done) -> Vec<f64> {
    let [incast, background] = [0, 1].map(|index| &done.report.loads[index].steady);
    vec![
        micros(background.latency.p50),
        micros(background.latency.p99),
        background.gbps,
        incast.gbps,
        background.resent_share(),
    ]
}

#[cfg(test)]
mod tests;
