//! A row is judged by the aim of its own experiment, transport and parameters.

use serde_json::json;

use super::*;
use crate::output::sample::sample;

fn row(what: [&'static str; 3], params: &Value, ratio: f64, runs: usize) -> Row {
    let [experiment, metric, transport] = what;
    Row {
        experiment: experiment.into(),
        metric: metric.into(),
        transport: transport.into(),
        params: params.as_object().cloned().unwrap_or_default(),
        ratio: Some(ratio),
        runs,
        ..sample()
    }
}

#[test]
fn a_ratio_reaches_or_misses_the_aim_of_its_row() {
    let rate = |packing: bool, ratio| {
        let params = json!({"batch": 16, "packing": packing, "size": 32});
        row(["rate", "rpc_per_s", "xdp"], &params, ratio, 7)
    };
    let rows = [rate(false, 0.76), rate(false, 0.74), rate(true, 1.19)];
    let expected = [
        "aim 0.75 or more: 0.76, reached  rate xdp batch 16 packing false size 32, rpc_per_s",
        "aim 0.75 or more: 0.74, missed  rate xdp batch 16 packing false size 32, rpc_per_s",
        "aim 1.2 or more: 1.19, missed  rate xdp batch 16 packing true size 32, rpc_per_s",
    ];
    assert_eq!(lines(&rows), expected);
    let trip = |transport| {
        row(
            ["latency", "rtt_p50", transport],
            &json!({"size": 32}),
            1.2,
            7,
        )
    };
    let expected = [
        "aim 1.15 or less: 1.20, missed  latency xdp size 32, rtt_p50",
        "aim 1.3 or less: 1.20, reached  latency dpdk size 32, rtt_p50",
    ];
    assert_eq!(lines(&["xdp", "dpdk"].map(trip)), expected);
}

#[test]
fn a_row_with_few_rounds_or_an_invalid_one_is_not_judged() {
    let few = row(["queue", "others_per_s", "xdp"], &json!({}), 1.0, 6);
    let invalid = Row {
        valid: false,
        ..row(["queue", "others_per_s", "xdp"], &json!({}), 1.0, 9)
    };
    let expected = [
        "aim 0.9 or more: 1.00, not judged, 6 of 7 valid rounds  queue xdp, others_per_s",
        "aim 0.9 or more: 1.00, not judged, 0 of 7 valid rounds  queue xdp, others_per_s",
    ];
    assert_eq!(lines(&[few, invalid]), expected);
}

#[test]
fn other_rows_have_no_aim() {
    let rows = [
        row(
            ["rate", "rpc_per_s", "udp"],
            &json!({"batch": 16, "packing": true, "size": 32}),
            2.0,
            7,
        ),
        row(
            ["rate", "rpc_per_s", "xdp"],
            &json!({"batch": 3, "packing": true, "size": 32}),
            2.0,
            7,
        ),
        row(["latency", "rtt_p99", "xdp"], &json!({"size": 32}), 2.0, 7),
    ];
    assert!(lines(&rows).is_empty());
}

#[test]
fn the_aim_against_another_program_depends_on_the_program() {
    let params = json!({"batch": 3, "packing": true, "size": 32});
    let params = params.as_object().unwrap();
    let what = ["rate", "rpc_per_s", "dpdk"];
    let erpc = "peer:target/erpc/erpc-dpdk-shipped";
    assert_eq!(of_other(what, params, erpc), Some(Bound::Least(2.5)));
    assert_eq!(of_other(what, params, "../old/dunlin"), None);
    assert!(lines(&[row(what, &json!(params), 3.0, 7)]).is_empty());
}
