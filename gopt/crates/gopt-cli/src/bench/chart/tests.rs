//! The forms and look-ups that become lines of the charts.

use harness::row::Spread;
use serde_json::json;

use super::*;

fn row(form: &'static str, shape: &str, batch: Option<usize>, ratio: Option<f64>) -> Row {
    let mut params = json!({"lookup": "cuckoo", "form": form, "shape": shape});
    if let Some(batch) = batch {
        params["batch"] = batch.into();
    }
    let spread = Spread {
        median: 2.0,
        min: 1.0,
        max: 3.0,
    };
    Row {
        params: params.as_object().cloned().unwrap_or_default(),
        ratio,
        ..Row::new("gopt", ("lookups_per_s", "1/s"), spread)
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
    let charts = charts(&rows).into_iter().map(|picture| match picture {
        Picture::Lines(chart) => chart,
        Picture::Bars(bars) => panic!("{} has bars", bars.title),
    });
    let charts: Vec<Chart> = charts.collect();
    let lines: Vec<usize> = charts.iter().map(|chart| chart.lines.len()).collect();
    assert_eq!(lines, [2, 1], "the others have none and are left out");
    let [gopt, hand] = &charts[0].lines[..] else {
        panic!("not exactly two lines");
    };
    let points: Vec<(f64, f64)> = gopt.points.iter().map(|point| (point.x, point.y)).collect();
    assert_eq!(points, [(8.0, 2.0), (16.0, 3.0)]);
    assert_eq!(gopt.name, "cuckoo, gopt");
    assert_eq!(
        hand.kind,
        Kind::Baseline,
        "hand is the line to compare with"
    );
}
