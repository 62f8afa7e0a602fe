//! `incast`: many hosts send 8 MB requests to one host, back to back, under each congestion control
//! scheme (eRPC §6.5, table 5). `incast-background` adds 64 KB RPCs among all other hosts at the
//! same time.

use std::time::Duration;

use dunlin_sim::scenario::Stage;
use serde_json::Value;

use crate::harness::case::Case;
use crate::harness::experiment::{Experiment, Section};
use crate::harness::probe::Metric;
use crate::harness::scenario::Simulated;
use crate::output::chart::{Wanted, bar, chart, measured_line};
use crate::output::papers::{Beside, Param, Published};
use dunlin_scenario::{Done, micros};
use harness::draw::{Axis, Bars, Line, Picture, Scale, zero_based};
use harness::row::Row;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "incast",
    about: "8 MB requests of 20 to 1000 simulated hosts to one, under each congestion \
            control scheme; not part of `all`",
    cases: |_| Ok(cases()),
    usual_time: Duration::from_secs(300 * 1000),
    usual_runs: 1,
    is_in_all: false,
    section: Some(Section {
        title: "Incast",
        text: "8 MB requests of many hosts to one, back to back, in the simulator: 25 Gb/s to each \
               host, and a switch with a shared buffer of 12 MB, as in the paper's cluster.",
    }),
    charts,
    published: PUBLISHED,
    ..Experiment::BASE
};

/// Figures of the paper.
const PUBLISHED: &[Published] = &[
    published("gbps", 20.0, "timely", 21.8),
    published("gbps", 20.0, "none", 23.1),
    published("gbps", 50.0, "timely", 18.4),
    published("gbps", 50.0, "none", 23.0),
    published("gbps", 100.0, "timely", 22.8),
    published("gbps", 100.0, "none", 23.0),
    published("rtt_p50_us", 20.0, "timely", 39.0),
    published("rtt_p50_us", 20.0, "none", 202.0),
    published("rtt_p50_us", 50.0, "timely", 34.0),
    published("rtt_p50_us", 50.0, "none", 524.0),
    published("rtt_p50_us", 100.0, "timely", 349.0),
    published("rtt_p50_us", 100.0, "none", 1_056.0),
    published("rtt_p99_us", 20.0, "timely", 67.0),
    published("rtt_p99_us", 20.0, "none", 204.0),
    published("rtt_p99_us", 50.0, "timely", 174.0),
    published("rtt_p99_us", 50.0, "none", 524.0),
    published("rtt_p99_us", 100.0, "timely", 969.0),
    published("rtt_p99_us", 100.0, "none", 1_060.0),
];

pub(super) const BACKGROUND: Experiment = Experiment {
    name: "incast-background",
    alias: Some("incast_background"),
    about: "64 KB RPCs among 100 simulated hosts that also send to another one; not \
            part of `all`",
    cases: |_| Ok(background_cases()),
    usual_time: Duration::from_secs(200 * 1000),
    usual_runs: 1,
    is_in_all: false,
    section: Some(Section {
        title: "Incast with other RPCs",
        text: "64 KB RPCs among the hosts of an incast of 100, in the simulator, under each \
               congestion control scheme.",
    }),
    charts: background_charts,
    published: PUBLISHED_BACKGROUND,
    ..Experiment::BASE
};

/// Figures of the paper.
const PUBLISHED_BACKGROUND: &[Published] = &[Published {
    metric: "latency_p99_us",
    params: [
        Some(("degree", Param::Number(100.0))),
        Some(("cc", Param::Word("timely"))),
        None,
        None,
    ],
    beside: Beside::Median,
    value: 274.0,
    what: "eRPC, CX4",
    source: "eRPC, §6.5",
}];

const SCENARIO: (&str, &str) = (
    "scenarios/incast.toml",
    include_str!("../../../../scenarios/incast.toml"),
);
const BACKGROUND_SCENARIO: (&str, &str) = (
    "scenarios/background.toml",
    include_str!("../../../../scenarios/background.toml"),
);

