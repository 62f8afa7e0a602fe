//! The rows of `kv` as a reader gets them: charts, figures of the paper, and lines below the table.

use serde_json::Value;

use super::{EXPERIMENT, sim};
use crate::output::aims::{Aim, Bound, Of};
use crate::output::chart::{Wanted, by_transport, chart, unlike, word};
use crate::output::papers::{Beside, Param, Published};
use harness::draw::{Axis, Picture, Scale};
use harness::row::Row;

/// Figures of the paper.
pub(super) const PUBLISHED: &[Published] = &{
    let mut all = [MEASURED[0]; MEASURED.len() + sim::PUBLISHED.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = match at.checked_sub(MEASURED.len()) {
            Some(simulated) => sim::PUBLISHED[simulated],
            None => MEASURED[at],
        };
        at += 1;
    }
    all
};

/// Figures of the paper that can be compared with real processes.
const MEASURED: &[Published] = &[
    published((26e6, 95.0, 32.0), "HERD, 6 cores", "HERD, §5.3, figure 9"),
    published((6.3e6, 95.0, 32.0), "HERD, 1 core", "HERD, §5.7, figure 13"),
    published((4.32e6, 95.0, 32.0), "HERD, each of 6 cores", "HERD, §5.7"),
    published((26e6, 50.0, 32.0), "HERD, 6 cores", "HERD, §5.3, figure 9"),
    short(4.0),
    short(8.0),
    short(16.0),
    Published {
        metric: "latency_mean",
        params: [Some(("load", Param::Number(90.0))), None, None, None],
        beside: Beside::Median,
        value: 5_000.0,
        what: "HERD, 6 cores at 26 M/s",
        source: "HERD, §5.4, figure 11",
    },
];

/// Aims of the service, next to the echoes of the same run.
pub(super) const AIMS: &[Aim] = &[
    Aim {
        metric: "bound_ratio",
        transport: "shm",
        params: &[
            ("popularity", "uniform"),
            ("batched", "true"),
            ("items_mib", "1024"),
            ("gets", "95"),
        ],
        of: Of::Value,
        bound: Bound::AtLeast(0.9),
    },
    Aim {
        metric: "ops_per_s",
        transport: "shm",
        params: &[
            ("popularity", "uniform"),
            ("batched", "true"),
            ("items_mib", "1024"),
            ("gets", "50"),
        ],
        of: Of::Over("gets", "95"),
        bound: Bound::AtLeast(0.9),
    },
    Aim {
        metric: "latency_p99",
        transport: "shm",
        params: &[("load", "50")],
        of: Of::Ratio,
        bound: Bound::AtMost(1.5),
    },
    Aim {
        metric: "latency_p99",
        transport: "udp",
        params: &[("load", "50")],
        of: Of::Ratio,
        bound: Bound::AtMost(1.5),
    },
    Aim {
        metric: "p999_over_echo",
        transport: "shm",
        params: &[],
        of: Of::Value,
        bound: Bound::AtMost(50e3),
    },
    Aim {
        metric: "p999_over_echo",
        transport: "udp",
        params: &[],
        of: Of::Value,
        bound: Bound::AtMost(50e3),
    },
    Aim {
        metric: "most_per_least",
        transport: "sim",
        params: &[("figure", "14"), ("popularity", "zipf")],
        of: Of::Value,
        bound: Bound::AtMost(1.5),
    },
    Aim {
        metric: "ops_per_s",
        transport: "sim",
        params: &[("figure", "14"), ("popularity", "zipf")],
        of: Of::Ratio,
        bound: Bound::AtLeast(0.95),
    },
];

/// The reason why no figure of the paper stands next to the gain of batches.
const NO_FIGURE_7: &str = "HERD, figure 7, has no value to compare with that: it shows echo \
                           servers with random accesses to memory instead of tables, and the text \
                           names no rate without prefetching";

/// The gain of serving the requests of a burst together.
pub(super) fn findings(rows: &[Row]) -> Vec<String> {
    let rates = || {
        let is = |row: &&Row| EXPERIMENT.owns(row) && row.metric == "ops_per_s";
        rows.iter().filter(is)
    };
    let is = |row: &&Row, batched: &str| word(row, "batched").as_deref() == Some(batched);
    let others = |row: &Row| {
        let mut params = row.params.clone();
        params.remove("batched");
        (row.transport.clone(), params)
    };
    let single = rates().filter(|row| is(row, "false"));
    let gain = |single: &Row| {
        let mut batched = rates().filter(|row| is(row, "true"));
        let batched = batched.find(|row| others(row) == others(single))?;
        let ratio = batched.median / single.median;
        Some(format!(
            "with batches / without: {ratio:.2}  kv {}{}",
            single.transport,
            unlike(batched, single)
        ))
    };
    let mut lines: Vec<String> = single.filter_map(gain).collect();
    if !lines.is_empty() {
        lines.push(NO_FIGURE_7.to_owned());
    }
    lines
}

pub(super) fn charts(rows: &[&Row]) -> Vec<Picture> {
    let usual = [("popularity", "uniform"), ("gets", "95")];
    let lengths = Wanted {
        metric: "ops_per_s",
        x: "value",
        params: &[usual[0], usual[1], ("batched", "true")],
    };
    // Only the smaller tables have a row for every length.
    let mib = |row: &&Row| row.params.get("items_mib").and_then(Value::as_u64);
    let least = rows.iter().filter_map(mib).min();
    let small: Vec<&Row> = rows
        .iter()
        .copied()
        .filter(|row| mib(row) == least)
        .collect();
    let mut lines = by_transport(&small, lengths);
    lines.extend(lengths.published(PUBLISHED, Beside::Median));
    let mut charts = vec![chart(
        "Rate of gets and sets, 95 to 5, against the length of values",
        Axis::new("bytes of a value", "B", Scale::Each),
        Axis::new("operations per second and thread", "1/s", Scale::Log),
        lines,
    )];
    for (metric, title) in [
        ("latency_p50", "Latency of the service under load, median"),
        (
            "latency_p99",
            "Latency of the service under load, 99th percentile",
        ),
    ] {
        let wanted = Wanted {
            metric,
            x: "load",
            params: &[],
        };
        charts.push(chart(
            title,
            Axis::new("percent of the largest rate", "", Scale::Each),
            Axis::new("from the moment that it was due", "ns", Scale::Log),
            by_transport(rows, wanted),
        ));
    }
    charts.extend(sim::charts(rows));
    charts
}

/// The rate with values of this length. The text names one rate for all items of up to 60 bytes, of
/// which 16 are the key.
const fn short(value: f64) -> Published {
    published(
        (26e6, 95.0, value),
        "HERD, 6 cores (above this, up to 60-byte items)",
        "HERD, §5.3, figure 10",
    )
}

const fn published(
    (per_s, gets, value): (f64, f64, f64),
    what: &'static str,
    source: &'static str,
) -> Published {
    Published {
        metric: "ops_per_s",
        params: [
            Some(("gets", Param::Number(gets))),
            Some(("value", Param::Number(value))),
            Some(("popularity", Param::Word("uniform"))),
            Some(("batched", Param::Word("true"))),
        ],
        beside: Beside::Median,
        value: per_s,
        what,
        source,
    }
}
