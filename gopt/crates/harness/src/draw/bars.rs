//! Bars with names, for figures without an order on an axis. Each bar may have a stroke for its
//! baseline, and a diamond for a published value.

use super::axis::{Axis, Scale};
use super::svg::{self, Anchor, WIDTH};
use crate::figure;

const TOP: f64 = 54.0;
/// The distance from one bar to the next, and the thickness of a bar.
const STEP: f64 = 26.0;
const THICK: f64 = 15.0;
/// Room to the right of a bar.
const RIGHT: f64 = 180.0;

/// One bar.
#[derive(Clone, PartialEq, Debug)]
pub struct Bar {
    /// The text at the left of the bar.
    pub name: String,
    /// The number of its colour, as in [`Line`](crate::draw::Line).
    pub colour: Option<usize>,
    /// The value, which is the bar's length.
    pub value: f64,
    /// The smallest and the largest value.
    pub spread: Option<(f64, f64)>,
    /// False if the bar is drawn pale.
    pub valid: bool,
    /// The value of the baseline.
    pub baseline: Option<f64>,
    /// The value that others have published.
    pub published: Option<f64>,
}

/// A chart of bars, all in one unit.
#[derive(Clone, PartialEq, Debug)]
pub struct Bars {
    /// The text above the bars.
    pub title: String,
    /// The axis of values.
    pub axis: Axis,
    /// The meaning of the strokes, if bars have them.
    pub baseline: String,
    /// The meaning of the diamonds.
    pub published: String,
    /// The bars, from top to bottom.
    pub bars: Vec<Bar>,
}

impl Bars {
    /// The content of the chart's element, and the element's height.
    pub(super) fn draw(&self) -> (String, f64) {
        let mut out = String::new();
        svg::text(&mut out, "title", (0.0, 18.0), Anchor::Start, &self.title);
        svg::text(
            &mut out,
            "unit",
            (0.0, 38.0),
            Anchor::Start,
            &self.axis.label,
        );
        let names = self.bars.iter().map(|bar| svg::width(&bar.name));
        let left = names.fold(40.0, f64::max) + 10.0;
        let values = self.bars.iter().flat_map(|bar| {
            let (low, high) = bar.spread.unwrap_or((bar.value, bar.value));
            [
                Some(bar.value),
                Some(low),
                Some(high),
                bar.baseline,
                bar.published,
            ]
        });
        let x = self.axis.over(values.flatten(), (left, WIDTH - RIGHT));
        let mut y = TOP;
        for bar in &self.bars {
            let middle = y + THICK / 2.0;
            svg::text(
                &mut out,
                "key",
                (left - 8.0, middle + 4.0),
                Anchor::End,
                &bar.name,
            );
            bar.draw(&mut out, (left, y), &|value| x.at(value).unwrap_or(left));
            let words = bar.words(self.axis.unit);
            let at = (WIDTH - RIGHT + 12.0, middle + 4.0);
            svg::text(&mut out, "value", at, Anchor::Start, &words);
            y += STEP;
        }
        svg::path(
            &mut out,
            "frame",
            [(left, TOP - 5.0), (left, y - STEP + THICK + 5.0)],
        );
        let height = self.draw_keys(&mut out, (left, y + 12.0));
        (out, height)
    }

    fn draw_keys(&self, out: &mut String, (mut x, y): (f64, f64)) -> f64 {
        let has = |of: fn(&Bar) -> Option<f64>| self.bars.iter().any(|bar| of(bar).is_some());
        let is_baseline = has(|bar| bar.baseline);
        let is_published = has(|bar| bar.published);
        if is_baseline {
            svg::path(out, "tick", [(x + 6.0, y - 10.0), (x + 6.0, y + 2.0)]);
            svg::text(out, "key", (x + 16.0, y), Anchor::Start, &self.baseline);
            x += svg::width(&self.baseline) + 40.0;
        }
        if is_published {
            svg::diamond(out, "told", (x + 6.0, y - 4.0), &self.published);
            svg::text(out, "key", (x + 16.0, y), Anchor::Start, &self.published);
        }
        if is_baseline || is_published {
            y + 10.0
        } else {
            y - 14.0
        }
    }
}

impl Bar {
    fn draw(&self, out: &mut String, (left, y): (f64, f64), at: &dyn Fn(f64) -> f64) {
        let colour = svg::colour(self.colour);
        let shade = if self.valid { "bar" } else { "bar weak" };
        let right = at(self.value);
        svg::bar(out, &format!("{colour} {shade}"), left, right, (y, THICK));
        let middle = y + THICK / 2.0;
        if let Some((low, high)) = self.spread {
            svg::path(out, "frame", [(at(low), middle), (at(high), middle)]);
        }
        if let Some(baseline) = self.baseline {
            let x = at(baseline);
            svg::path(out, "tick", [(x, y - 3.0), (x, y + THICK + 3.0)]);
        }
        if let Some(published) = self.published {
            let hint = format!("published: {published}");
            svg::diamond(out, "told", (at(published), middle), &hint);
        }
    }

    /// The text at the right of a bar: the figure and its ratio.
    fn words(&self, unit: &str) -> String {
        let mut words = figure::figure(self.value, unit);
        if let Some(baseline) = self.baseline.filter(|it| *it != 0.0) {
            words += &format!("   {:.2}×", self.value / baseline);
        }
        if !self.valid {
            words += "  (invalid)";
        }
        words
    }
}

/// Bars begin at 0, so that their lengths can be compared.
pub fn zero_based(label: impl Into<String>, unit: &'static str) -> Axis {
    Axis::new(label, unit, Scale::Linear)
}