/// Hosts that send.
const DEGREES: [u32; 5] = [20, 50, 100, 200, 1000];
/// Congestion control schemes.
const SCHEMES: [&str; 4] = ["none", "timely", "dcqcn", "swift"];
/// Partners of the other hosts: one fixed host each, or a host that is drawn for each RPC.
const PARTNERS: [&str; 2] = ["fixed", "drawn"];
/// Approximate seconds of a run.
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
pub(crate) fn cases() -> Vec<Case> {
    let all = DEGREES
        .into_iter()
        .flat_map(|degree| SCHEMES.map(|cc| (degree, cc)));
    let case = |(degree, cc): (u32, &str)| {
        let params = [("degree", Value::from(degree)), ("cc", Value::from(cc))];
        let sets = [
            ("network.hosts", i64::from(degree + 1).into()),
            ("endpoint.cc", cc.into()),
        ];
        let subject = Simulated::new(SCENARIO.0, SCENARIO.1, &sets)
            .reading(&METRICS, values)
            .taking(RUN);
        Case::new("incast", "sim", &params, subject)
    };
    all.map(case).collect()
}

/// An incast of 100 hosts under every scheme, with other RPCs at the same time.
pub(crate) fn background_cases() -> Vec<Case> {
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
        let subject = Simulated::new(BACKGROUND_SCENARIO.0, BACKGROUND_SCENARIO.1, &sets)
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

fn charts(rows: &[&Row]) -> Vec<Picture> {
    let x = || Axis::new("hosts that send 8 MB requests to one", "", Scale::Each);
    let of = |metric, title: &str, y: Axis| {
        let mut lines = Vec::new();
        for (colour, cc) in SCHEMES.into_iter().enumerate() {
            let params = [("cc", cc)];
            let wanted = Wanted {
                metric,
                x: "degree",
                params: &params,
            };
            let of: Vec<&Row> = rows.iter().filter(|row| wanted.is(row)).copied().collect();
            lines.push(measured_line(cc, Some(colour), &of, wanted.x));
            let published = wanted.published(PUBLISHED, Beside::Median);
            lines.extend(published.into_iter().map(|line| Line {
                name: format!("{}, {cc}", line.name),
                colour: Some(colour),
                letter: None,
                ..line
            }));
        }
        lines.retain(|line| !line.points.is_empty());
        chart(title, x(), y, lines)
    };
    let time = |what: &str| Axis::new(what, "us", Scale::Log);
    vec![
        of(
            "rtt_p50_us",
            "Incast: round trip of a packet, median",
            time("round trip"),
        ),
        of(
            "rtt_p99_us",
            "Incast: round trip of a packet, 99th percentile",
            time("round trip"),
        ),
        of(
            "gbps",
            "Incast: throughput of all senders together",
            Axis::new(
                "data delivered, Gbit/s (the cable has 25)",
                "",
                Scale::Linear,
            ),
        ),
        of(
            "jain",
            "Incast: fairness among the senders",
            Axis::new("index of Jain; 1 is the same for all", "", Scale::Linear),
        ),
    ]
}

const fn published(metric: &'static str, degree: f64, cc: &'static str, value: f64) -> Published {
    Published {
        metric,
        params: [
            Some(("degree", Param::Number(degree))),
            Some(("cc", Param::Word(cc))),
            None,
            None,
        ],
        beside: Beside::Median,
        value,
        what: "eRPC, CX4",
        source: "eRPC, table 5",
    }
}

fn background_charts(rows: &[&Row]) -> Vec<Picture> {
    let wanted = rows.iter().filter(|row| row.metric == "latency_p99_us");
    let all = wanted.map(|row| {
        let cc = row.params.get("cc").and_then(|cc| cc.as_str());
        let cc = cc.unwrap_or_default();
        let colour = SCHEMES.iter().position(|it| *it == cc);
        let partners = row.params.get("partners").and_then(|it| it.as_str());
        let label = partners.map_or_else(|| cc.to_owned(), |it| format!("{cc}, {it} partners"));
        let mut bar = bar(row, label, colour);
        bar.published = PUBLISHED
            .iter()
            .find(|it| it.is_beside(row))
            .map(|it| it.value);
        bar
    });
    vec![Picture::Bars(Bars {
        title: "64 KB RPCs among hosts of an incast of 100, 99th percentile".to_owned(),
        axis: zero_based("round trip of an RPC", "us"),
        baseline: String::new(),
        published: "eRPC, CX4 (§6.5)".to_owned(),
        bars: all.collect(),
    })]
}

#[cfg(test)]
mod tests;
