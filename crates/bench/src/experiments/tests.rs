//! The charts and published figures of experiments, and the names of their processes.

use std::collections::BTreeSet;

use harness::draw::{Kind, Line, Picture};
use serde_json::{Map, json};

use super::*;
use crate::harness::case::Case;
use crate::harness::experiment::Sweep;
use crate::output::sample::sample;

fn charts(experiment: &str, rows: &[Row]) -> Vec<Picture> {
    find(experiment).unwrap().charts(rows)
}

fn latency(transport: &'static str, size: u32, median: f64, baseline: f64) -> Row {
    Row {
        transport: transport.into(),
        params: Map::from_iter([("size".to_owned(), size.into())]),
        median,
        baseline: Some(baseline),
        baseline_name: Some(format!("raw {transport}").into()),
        ..sample()
    }
}

fn lines(picture: &Picture) -> &[Line] {
    match picture {
        Picture::Lines(chart) => &chart.lines,
        Picture::Bars(bars) => panic!("{} has bars", bars.title),
    }
}

#[test]
fn each_transport_has_a_line_and_its_baseline_has_another() {
    let rows = [
        latency("shm", 1024, 900.0, 500.0),
        latency("shm", 8, 400.0, 200.0),
        latency("auto", 8, 410.0, 200.0),
        latency("udp", 8, 4_000.0, 3_500.0),
    ];
    let charts = charts("latency", &rows);
    assert_eq!(charts.len(), 1, "the 99th percentile was not measured");
    let names: Vec<&str> = lines(&charts[0])
        .iter()
        .map(|line| &line.name[..])
        .collect();
    let here = ["shm", "raw shm", "auto", "udp", "raw udp"];
    assert_eq!(names[..5], here);
    assert!(
        names[5..].iter().all(|name| name.starts_with("eRPC, CX")),
        "{names:?}"
    );
    let points = |line: &Line| -> Vec<(f64, f64)> {
        line.points.iter().map(|point| (point.x, point.y)).collect()
    };
    assert_eq!(
        points(&lines(&charts[0])[0]),
        [(8.0, 400.0), (1024.0, 900.0)]
    );
    assert_eq!(
        points(&lines(&charts[0])[1]),
        [(8.0, 200.0), (1024.0, 500.0)]
    );
    let svg = draw(&rows);
    assert!(here.iter().all(|name| svg.contains(name)), "{svg}");
}

#[test]
fn an_experiment_without_rows_has_no_chart_even_with_published_figures() {
    assert!(charts("incast", &[latency("shm", 8, 400.0, 200.0)]).is_empty());
    assert!(draw(&[]).contains("no rows that can be drawn"));
}

#[test]
fn rates_without_packing_are_not_mixed_with_the_others() {
    let rate = |packing: bool, median| Row {
        experiment: "rate".into(),
        metric: "rpc_per_s".into(),
        transport: "udp".into(),
        params: json!({"batch": 3, "pattern": "one_way", "packing": packing})
            .as_object()
            .cloned()
            .unwrap_or_default(),
        median,
        ..sample()
    };
    let charts = charts("rate", &[rate(true, 3e6), rate(false, 1e6)]);
    assert_eq!(lines(&charts[0])[0].points.len(), 1);
    assert!((lines(&charts[0])[0].points[0].y - 3e6).abs() < 1.0);
}

#[test]
fn published_figures_appear_beside_rows_that_measure_the_same() {
    let incast = |cc: &str| Row {
        experiment: "incast".into(),
        metric: "rtt_p50_us".into(),
        transport: "sim".into(),
        params: json!({"degree": 50, "cc": cc})
            .as_object()
            .cloned()
            .unwrap_or_default(),
        unit: "us".into(),
        ..sample()
    };
    let of_scheme = |cc| -> Vec<f64> {
        let row = incast(cc);
        let published = find("incast").unwrap().published.iter();
        let beside = published.filter(|it| it.is_beside(&row));
        beside.map(|it| it.value).collect()
    };
    assert_eq!(of_scheme("timely"), [34.0], "eRPC, table 5");
    assert_eq!(of_scheme("none"), [524.0]);
    assert!(of_scheme("swift").is_empty(), "the paper has no Swift");
    let charts = charts("incast", &[incast("timely"), incast("swift")]);
    let names: Vec<&str> = lines(&charts[0])
        .iter()
        .map(|line| &line.name[..])
        .collect();
    assert_eq!(
        names,
        ["eRPC, CX4, none", "timely", "eRPC, CX4, timely", "swift"]
    );
}

