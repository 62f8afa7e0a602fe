//! Queue length and throughput over time, a line for each run (SVG).

use dunlin_scenario::{Done, micros, title};
use dunlin_sim::scenario::Point;
use harness::draw::{self, Axis, Chart, Kind, Line, Picture, Scale};

/// One chart: its name, its unit, and its value for a point.
type Kept = (&'static str, &'static str, fn(&Point) -> f64);

const CHARTS: [Kept; 2] = [
    ("Longest queue of a switch", "KB", |point| {
        micros(point.longest_queue) * 1000.0 / 1024.0
    }),
    ("Data delivered", "Gbit/s", |point| point.gbps),
];

/// The picture of these runs.
pub(super) fn draw(all: &[Done]) -> String {
    draw::sheet(&CHARTS.map(|kept| chart(kept, all)), 1)
}

fn chart((name, unit, value): Kept, all: &[Done]) -> Picture {
    let line = |(colour, done): (usize, &Done)| {
        let points = done.report.series.iter();
        let points = points.map(|point| draw::Point::at(micros(point.at.0), value(point)));
        Line {
            name: title(&done.variant),
            colour: Some(colour),
            kind: Kind::Course,
            points: points.collect(),
            letter: None,
        }
    };
    Picture::Lines(Chart {
        title: name.to_owned(),
        x: Axis::new("time in the simulation", "us", Scale::Linear),
        y: Axis::new(unit, "", Scale::Linear),
        lines: all.iter().enumerate().map(line).collect(),
    })
}
