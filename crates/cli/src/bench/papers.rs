//! What the papers have published, so that it can stand beside what was measured here. They used
//! other machines and kernel-bypass NICs between several of them: a figure here says what was
//! possible there, and is no baseline.
//!
//! eRPC: Kalia, Kaminsky, Andersen, "Datacenter RPCs can be General and Fast", NSDI 2019.

use serde_json::Value;

use harness::row::Row;

/// A parameter of an experiment, as rows have it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Param {
    Number(f64),
    Word(&'static str),
}

/// Those that a row must have, and their values.
type Params = [Option<(&'static str, Param)>; 3];

/// Which figure of a row it stands beside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Beside {
    Median,
    /// The ratio to the baseline, which is of the same kind as what the paper compared with.
    Ratio,
}

/// A published figure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Published {
    pub(crate) experiment: &'static str,
    pub(crate) metric: &'static str,
    pub(crate) params: Params,
    pub(crate) beside: Beside,
    /// In the unit of the rows.
    pub(crate) value: f64,
    /// What was measured, and on what.
    pub(crate) what: &'static str,
    /// Paper, and table, figure or section.
    pub(crate) source: &'static str,
}

use Beside::{Median, Ratio};
use Param::{Number, Word};

/// All of them, in the order of experiments.
pub(crate) const PUBLISHED: &[Published] = &[
    latency(2_100.0, "eRPC, CX3 (InfiniBand)"),
    latency(2_300.0, "eRPC, CX5 (Ethernet)"),
    latency(3_700.0, "eRPC, CX4 (Ethernet)"),
    latency(1_700.0, "RDMA read, CX3"),
    latency(2_900.0, "RDMA read, CX4"),
    latency(2_000.0, "RDMA read, CX5"),
    rate(4.96e6, "eRPC, CX4", "eRPC, table 3 and figure 4"),
    rate(5.44e6, "eRPC, CX4, no congestion control", "eRPC, §6.2"),
    bandwidth(75.0, "eRPC, 100 Gb/s InfiniBand", "eRPC, figure 6"),
    bandwidth(92.0, "the same without the server's copy", "eRPC, §6.4"),
    loss(1e-7, 73.0),
    loss(1e-6, 71.0),
    loss(1e-5, 57.0),
    loss(1e-4, 18.0),
    loss(1e-3, 2.5),
    sessions(5_000.0, 0.5, "RDMA reads, ConnectX-5", "eRPC, figure 1"),
    sessions(
        20_000.0,
        1.0,
        "eRPC, CX4, cluster of 100",
        "eRPC, §4.1.2 and §6.3",
    ),
    factor("batched_timestamps", 4.84 / 4.96),
    factor("timely_bypass", 4.52 / 4.84),
    factor("rate_limiter_bypass", 4.30 / 4.52),
    factor("all_three", 4.30 / 4.96),
    factor("preallocated_responses", 3.55 / 4.06),
    factor("zero_copy_requests", 3.05 / 3.55),
    factor("everything", 3.05 / 4.96),
    factor("control", 5.44 / 4.96),
    incast("gbps", 20.0, "timely", 21.8),
    incast("gbps", 20.0, "none", 23.1),
    incast("gbps", 50.0, "timely", 18.4),
    incast("gbps", 50.0, "none", 23.0),
    incast("gbps", 100.0, "timely", 22.8),
    incast("gbps", 100.0, "none", 23.0),
    incast("rtt_p50_us", 20.0, "timely", 39.0),
    incast("rtt_p50_us", 20.0, "none", 202.0),
    incast("rtt_p50_us", 50.0, "timely", 34.0),
    incast("rtt_p50_us", 50.0, "none", 524.0),
    incast("rtt_p50_us", 100.0, "timely", 349.0),
    incast("rtt_p50_us", 100.0, "none", 1_056.0),
    incast("rtt_p99_us", 20.0, "timely", 67.0),
    incast("rtt_p99_us", 20.0, "none", 204.0),
    incast("rtt_p99_us", 50.0, "timely", 174.0),
    incast("rtt_p99_us", 50.0, "none", 524.0),
    incast("rtt_p99_us", 100.0, "timely", 969.0),
    incast("rtt_p99_us", 100.0, "none", 1_060.0),
    Published {
        experiment: "incast_background",
        metric: "latency_p99_us",
        params: [
            Some(("degree", Number(100.0))),
            Some(("cc", Word("timely"))),
            None,
        ],
        beside: Median,
        value: 274.0,
        what: "eRPC, CX4",
        source: "eRPC, §6.5",
    },
    cluster(
        "latency_p50_us",
        1.0,
        12.7,
        "eRPC, CX4, 100 nodes",
        "eRPC, figure 5",
    ),
    cluster(
        "latency_p9999_us",
        10.0,
        700.0,
        "eRPC, CX4 (below this)",
        "eRPC, figure 5",
    ),
    cluster(
        "rpc_per_s_per_host",
        10.0,
        12.3e6,
        "eRPC, CX4, 100 nodes",
        "eRPC, §6.3",
    ),
];

