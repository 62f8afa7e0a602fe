//! Aims that rows reach and miss.

use serde_json::json;

use super::*;
use crate::output::sample::sample;

fn row(gets: u32, median: f64) -> Row {
    let params = json!({"gets": gets, "batch": 16});
    Row {
        params: params.as_object().cloned().unwrap_or_default(),
        median,
        runs: 7,
        ..sample()
    }
}

const AIM: Aim = Aim {
    metric: "rtt_p50",
    transport: "shm",
    params: &[("gets", "50")],
    of: Of::Value,
    bound: Bound::AtMost(300.0),
};

fn judged(of: Of, bound: Bound, rows: &[Row]) -> Vec<String> {
    lines(&[Aim { of, bound, ..AIM }], rows)
}

#[test]
fn a_value_or_a_ratio_has_a_bound() {
    let rows = [row(50, 280.0), row(95, 700.0)];
    assert_eq!(
        judged(Of::Value, AIM.bound, &rows),
        ["reached: 280.000, at most 300  latency shm rtt_p50, batch 16, gets 50"]
    );
    let ratio = judged(Of::Ratio, Bound::AtLeast(2.5), &rows);
    assert_eq!(
        ratio,
        ["missed: 2.000, at least 2.5  latency shm rtt_p50 / raw, batch 16, gets 50"]
    );
}

#[test]
fn a_row_is_compared_with_the_one_that_differs_in_one_parameter() {
    let over = Of::Over("gets", "95");
    let rows = [row(50, 90.0), row(100, 10.0), row(95, 100.0)];
    assert_eq!(
        judged(over, Bound::AtLeast(0.9), &rows),
        [
            "reached: 0.900, at least 0.9  latency shm rtt_p50 / that with gets 95, batch 16, \
             gets 50"
        ]
    );
    let invalid = Row {
        valid: false,
        ..rows[2].clone()
    };
    let line = judged(over, Bound::AtLeast(0.9), &[rows[0].clone(), invalid]);
    assert!(line[0].starts_with("not judged"), "{line:?}");
    assert!(judged(over, Bound::AtLeast(0.9), &rows[..2]).is_empty());
}

#[test]
fn a_spread_may_reach_the_baseline() {
    let with = |min, baseline| Row {
        min,
        baseline: Some(baseline),
        ..row(50, 110.0)
    };
    for (min, verdict) in [(100.0, "reached"), (101.0, "missed")] {
        let line = judged(Of::Ratio, Bound::Spread, &[with(min, 100.0)]);
        assert!(line[0].starts_with(verdict), "{line:?}");
    }
}

#[test]
fn a_row_of_too_few_rounds_is_not_judged() {
    let with = |runs, valid| Row {
        runs,
        valid,
        measured: Some(runs >= 7),
        ..row(50, 100.0)
    };
    for (row, verdict) in [
        (with(7, true), "reached: 2.000, at least 1.5"),
        (
            with(6, true),
            "not judged, not measured: 6 of 7 rounds: 2.000, ",
        ),
        (with(9, false), "not judged, the row is invalid: 2.000, "),
    ] {
        let line = judged(Of::Ratio, Bound::AtLeast(1.5), &[row]);
        assert!(line[0].starts_with(verdict), "{line:?}");
    }
    let compared = Bound::AtLeast(1.5).judge_rounds(1.6, 5);
    assert_eq!(
        compared,
        "not judged, 5 of 7 valid rounds: 1.600, at least 1.5"
    );
}

#[test]
fn the_aim_against_another_program_depends_on_the_program() {
    let of = |packing: bool, other| {
        let params = json!({"batch": 3, "packing": packing, "size": 32});
        of_other(["rpc_per_s", "dpdk"], params.as_object().unwrap(), other)
    };
    let erpc = "peer:target/erpc/erpc-dpdk-shipped";
    assert_eq!(of(true, erpc), Some(Bound::AtLeast(2.5)));
    assert_eq!(of(false, erpc), Some(Bound::AtLeast(1.5)));
    assert_eq!(of(true, "../old/dunlin"), None);
}
