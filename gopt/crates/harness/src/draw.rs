//! Charts as SVG: lines over an axis, and bars with names. Only this module draws: `bench --svg`,
//! `sim --plot` and `report` choose the figures, and it decides how they look.
//!
//! Colours are classes of `draw/chart.css`, so one picture serves light and dark screens. This
//! module has no font metrics: it estimates the room for texts, and a test measures it in a
//! browser.

mod axis;
mod bars;
mod lines;
mod svg;

pub use axis::{Axis, Scale};
pub use bars::{Bar, Bars, zero_based};
pub use lines::{Chart, Kind, Line, Point};
use svg::WIDTH;
pub use svg::escape;

/// The space between the charts of a sheet, and around them.
const GAP: f64 = 16.0;

/// The style of charts, for a page that contains some.
pub const STYLE: &str = include_str!("draw/chart.css");

/// Something that can be drawn.
#[derive(Clone, Debug)]
pub enum Picture {
    /// Lines over an axis.
    Lines(Chart),
    /// Bars with names.
    Bars(Bars),
}

impl Picture {
    /// The picture's title.
    pub fn title(&self) -> &str {
        match self {
            Self::Lines(chart) => &chart.title,
            Self::Bars(bars) => &bars.title,
        }
    }

    /// An `svg` element that takes its style from the page around it, which must contain [`STYLE`].
    pub fn svg(&self) -> String {
        let (inner, height) = self.inner();
        let title = escape(self.title());
        format!(
            "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
             aria-label=\"{title}\" xmlns=\"http://www.w3.org/2000/svg\">\n{inner}</svg>\n"
        )
    }

    /// The content of the element, and its height.
    fn inner(&self) -> (String, f64) {
        match self {
            Self::Lines(chart) => chart.draw(),
            Self::Bars(bars) => bars.draw(),
        }
    }
}

/// A complete file with all of these pictures, `columns` of them in a row. Without pictures, the
/// file has one line of text that says that there is nothing to draw.
pub fn sheet(pictures: &[Picture], columns: usize) -> String {
    let columns = columns.clamp(1, pictures.len().max(1));
    let (mut parts, mut y) = (String::new(), GAP);
    for row in pictures.chunks(columns) {
        let mut tallest = 0.0_f64;
        let mut x = GAP;
        for picture in row {
            let (inner, height) = picture.inner();
            parts += &format!("<g transform=\"translate({x},{y})\">\n{inner}</g>\n");
            tallest = tallest.max(height);
            x += WIDTH + GAP;
        }
        y += tallest + GAP;
    }
    if pictures.is_empty() {
        y += 40.0;
        parts += "<text class=\"title\" x=\"40\" y=\"40\">no rows that can be drawn</text>\n";
    }
    let columns = u32::try_from(columns).expect("a sheet has few columns");
    let width = f64::from(columns) * (WIDTH + GAP) + GAP;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart sheet\" width=\"{width}\" \
         height=\"{y}\" viewBox=\"0 0 {width} {y}\">\n<style>\n{STYLE}</style>\n\
         <rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n{parts}</svg>\n"
    )
}

#[cfg(test)]
mod tests;