#[test]
fn published_figures_have_the_colours_of_the_measured_lines() {
    let rows = ["latency_p50_us", "latency_p9999_us"].map(|metric| Row {
        experiment: "cluster".into(),
        metric: metric.into(),
        params: Map::from_iter([("endpoints".to_owned(), 1.into())]),
        ..sample()
    });
    let charts = charts("cluster", &rows);
    let colours = |kind| {
        let lines = lines(&charts[0]).iter().filter(move |it| it.kind == kind);
        lines.map(|it| it.colour).collect::<Vec<_>>()
    };
    assert_eq!(colours(Kind::Published), colours(Kind::Measured));
    assert_eq!(colours(Kind::Published).len(), 2);
}

#[test]
fn a_name_stands_for_one_experiment_and_for_one_role() {
    let mut names = BTreeSet::new();
    for name in ALL
        .iter()
        .flat_map(|it| [Some(it.name), it.alias])
        .flatten()
    {
        assert!(names.insert(name), "two experiments are called {name}");
    }
    for experiment in ALL {
        assert!(!experiment.name.is_empty() && !experiment.about.is_empty());
    }
    // A server or a baseline may serve several experiments, but its name means the same role in all
    // of them.
    for role in super::roles() {
        let same = super::roles().filter(|it| it.name() == role.name());
        let runs: BTreeSet<String> = same.map(|it| format!("{it:?}")).collect();
        assert_eq!(
            runs.len(),
            1,
            "two roles are called {}: {runs:?}",
            role.name()
        );
    }
}

/// An aim whose metric or parameters no row has would judge nothing.
#[cfg(feature = "full")]
#[test]
fn every_aim_has_a_row() {
    let mut lost = Vec::new();
    for experiment in ALL.iter().filter(|it| !it.aims.is_empty()) {
        let sweep = Sweep {
            transports: experiment.allowed,
            sizes: experiment.sizes,
            are_sizes_chosen: false,
            items_mib: experiment.items_mib.unwrap_or(0),
        };
        let cases = (experiment.cases)(&sweep).unwrap();
        let rows = || cases.iter().flat_map(Case::unmeasured);
        let alone = experiment.aims.iter();
        let alone = alone.filter(|it| !rows().any(|row| it.is_for(&row)));
        lost.extend(alone.map(|it| (experiment.name, it.metric, it.params)));
    }
    assert!(lost.is_empty(), "{lost:?}");
}

/// A published figure whose metric or parameters no row has would disappear without a word.
#[test]
fn every_published_figure_of_a_service_has_a_row_beside_it() {
    let mut lost = Vec::new();
    // The figures of some experiments without a service are points of a line in the charts, and
    // `factors` counts instructions before it knows its cases.
    let names = ["kv", "replica", "index", "sequencer"];
    for experiment in ALL.iter().filter(|it| names.contains(&it.name)) {
        let sweep = Sweep {
            transports: experiment.allowed,
            sizes: experiment.sizes,
            are_sizes_chosen: false,
            #[cfg(feature = "kv")]
            items_mib: experiment.items_mib.unwrap_or(0),
        };
        let cases = (experiment.cases)(&sweep).unwrap();
        let rows = || cases.iter().flat_map(Case::unmeasured);
        let alone = experiment.published.iter();
        let alone = alone.filter(|it| !rows().any(|row| it.is_beside(&row)));
        lost.extend(alone.map(|it| (experiment.name, it.metric, it.what)));
    }
    assert!(lost.is_empty(), "{lost:?}");
}
