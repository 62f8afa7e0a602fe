//! Rows as a picture (SVG): round trips by size, and rates by batch, each beside its baseline.

use anyhow::anyhow;
use plotters::coord::Shift;
use plotters::prelude::*;
use serde_json::Value;

use super::gopt;
use super::row::Row;

/// Width of the picture, and height of one chart.
const SIZE: (u32, u32) = (900, 420);

/// Width of the place beside a chart that says what the lines are.
const LEGEND: i32 = 150;

/// Colours of shm, auto and udp.
const COLOURS: [RGBColor; 3] = [
    RGBColor(31, 119, 180),
    RGBColor(44, 160, 44),
    RGBColor(214, 39, 40),
];

/// A line of a chart.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) colour: RGBColor,
    pub(super) is_baseline: bool,
    /// The parameter that grows to the right, and the figure.
    pub(super) points: Vec<(f64, f64)>,
}

impl Line {
    fn style(&self) -> ShapeStyle {
        let (opacity, stroke_width) = if self.is_baseline { (0.4, 1) } else { (1.0, 2) };
        ShapeStyle {
            color: self.colour.mix(opacity),
            filled: true,
            stroke_width,
        }
    }
}

/// A chart with logarithmic axes.
pub(super) struct Chart {
    pub(super) title: &'static str,
    pub(super) x_label: &'static str,
    pub(super) y_label: &'static str,
    pub(super) lines: Vec<Line>,
}

/// The picture of what can be drawn of these rows; one that says so if that is nothing.
///
/// # Errors
/// The library that draws cannot.
pub(super) fn draw(rows: &[Row]) -> anyhow::Result<String> {
    let charts = charts(rows);
    let height = SIZE.1 * u32::try_from(charts.len().max(1))?;
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (SIZE.0, height)).into_drawing_area();
        draw_all(&area, &charts).map_err(|error| anyhow!("cannot draw: {error}"))?;
    }
    Ok(svg)
}

fn charts(rows: &[Row]) -> Vec<Chart> {
    let latency = Chart {
        title: "Round trip of one RPC (median), and of a raw packet",
        x_label: "bytes",
        y_label: "µs",
        lines: lines(rows, ("latency", "rtt_p50"), "size", None, 1e-3),
    };
    let rate = |title, pattern| Chart {
        title,
        x_label: "requests issued together",
        y_label: "million RPCs (packets) per second",
        lines: lines(rows, ("rate", "rpc_per_s"), "batch", Some(pattern), 1e-6),
    };
    let charts = [
        latency,
        rate("RPCs per second, one process to another", "one_way"),
        rate("RPCs per second of each process, both ways", "symmetric"),
    ];
    let has_lines = |chart: &Chart| !chart.lines.is_empty();
    let charts = charts.into_iter().chain(gopt::charts(rows));
    charts.filter(has_lines).collect()
}

/// For each transport the line of its figures, and that of its baseline.
fn lines(
    rows: &[Row],
    (experiment, metric): (&str, &str),
    x: &str,
    pattern: Option<&str>,
    scale: f64,
) -> Vec<Line> {
    let mut lines = Vec::new();
    for (transport, colour) in ["shm", "auto", "udp"].into_iter().zip(COLOURS) {
        let wanted = rows.iter().filter(|row| {
            (row.experiment, row.metric, row.transport) == (experiment, metric, transport)
                && row.params.get("pattern").and_then(Value::as_str) == pattern
                && row.params.get("packing") != Some(&Value::Bool(false))
        });
        let wanted: Vec<(f64, &Row)> = wanted
            .filter_map(|row| Some((row.params.get(x)?.as_f64()?, row)))
            .collect();
        let points = |of: fn(&Row) -> Option<f64>| -> Vec<(f64, f64)> {
            let point = |&(x, row): &(f64, &Row)| Some((x, of(row)? * scale));
            wanted.iter().filter_map(point).collect()
        };
        let mut add = |name: String, is_baseline, points: Vec<(f64, f64)>| {
            if !points.is_empty() {
                lines.push(Line {
                    name,
                    colour,
                    is_baseline,
                    points,
                });
            }
        };
        add(
            format!("dunlin, {transport}"),
            false,
            points(|row| Some(row.median)),
        );
        // The baseline of auto is that of shm.
        if transport != "auto" {
            add(
                format!("raw, {transport}"),
                true,
                points(|row| row.baseline),
            );
        }
    }
    lines
}

type Drawn = Result<(), Box<dyn std::error::Error>>;

fn draw_all(area: &DrawingArea<SVGBackend<'_>, Shift>, charts: &[Chart]) -> Drawn {
    area.fill(&WHITE)?;
    if charts.is_empty() {
        let style = ("sans-serif", 20).into_font();
        area.draw_text(
            "no rows of latency, rate or gopt",
            &style.into_text_style(area),
            (40, 40),
        )?;
    }
    for (part, chart) in area
        .split_evenly((charts.len().max(1), 1))
        .iter()
        .zip(charts)
    {
        draw_chart(part, chart)?;
    }
    area.present()?;
    Ok(())
}

fn draw_chart(area: &DrawingArea<SVGBackend<'_>, Shift>, chart: &Chart) -> Drawn {
    let points = || chart.lines.iter().flat_map(|line| &line.points);
    let xs = range(points().map(|point| point.0));
    let ys = range(points().map(|point| point.1));
    let mut context = ChartBuilder::on(area)
        .caption(chart.title, ("sans-serif", 20))
        .margin(10)
        .margin_right(10 + LEGEND)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(xs.log_scale(), ys.log_scale())?;
    context
        .configure_mesh()
        .x_desc(chart.x_label)
        .y_desc(chart.y_label)
        .light_line_style(WHITE)
        .x_label_formatter(&|x| number(*x))
        .y_label_formatter(&|y| number(*y))
        .draw()?;
    for line in &chart.lines {
        let series = LineSeries::new(line.points.iter().copied(), line.style());
        context.draw_series(series.point_size(3))?;
    }
    draw_legend(area, &chart.lines)
}

/// What the lines are, at the right edge. The library's own legend can only stand on the lines.
fn draw_legend(area: &DrawingArea<SVGBackend<'_>, Shift>, lines: &[Line]) -> Drawn {
    let left = i32::try_from(area.dim_in_pixel().0)? - LEGEND;
    for (y, line) in (50..).step_by(18).zip(lines) {
        area.draw(&PathElement::new([(left, y), (left + 18, y)], line.style()))?;
        let style = ("sans-serif", 12).into_font().into_text_style(area);
        area.draw_text(&line.name, &style, (left + 24, y - 6))?;
    }
    Ok(())
}

/// From a bit below the smallest value to a bit above the largest.
fn range(values: impl Iterator<Item = f64>) -> std::ops::Range<f64> {
    let positive = values.filter(|value| *value > 0.0);
    let (least, most) = positive.fold((f64::MAX, f64::MIN_POSITIVE), |(least, most), value| {
        (least.min(value), most.max(value))
    });
    if least > most {
        return 0.1..10.0;
    }
    least / 1.5..most * 1.5
}

/// The label of a line of the mesh. Some have none: all those of a decade are too close together.
fn number(value: f64) -> String {
    let leading = value / 10_f64.powf((value.log10() + 1e-9).floor());
    if ![1.0, 2.0, 5.0].iter().any(|it| (leading - it).abs() < 1e-6) {
        return String::new();
    }
    let decimals = match value {
        value if value >= 10.0 => 0,
        value if value >= 1.0 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests;
