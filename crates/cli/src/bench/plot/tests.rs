//! What is drawn: lines for what was measured, and a sentence if there is nothing.

use serde_json::json;

use super::*;

fn latency(transport: &'static str, size: u32, median: f64, baseline: f64) -> Row {
    Row {
        experiment: "latency",
        transport,
        params: json!({ "size": size }).as_object().cloned().unwrap(),
        metric: "rtt_p50",
        unit: "ns",
        median,
        min: median,
        max: median,
        runs: 5,
        baseline: Some(baseline),
        baseline_name: Some("raw"),
        ratio: Some(median / baseline),
        valid: true,
    }
}

#[test]
fn each_transport_has_a_line_and_its_baseline_has_another() {
    let rows = [
        latency("shm", 8, 400.0, 200.0),
        latency("shm", 1024, 900.0, 500.0),
        latency("auto", 8, 410.0, 200.0),
        latency("udp", 8, 4_000.0, 3_500.0),
    ];
    let charts = charts(&rows);
    assert_eq!(charts.len(), 1);
    let names: Vec<&str> = charts[0].lines.iter().map(|line| &line.name[..]).collect();
    let expected = [
        "dunlin, shm",
        "raw, shm",
        "dunlin, auto",
        "dunlin, udp",
        "raw, udp",
    ];
    assert_eq!(names, expected);
    assert_eq!(charts[0].lines[0].points, [(8.0, 0.4), (1024.0, 0.9)]);
    assert_eq!(charts[0].lines[1].points, [(8.0, 0.2), (1024.0, 0.5)]);
    let svg = draw(&rows).unwrap();
    assert!(
        svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"),
        "{svg}"
    );
    assert!(expected.iter().all(|name| svg.contains(name)), "{svg}");
}

#[test]
fn nothing_to_draw_is_said() {
    assert!(
        draw(&[])
            .unwrap()
            .contains("no rows of latency, rate or gopt")
    );
}

#[test]
fn a_range_contains_its_values_and_is_never_empty() {
    let range = range([4.0, 0.0, 2.0].into_iter());
    assert!(range.contains(&2.0) && range.contains(&4.0) && range.start > 0.0);
    assert_eq!(super::range(std::iter::empty()), 0.1..10.0);
}

#[test]
fn labels_do_not_crowd() {
    assert_eq!(number(0.05), "0.05");
    assert_eq!(
        [number(1.0), number(2.0), number(500.0)],
        ["1.0", "2.0", "500"]
    );
    assert_eq!([number(3.0), number(900.0)], ["", ""]);
}
