//! Charts of what the simulator has found, and of networks that lose packets.

use super::super::papers::{Beside, PUBLISHED};
use super::{Wanted, bar, by_transport, chart, measured_line};
use harness::draw::{Axis, Bars, Line, Picture, Scale, zero_based};
use harness::row::Row;

/// Congestion control schemes; the place of each is its colour.
const SCHEMES: [&str; 4] = ["none", "timely", "dcqcn", "swift"];

pub(super) fn loss(rows: &[&Row]) -> Vec<Picture> {
    let wanted = Wanted {
        metric: "gbps",
        x: "loss",
        params: &[],
    };
    let mut lines = by_transport(rows, wanted);
    lines.extend(wanted.published("loss", Beside::Median));
    vec![chart(
        "8 MB requests over a network that loses packets",
        Axis::new("share of packets that are lost", "share", Scale::Each),
        Axis::new("data delivered, Gbit/s", "", Scale::Linear),
        lines,
    )]
}

pub(super) fn reorder(rows: &[&Row]) -> Vec<Picture> {
    let wanted = Wanted {
        metric: "gbps",
        x: "percent",
        params: &[],
    };
    vec![chart(
        "8 MB requests over a network that delivers packets late",
        Axis::new("packets that are late by up to 100 µs", "%", Scale::Each),
        Axis::new("data delivered, Gbit/s", "", Scale::Linear),
        by_transport(rows, wanted),
    )]
}

pub(super) fn incast(rows: &[&Row]) -> Vec<Picture> {
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
            let published = wanted.published("incast", Beside::Median);
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
            "Incast: what all senders get across together",
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

pub(super) fn incast_background(rows: &[&Row]) -> Vec<Picture> {
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

pub(super) fn cluster(rows: &[&Row]) -> Vec<Picture> {
    let x = || Axis::new("endpoints of a host, on 100 hosts", "", Scale::Each);
    let of = |metric, name: &str, colour| {
        let wanted = Wanted {
            metric,
            x: "endpoints",
            params: &[],
        };
        let of: Vec<&Row> = rows.iter().filter(|row| wanted.is(row)).copied().collect();
        let mut lines = vec![measured_line(name, Some(colour), &of, wanted.x)];
        // In the colour of what they stand beside: there are several in one chart.
        let published = wanted.published("cluster", Beside::Median).into_iter();
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
