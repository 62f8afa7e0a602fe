//! The ratios find the rows that belong together, and no others.

use serde_json::{Map, json};

use super::*;
use crate::output::sample::sample;

fn row(transport: &'static str, metric: &'static str, params: &Value, median: f64) -> Row {
    Row {
        experiment: "rate".into(),
        transport: transport.into(),
        params: params.as_object().cloned().unwrap_or_else(Map::new),
        metric: metric.into(),
        unit: "1/s".into(),
        median,
        ..sample()
    }
}

#[test]
fn auto_is_compared_with_shm_of_the_same_parameters_and_metric() {
    let (three, eight) = (json!({"batch": 3}), json!({"batch": 8}));
    let rows = [
        row("shm", "rpc_per_s", &eight, 7.0),
        row("shm", "other", &three, 9.0),
        row("shm", "rpc_per_s", &three, 4.0),
        row("auto", "rpc_per_s", &three, 5.0),
        row("udp", "rpc_per_s", &three, 1.0),
        row("auto", "other", &three, 9.0),
    ];
    assert_eq!(lines(&rows), ["auto / shm: 1.25  rate batch 3, rpc_per_s"]);
}

#[test]
fn packing_is_compared_with_no_packing() {
    let params = |packing| json!({"batch": 16, "packing": packing, "pattern": "one_way"});
    let rows = [
        row("udp", "rpc_per_s", &params(true), 8.0),
        row("udp", "rpc_per_s", &params(false), 2.0),
        row(
            "udp",
            "rpc_per_s",
            &json!({"batch": 16, "packing": true}),
            3.0,
        ),
    ];
    assert_eq!(
        lines(&rows),
        ["with packing / without: 4.00  rate batch 16 pattern one_way, rpc_per_s"]
    );
}

#[test]
fn a_row_without_its_counterpart_is_not_compared() {
    assert!(lines(&[row("auto", "rpc_per_s", &json!({}), 1.0)]).is_empty());
}
