//! Figures that papers have published. Reports show them next to the figures measured here. The
//! authors used various other machines, with kernel-bypass NICs, so a published figure is not a
//! baseline.
//!
//! eRPC: Kalia, Kaminsky, Andersen, "Datacenter RPCs can be General and Fast", NSDI 2019.
//! HERD: Kalia, Kaminsky, Andersen, "Using RDMA Efficiently for Key-Value Services", SIGCOMM 2014.

use serde_json::Value;

use harness::figure::short;
use harness::row::Row;

/// The value of a parameter of an experiment, as rows write it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Param {
    /// A number.
    Number(f64),
    /// A word, or `true` or `false`.
    Word(&'static str),
}

/// Parameters that a row must have, with their values.
type Params = [Option<(&'static str, Param)>; 4];

/// Which figure of a row a published figure is compared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Beside {
    /// The median.
    Median,
    /// The ratio to the baseline, if the paper also published a ratio.
    Ratio,
}

/// A published figure.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// The metric, as rows name it.
    pub metric: &'static str,
    /// Its parameters.
    pub params: Params,
    /// The figure of a row with which it is shown.
    pub beside: Beside,
    /// The value, in the unit of the rows.
    pub value: f64,
    /// The quantity that was measured, and the machine.
    pub what: &'static str,
    /// The paper, and the table, figure or section in it.
    pub source: &'static str,
}

use Param::{Number, Word};

impl Published {
    /// Whether a row of its experiment measures the same thing, as far as the parameters tell.
    pub fn is_beside(&self, row: &Row) -> bool {
        row.metric == self.metric
            && self
                .params()
                .all(|(name, param)| param.is(row.params.get(name)))
    }

    /// A parameter that is a number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.params().find_map(|(it, param)| match param {
            Number(number) if it == name => Some(number),
            _ => None,
        })
    }

    /// A parameter that is a word.
    pub fn word(&self, name: &str) -> Option<&'static str> {
        self.params().find_map(|(it, param)| match param {
            Word(word) if it == name => Some(word),
            _ => None,
        })
    }

    /// All parameters, as rows write them.
    pub fn all_params(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.params().map(|(name, param)| match param {
            Number(number) => (name, number.to_string()),
            Word(word) => (name, word.to_owned()),
        })
    }

    /// Metric and parameters, for people to read.
    pub fn label(&self) -> String {
        let params = self.all_params().map(|(name, value)| {
            let unit = match name {
                "size" | "value" => Some("B"),
                "loss" => Some("share"),
                _ => None,
            };
            let number = unit.and_then(|unit| Some(short(value.parse().ok()?, unit)));
            format!("{name} {}", number.unwrap_or(value))
        });
        let params: Vec<String> = params.collect();
        format!("{}, {}", in_words(self.metric), params.join(", "))
    }

    fn params(&self) -> impl Iterator<Item = (&'static str, Param)> {
        self.params.into_iter().flatten()
    }
}

impl Param {
    fn is(self, value: Option<&Value>) -> bool {
        match self {
            Number(number) => value.and_then(Value::as_f64) == Some(number),
            Word(word) => match value {
                Some(Value::Bool(value)) => value.to_string() == word,
                value => value.and_then(Value::as_str) == Some(word),
            },
        }
    }
}

/// The long name of a metric that papers publish; rows have the short name.
fn in_words(metric: &str) -> &str {
    match metric {
        "rtt_p50" | "rtt_p50_us" => "round trip, median",
        "rtt_p99_us" => "round trip, 99th percentile",
        "put_p50" => "replicated put, median",
        "put_p99" => "replicated put, 99th percentile",
        "leader_p50" => "replicated put at the leader, median",
        "leader_p99" => "replicated put at the leader, 99th percentile",
        "echo_p50" => "echo, median",
        "get_p99" => "get, 99th percentile",
        "gets_per_s" => "gets per second",
        "latency_mean" => "operation, mean",
        "ops_per_s" => "operations per second",
        "ops_per_s_per_core" => "operations per second and core",
        "most_per_least" => "load of the busiest core over that of the idlest",
        "latency_p50_us" => "RPC, median",
        "latency_p99_us" => "RPC, 99th percentile",
        "latency_p9999_us" => "RPC, 99.99th percentile",
        "numbers_per_s" => "numbers per second",
        "rpc_per_s" => "RPCs per second",
        "rpc_per_s_per_host" => "RPCs per second and host",
        "gbps" => "data delivered",
        "rate_ratio" => "part of the full rate",
        other => other,
    }
}