impl Published {
    /// A row measures the same, as far as its parameters say.
    pub(crate) fn is_beside(&self, row: &Row) -> bool {
        row.experiment == self.experiment
            && row.metric == self.metric
            && self
                .params()
                .all(|(name, param)| param.is(row.params.get(name)))
    }

    /// A parameter that is a number.
    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        self.params().find_map(|(it, param)| match param {
            Number(number) if it == name => Some(number),
            _ => None,
        })
    }

    /// A parameter that is a word.
    pub(crate) fn word(&self, name: &str) -> Option<&'static str> {
        self.params().find_map(|(it, param)| match param {
            Word(word) if it == name => Some(word),
            _ => None,
        })
    }

    /// All parameters, as they are written in rows.
    pub(crate) fn all_params(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.params().map(|(name, param)| match param {
            Number(number) => (name, number.to_string()),
            Word(word) => (name, word.to_owned()),
        })
    }

    fn params(&self) -> impl Iterator<Item = (&'static str, Param)> {
        self.params.into_iter().flatten()
    }
}

impl Param {
    fn is(self, value: Option<&Value>) -> bool {
        match self {
            Number(number) => value.and_then(Value::as_f64) == Some(number),
            Word(word) => value.and_then(Value::as_str) == Some(word),
        }
    }
}

const fn latency(ns: f64, what: &'static str) -> Published {
    Published {
        experiment: "latency",
        metric: "rtt_p50",
        params: [Some(("size", Number(32.0))), None, None],
        beside: Median,
        value: ns,
        what,
        source: "eRPC, table 2",
    }
}

const fn rate(per_s: f64, what: &'static str, source: &'static str) -> Published {
    Published {
        experiment: "rate",
        metric: "rpc_per_s",
        params: [
            Some(("batch", Number(3.0))),
            Some(("pattern", Word("symmetric"))),
            None,
        ],
        beside: Median,
        value: per_s,
        what,
        source,
    }
}

const fn bandwidth(gbps: f64, what: &'static str, source: &'static str) -> Published {
    Published {
        experiment: "bandwidth",
        metric: "gbps",
        params: [
            Some(("size", Number(8_388_608.0))),
            Some(("inflight", Number(1.0))),
            None,
        ],
        beside: Median,
        value: gbps,
        what,
        source,
    }
}

const fn loss(share: f64, gbps: f64) -> Published {
    Published {
        experiment: "loss",
        metric: "gbps",
        params: [Some(("loss", Number(share))), None, None],
        beside: Median,
        value: gbps,
        what: "eRPC, 100 Gb/s InfiniBand",
        source: "eRPC, table 4",
    }
}

const fn sessions(count: f64, ratio: f64, what: &'static str, source: &'static str) -> Published {
    Published {
        experiment: "sessions",
        metric: "rpc_per_s",
        params: [Some(("sessions", Number(count))), None, None],
        beside: Ratio,
        value: ratio,
        what,
        source,
    }
}

/// The paper switches one off after the other: each ratio is to the row before.
const fn factor(off: &'static str, value: f64) -> Published {
    Published {
        experiment: "factors",
        metric: "rate_ratio",
        params: [Some(("off", Word(off))), None, None],
        beside: Median,
        value,
        what: "eRPC, CX4",
        source: "eRPC, table 3 and §6.2",
    }
}

const fn incast(metric: &'static str, degree: f64, cc: &'static str, value: f64) -> Published {
    Published {
        experiment: "incast",
        metric,
        params: [
            Some(("degree", Number(degree))),
            Some(("cc", Word(cc))),
            None,
        ],
        beside: Median,
        value,
        what: "eRPC, CX4",
        source: "eRPC, table 5",
    }
}

const fn cluster(
    metric: &'static str,
    endpoints: f64,
    value: f64,
    what: &'static str,
    source: &'static str,
) -> Published {
    Published {
        experiment: "cluster",
        metric,
        params: [Some(("endpoints", Number(endpoints))), None, None],
        beside: Median,
        value,
        what,
        source,
    }
}
