//! The places of points, bars and labels; and texts that would break the file.

use super::axis::Axis;
use super::*;

fn chart(points: Vec<Point>, scale: Scale) -> Chart {
    Chart {
        title: "a < b & \"c\"".to_owned(),
        x: Axis::new("x", "B", scale),
        y: Axis::new("y", "ns", Scale::Log),
        lines: vec![Line {
            name: "shm".to_owned(),
            colour: Some(0),
            kind: Kind::Measured,
            points,
            letter: None,
        }],
    }
}

#[test]
fn texts_are_escaped_wherever_they_stand() {
    let svg = Picture::Lines(chart(vec![Point::at(1.0, 2.0)], Scale::Each)).svg();
    assert_eq!(
        svg.matches("a &lt; b &amp; &quot;c&quot;").count(),
        2,
        "{svg}"
    );
    assert!(!svg.contains("a < b"));
}

#[test]
fn every_point_lies_on_the_picture_and_a_hollow_one_is_in_doubt() {
    let mut points: Vec<Point> = [8.0, 1024.0, 1e9].map(|x| Point::at(x, x * 10.0)).into();
    points[1].valid = false;
    // One round took a thousand times as long.
    points[1].spread = Some((1.0, 1e7));
    for scale in [Scale::Each, Scale::Log, Scale::Linear] {
        let (inner, height) = chart(points.clone(), scale).draw();
        let circles: Vec<&str> = inner
            .lines()
            .filter(|it| it.starts_with("<circle"))
            .collect();
        // One of the circles is in the legend.
        assert_eq!(circles.len(), 4, "{inner}");
        assert_eq!(inner.matches("k0 doubt").count(), 1);
        for circle in circles {
            let number = |name: &str| -> f64 {
                let from = circle.find(name).unwrap() + name.len();
                let text = &circle[from..];
                text[..text.find('"').unwrap()].parse().unwrap()
            };
            let (x, y) = (number("cx=\""), number("cy=\""));
            assert!(
                (0.0..=WIDTH).contains(&x) && (0.0..=height).contains(&y),
                "{circle}"
            );
        }
    }
}

#[test]
fn values_without_a_place_on_a_logarithmic_axis_are_left_out() {
    let points = vec![
        Point::at(0.0, 5.0),
        Point::at(10.0, 0.0),
        Point::at(10.0, 5.0),
    ];
    let (inner, _) = chart(points, Scale::Log).draw();
    assert_eq!(
        inner.matches("<circle").count(),
        2,
        "one, and the legend's: {inner}"
    );
    assert!(!inner.contains("NaN") && !inner.contains("inf"), "{inner}");
}

#[test]
fn a_chart_without_lines_and_a_sheet_without_charts_are_pictures_all_the_same() {
    let empty = Chart {
        lines: Vec::new(),
        ..chart(Vec::new(), Scale::Log)
    };
    assert!(!empty.draw().0.contains("NaN"));
    assert!(sheet(&[], 2).contains("no rows that can be drawn"));
}

#[test]
fn labels_do_not_crowd() {
    let axis = Axis::new("", "", Scale::Log);
    let placed = axis.over((1..=100).map(f64::from), (0.0, 400.0));
    let ticks = placed.own_ticks(svg::width);
    assert!(ticks.len() > 5 && ticks.len() < 30, "{ticks:?}");
    for pair in ticks.windows(2) {
        let half = |(_, label): &(f64, String)| svg::width(label) / 2.0;
        assert!(
            pair[1].0 - pair[0].0 >= half(&pair[0]) + half(&pair[1]),
            "{pair:?}"
        );
    }
    for (low, high) in [(1.0, 9.0), (3.0, 400.0), (1e-3, 1e6), (5.0, 5.1)] {
        let placed = axis.over([low, high].into_iter(), (0.0, 300.0));
        let count = placed.round_ticks().len();
        assert!((1..=12).contains(&count), "{low} to {high}: {count} labels");
    }
}

#[test]
fn bars_begin_at_the_same_place_and_say_their_figure_and_ratio() {
    let bar = |name: &str, value, baseline| Bar {
        name: name.to_owned(),
        colour: Some(1),
        value,
        spread: Some((value * 0.9, value * 1.1)),
        valid: name != "bad",
        baseline,
        published: None,
    };
    let bars = Bars {
        title: "t".to_owned(),
        axis: zero_based("time", "ns"),
        baseline: "raw".to_owned(),
        published: String::new(),
        bars: vec![bar("good", 500.0, Some(250.0)), bar("bad", 1_000.0, None)],
    };
    let (inner, _) = bars.draw();
    assert!(
        inner.contains("500 ns   2.00×") && inner.contains("1.00 µs  (invalid)"),
        "{inner}"
    );
    let starts: Vec<&str> = inner
        .lines()
        .filter(|line| line.starts_with("<rect"))
        .map(|line| &line[..line.find(" y=").unwrap()])
        .collect();
    assert_eq!(starts.len(), 2);
    assert_eq!(
        starts[0].split("x=").last(),
        starts[1].split("x=").last(),
        "{inner}"
    );
}
