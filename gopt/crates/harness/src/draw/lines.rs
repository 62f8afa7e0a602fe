//! Lines over an axis. Measured figures are dots, each with its spread as a stroke; a hollow
//! dot is a figure that may be wrong. Baselines are dashed, and diamonds are published figures.

use super::axis::{Axis, Placed, Scale};
use super::svg::{self, Anchor, WIDTH};

/// Edges of the plot, the part that contains the lines: its top, and the margin at its right.
const TOP: f64 = 54.0;
const RIGHT: f64 = 14.0;
/// Height of the plot.
const PLOT: f64 = 240.0;
/// The distance from one line of the legend to the next.
const KEY_LINE: f64 = 20.0;
/// The width of a line's sample in the legend, and of the gap between entries.
const KEY_SAMPLE: f64 = 26.0;
const KEY_GAP: f64 = 22.0;

/// Spreads are shown down to this factor below their figure, and up to this factor above the
/// largest figure.
const SPREAD_SHOWN: f64 = 1.5;

/// The kind of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A measurement.
    Measured,
    /// The baseline of a measurement.
    Baseline,
    /// A value that others have published.
    Published,
    /// Many points whose overall course matters.
    Course,
}

/// A value at a place.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    /// The place on the horizontal axis.
    pub x: f64,
    /// The value.
    pub y: f64,
    /// The smallest and largest that were measured.
    pub spread: Option<(f64, f64)>,
    /// False if the figure does not count: it is drawn as a hollow dot.
    pub valid: bool,
    /// The text that a reader sees when pointing at it.
    pub hint: String,
}

impl Point {
    /// A value without spread or hint.
    pub fn at(x: f64, y: f64) -> Self {
        Self {
            x,
            y,
            spread: None,
            valid: true,
            hint: String::new(),
        }
    }
}

/// A line of a chart.
#[derive(Clone, PartialEq, Debug)]
pub struct Line {
    /// The line's name in the legend.
    pub name: String,
    /// The line's colour; `None` if the line belongs to no transport.
    pub colour: Option<usize>,
    /// How the line is drawn.
    pub kind: Kind,
    /// The points, from left to right.
    pub points: Vec<Point>,
    /// The letter next to each point of a published line, and before the line's name in the legend.
    pub letter: Option<String>,
}

/// A chart of lines, with its axes.
#[derive(Clone, PartialEq, Debug)]
pub struct Chart {
    /// The text above the chart.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The lines, in the order of the legend.
    pub lines: Vec<Line>,
}

impl Chart {
    /// The content of the chart's element, and the element's height.
    pub(super) fn draw(&self) -> (String, f64) {
        let mut out = String::new();
        let bottom = TOP + PLOT;
        let ys = self.ys().map(|y| y.round_ticks());
        let widest = ys.iter().flatten().map(|(_, label)| svg::width(label));
        let left = widest.fold(24.0, f64::max) + 12.0;
        svg::text(&mut out, "title", (0.0, 18.0), Anchor::Start, &self.title);
        svg::text(&mut out, "unit", (0.0, 38.0), Anchor::Start, &self.y.label);
        let x = self.xs((left, WIDTH - RIGHT));
        for (y, label) in ys.iter().flatten() {
            svg::path(&mut out, "grid", [(left, *y), (WIDTH - RIGHT, *y)]);
            let at = (left - 8.0, y + 4.0);
            svg::text(&mut out, "number", at, Anchor::End, label);
        }
        let ticks = match self.x.scale {
            Scale::Linear => x.round_ticks(),
            _ => x.own_ticks(svg::width),
        };
        for (at, label) in ticks {
            svg::path(&mut out, "frame", [(at, bottom), (at, bottom + 4.0)]);
            svg::text(
                &mut out,
                "number",
                (at, bottom + 18.0),
                Anchor::Middle,
                &label,
            );
        }
        svg::path(&mut out, "frame", [(left, bottom), (WIDTH - RIGHT, bottom)]);
        let middle = f64::midpoint(left, WIDTH - RIGHT);
        svg::text(
            &mut out,
            "unit",
            (middle, bottom + 36.0),
            Anchor::Middle,
            &self.x.label,
        );
        if let Some(y) = self.ys() {
            // Baselines are drawn under measured lines, and published values over them.
            let order = [
                Kind::Baseline,
                Kind::Course,
                Kind::Measured,
                Kind::Published,
            ];
            for kind in order {
                let lines = self.lines.iter().filter(|line| line.kind == kind);
                lines.for_each(|line| line.draw(&mut out, &x, &y));
            }
        }
        let height = self.draw_keys(&mut out, bottom + 58.0);
        (out, height)
    }

