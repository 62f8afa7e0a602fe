//! Figures in readable sizes, columns that line up, and invalid rows that say so.

use serde_json::Map;

use super::*;

#[test]
fn figures_have_three_digits_and_a_unit() {
    assert_eq!(figure(187.4, "ns"), "187 ns");
    assert_eq!(figure(3_512.0, "ns"), "3.51 µs");
    assert_eq!(figure(12_345_678.0, "ns"), "12.3 ms");
    assert_eq!(figure(104.2e6, "1/s"), "104 M/s");
    assert_eq!(figure(0.87e6, "1/s"), "870 k/s");
    assert_eq!(figure(28.04, "GB/s"), "28.0 GB/s");
    assert_eq!(figure(0.0, "percent"), "0.00 percent");
}

#[test]
fn columns_line_up_and_invalid_rows_say_so() {
    let row = Row {
        experiment: "latency",
        transport: "shm",
        params: Map::from_iter([("size".to_owned(), 32.into())]),
        metric: "rtt_p50",
        unit: "ns",
        median: 400.0,
        min: 390.0,
        max: 1_410.0,
        runs: 5,
        baseline: Some(200.0),
        baseline_name: Some("raw ping-pong"),
        ratio: Some(2.0),
        valid: true,
    };
    let text = render(&[
        row.clone(),
        Row {
            transport: "udp",
            valid: false,
            ..row
        },
    ]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[1].find("rtt_p50"), lines[0].find("metric"));
    assert!(lines[1].ends_with("1.41 µs    200 ns   2.00"), "{text}");
    assert!(lines[2].ends_with("INVALID"), "{text}");
}
