//! Lines of the charts.

use serde_json::json;

use super::*;

fn row(form: &'static str, shape: &str, batch: Option<usize>, ratio: Option<f64>) -> Row {
    let mut params = json!({"lookup": "cuckoo", "form": form, "shape": shape});
    if let Some(batch) = batch {
        params["batch"] = batch.into();
    }
    Row {
        experiment: "gopt",
        transport: "none",
        params: params.as_object().cloned().unwrap_or_default(),
        metric: "lookups_per_s",
        unit: "1/s",
        median: 1.0,
        min: 1.0,
        max: 1.0,
        runs: 5,
        baseline: None,
        baseline_name: None,
        ratio,
        valid: true,
    }
}

#[test]
fn each_interleaved_form_is_a_line_of_its_shape() {
    let rows = [
        row("plain", "tight", None, None),
        row("gopt", "tight", Some(8), Some(2.0)),
        row("gopt", "tight", Some(16), Some(3.0)),
        row("hand", "tight", Some(8), Some(2.5)),
        row("c-gopt", "handler", Some(8), Some(4.0)),
    ];
    let charts = charts(&rows);
    let lines: Vec<usize> = charts.iter().map(|chart| chart.lines.len()).collect();
    assert_eq!(lines, [2, 0, 0, 1]);
    assert_eq!(charts[0].lines[0].points, [(8.0, 2.0), (16.0, 3.0)]);
    assert_eq!(charts[0].lines[0].name, "cuckoo, gopt");
    assert!(
        charts[0].lines[1].is_baseline,
        "hand is the line to compare with"
    );
}
