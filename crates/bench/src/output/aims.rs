//! The ratios that rows over `xdp` and `dpdk` should reach, and whether rows reach them.
//!
//! An aim is judged by the median of seven rounds or more. The aims for instructions are rows of
//! `budget.toml`. memif has no interrupts in DPDK 22.11, so no row has the first round trip after a
//! silence there. Called by the experiments, and by `bench compare`.

use harness::row::Row;
use serde_json::{Map, Value};

use super::papers::Param::{self, Number, Word};

/// Rounds that a judgement needs.
const ENOUGH: usize = 7;

/// The ratio that a row should reach.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Bound {
    /// This ratio, or more.
    Least(f64),
    /// This ratio, or less.
    Most(f64),
}

/// The row that has an aim.
struct Aim {
    experiment: &'static str,
    metric: &'static str,
    transports: &'static [&'static str],
    params: &'static [(&'static str, Param)],
    /// Part of the name of the other program, for an aim of `bench compare`.
    other: Option<&'static str>,
    bound: Bound,
}

const XDP: &[&str] = &["xdp", "xdp:native"];
const DPDK: &[&str] = &["dpdk"];
const ALL: &[&str] = &["xdp", "xdp:native", "dpdk"];

const AIMS: &[Aim] = &[
    aim(("latency", "rtt_p50"), XDP, &[SHORT], Bound::Most(1.15)),
    aim(("latency", "rtt_p50"), DPDK, &[SHORT], Bound::Most(1.3)),
    aim(RATE, XDP, &[SHORT, BATCH, APART], Bound::Least(0.75)),
    aim(RATE, XDP, &[SHORT, BATCH, PACKED], Bound::Least(1.2)),
    aim(("queue", "others_per_s"), XDP, &[], Bound::Least(0.9)),
    aim(("bandwidth", "gbps"), ALL, &[MEGABYTE], Bound::Least(0.8)),
    aim(("bandwidth", "gbps"), ALL, &[LARGE], Bound::Least(0.8)),
    aim(("idle", "rtt_first"), XDP, &[], Bound::Most(1.3)),
    over_erpc(&[SHORT, APART], Bound::Least(1.5)),
    over_erpc(&[SHORT, PACKED], Bound::Least(2.5)),
];

const RATE: (&str, &str) = ("rate", "rpc_per_s");
const SHORT: (&str, Param) = ("size", Number(32.0));
const MEGABYTE: (&str, Param) = ("size", Number(1_048_576.0));
const LARGE: (&str, Param) = ("size", Number(8_388_608.0));
const BATCH: (&str, Param) = ("batch", Number(16.0));
const PACKED: (&str, Param) = ("packing", Word("true"));
const APART: (&str, Param) = ("packing", Word("false"));

/// An aim for the ratio to a row's baseline.
const fn aim(
    (experiment, metric): (&'static str, &'static str),
    transports: &'static [&'static str],
    params: &'static [(&'static str, Param)],
    bound: Bound,
) -> Aim {
    Aim {
        experiment,
        metric,
        transports,
        params,
        other: None,
        bound,
    }
}

/// An aim for the rate over memif, compared with that of eRPC over its own transport there.
const fn over_erpc(params: &'static [(&'static str, Param)], bound: Bound) -> Aim {
    Aim {
        other: Some("erpc-dpdk"),
        ..aim(RATE, DPDK, params, bound)
    }
}

impl Aim {
    fn is_of(
        &self,
        [experiment, metric, transport]: [&str; 3],
        params: &Map<String, Value>,
    ) -> bool {
        self.experiment == experiment
            && self.metric == metric
            && self.transports.contains(&transport)
            && self
                .params
                .iter()
                .all(|(name, param)| param.is(params.get(*name)))
    }
}

impl Bound {
    /// The judgement of a ratio from this number of valid rounds.
    pub fn judge(self, ratio: f64, rounds: usize) -> String {
        let (aim, is_reached) = match self {
            Self::Least(least) => (format!("{least} or more"), ratio >= least),
            Self::Most(most) => (format!("{most} or less"), ratio <= most),
        };
        let judgement = match (rounds < ENOUGH, is_reached) {
            (true, _) => format!("not judged, {rounds} of {ENOUGH} valid rounds"),
            (_, true) => "reached".to_owned(),
            (_, false) => "missed".to_owned(),
        };
        format!("aim {aim}: {ratio:.2}, {judgement}")
    }
}

/// The bound for the ratio of a row of `bench compare` to this other program.
pub fn of_other(what: [&str; 3], params: &Map<String, Value>, other: &str) -> Option<Bound> {
    let mut aims = AIMS
        .iter()
        .filter(|aim| aim.other.is_some_and(|it| other.contains(it)));
    Some(aims.find(|aim| aim.is_of(what, params))?.bound)
}

/// One line for each row that has an aim.
pub(crate) fn lines(rows: &[Row]) -> Vec<String> {
    rows.iter().filter_map(line).collect()
}

fn line(row: &Row) -> Option<String> {
    let mut aims = AIMS.iter().filter(|aim| aim.other.is_none());
    let aim = aims.find(|aim| aim.is_of(row.what(), &row.params))?;
    let rounds = if row.valid { row.runs } else { 0 };
    let judged = aim.bound.judge(row.ratio?, rounds);
    let params = row.params.iter().map(|(name, value)| match value {
        Value::String(text) => format!(" {name} {text}"),
        value => format!(" {name} {value}"),
    });
    let params: String = params.collect();
    let [experiment, metric, transport] = row.what();
    Some(format!(
        "{judged}  {experiment} {transport}{params}, {metric}"
    ))
}

#[cfg(test)]
mod tests;