    fn xs(&self, places: (f64, f64)) -> Placed {
        let values = self.lines.iter().flat_map(|line| &line.points);
        self.x.over(values.map(|point| point.x), places)
    }

    fn ys(&self) -> Option<Placed> {
        let points = self.lines.iter().flat_map(|line| &line.points);
        let points: Vec<&Point> = points.collect();
        let largest = points.iter().map(|point| point.y).fold(0.0, f64::max);
        let values = points.iter().flat_map(|point| {
            let (low, high) = point.spread.unwrap_or((point.y, point.y));
            // One bad round must not flatten all lines: its stroke ends at the edge instead.
            let near = point.y / SPREAD_SHOWN..=largest * SPREAD_SHOWN;
            [point.y, low.max(*near.start()), high.min(*near.end())]
        });
        let y = self.y.over(values, (TOP + PLOT, TOP));
        (!self.lines.is_empty()).then_some(y)
    }

    /// Draws the legend, in as many lines of text as it needs. Returns where they end.
    fn draw_keys(&self, out: &mut String, top: f64) -> f64 {
        let (mut x, mut y) = (0.0, top);
        for line in &self.lines {
            let name = line
                .letter
                .iter()
                .fold(String::new(), |all, it| all + it + "  ")
                + &line.name;
            let width = KEY_SAMPLE + svg::width(&name);
            if x > 0.0 && x + width > WIDTH {
                (x, y) = (0.0, y + KEY_LINE);
            }
            line.draw_sample(out, (x, y - 4.0));
            svg::text(out, "key", (x + KEY_SAMPLE, y), Anchor::Start, &name);
            x += width + KEY_GAP;
        }
        y + 10.0
    }
}

impl Line {
    fn draw(&self, out: &mut String, x: &Placed, y: &Placed) {
        let colour = svg::colour(self.colour);
        let places = self.points.iter().filter_map(|point| {
            let at = (x.at(point.x)?, y.at(point.y)?);
            Some((point, at))
        });
        let places: Vec<(&Point, (f64, f64))> = places.collect();
        let way = places.iter().map(|(_, at)| *at);
        if places.len() > 1 {
            svg::path(out, &format!("{colour} {}", self.kind.stroke()), way);
        }
        for (point, at) in &places {
            if self.kind == Kind::Measured
                && let Some((low, high)) = point.spread
                && let (Some(low), Some(high)) = (y.at(low), y.at(high))
            {
                let ends = [low, high].map(|it| (at.0, it.clamp(TOP, TOP + PLOT)));
                svg::path(out, &format!("{colour} spread"), ends);
            }
            match self.kind {
                Kind::Measured if point.valid => {
                    svg::dot(out, &format!("{colour} dot"), *at, &point.hint);
                }
                Kind::Measured => svg::dot(out, &format!("{colour} doubt"), *at, &point.hint),
                Kind::Published => {
                    svg::diamond(out, &format!("{colour} told"), *at, &point.hint);
                    if let Some(letter) = &self.letter {
                        // Neighbouring letters are on different sides, because figures may be
                        // close.
                        let is_even = letter.bytes().last().is_some_and(|it| it % 2 == 0);
                        let (side, anchor) = match is_even {
                            true => (-9.0, Anchor::End),
                            false => (9.0, Anchor::Start),
                        };
                        svg::text(out, "key", (at.0 + side, at.1 + 4.0), anchor, letter);
                    }
                }
                // A single point would not be visible on a line without dots.
                _ if places.len() == 1 => {
                    svg::dot(out, &format!("{colour} dot weak"), *at, &point.hint);
                }
                _ => {}
            }
        }
    }

    fn draw_sample(&self, out: &mut String, (x, y): (f64, f64)) {
        let colour = svg::colour(self.colour);
        let class = format!("{colour} {}", self.kind.stroke());
        svg::path(out, &class, [(x, y), (x + 20.0, y)]);
        match self.kind {
            Kind::Measured => svg::dot(out, &format!("{colour} dot"), (x + 10.0, y), &self.name),
            Kind::Published => {
                svg::diamond(out, &format!("{colour} told"), (x + 10.0, y), &self.name);
            }
            Kind::Baseline | Kind::Course => {}
        }
    }
}

impl Kind {
    const fn stroke(self) -> &'static str {
        match self {
            Self::Measured => "line",
            Self::Baseline => "base",
            Self::Published => "tell",
            Self::Course => "thin",
        }
    }
}
