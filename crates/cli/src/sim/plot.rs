//! Queue length and throughput over time, a line for each run (SVG).

use anyhow::anyhow;
use dunlin_sim::scenario::Point;
use plotters::coord::Shift;
use plotters::prelude::*;

use super::Done;
use super::output::{micros, title};

const WIDTH: u32 = 900;
const HEIGHT: u32 = 360;
/// Height of a line of the legend below the charts.
const LEGEND: u32 = 18;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// One chart: what it is called, and what it shows of a point.
type Chart = (&'static str, fn(&Point) -> f64);

const CHARTS: [Chart; 2] = [
    ("longest queue of a switch, KB", |point| {
        micros(point.longest_queue) * 1000.0 / 1024.0
    }),
    ("data delivered, Gbit/s", |point| point.gbps),
];

/// The picture of these runs.
///
/// # Errors
/// The library that draws cannot.
pub(super) fn draw(all: &[Done]) -> anyhow::Result<String> {
    let charts = u32::try_from(CHARTS.len())?;
    let height = HEIGHT * charts + LEGEND * (u32::try_from(all.len())? + 1);
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        draw_all(&area, all).map_err(|error| anyhow!("cannot draw: {error}"))?;
    }
    Ok(svg)
}

fn draw_all(area: &Area<'_>, all: &[Done]) -> Result<(), Box<dyn std::error::Error>> {
    area.fill(&WHITE)?;
    let mut rest = area.clone();
    for chart in CHARTS {
        let (top, below) = rest.split_vertically(HEIGHT);
        draw_chart(&top, chart, all)?;
        rest = below;
    }
    for (index, done) in all.iter().enumerate() {
        let y = i32::try_from(index)? * i32::try_from(LEGEND)? + 10;
        let colour = Palette99::pick(index).to_rgba();
        rest.draw(&PathElement::new(
            [(20, y + 6), (50, y + 6)],
            colour.stroke_width(2),
        ))?;
        let style = ("sans-serif", 13).into_font();
        rest.draw(&Text::new(title(&done.variant), (60, y), style))?;
    }
    Ok(())
}

fn draw_chart(
    area: &Area<'_>,
    (name, value): Chart,
    all: &[Done],
) -> Result<(), Box<dyn std::error::Error>> {
    let points = || all.iter().flat_map(|done| &done.report.series);
    let right = points().map(|point| micros(point.at.0)).fold(1.0, f64::max);
    let top = points().map(value).fold(1.0, f64::max);
    let mut chart = ChartBuilder::on(area)
        .caption(name, ("sans-serif", 16))
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d(0.0..right, 0.0..top * 1.05)?;
    chart.configure_mesh().x_desc("µs").draw()?;
    for (index, done) in all.iter().enumerate() {
        let colour = Palette99::pick(index).to_rgba();
        let line = done.report.series.iter();
        let line = line.map(|point| (micros(point.at.0), value(point)));
        chart.draw_series(LineSeries::new(line, colour.stroke_width(1)))?;
    }
    Ok(())
}
