//! Elements of SVG as text. Numbers have one decimal, which is finer than a screen.

use std::fmt::{Display, Write as _};

/// Width of a chart.
pub(super) const WIDTH: f64 = 620.0;

/// The number of colours, in the classes `k0`, `k1`, …; further lines start again at the first.
pub(super) const COLOURS: usize = 8;

/// Escapes a text, so that nothing in it is markup.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
    out
}

/// The class of a colour. Without an index, the class of texts.
pub(super) fn colour(index: Option<usize>) -> String {
    index.map_or_else(String::new, |index| format!("k{}", index % COLOURS))
}

/// The approximate width of a text of the usual size. It is more than in most fonts, to leave room.
pub(super) fn width(text: &str) -> f64 {
    let characters = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    f64::from(characters) * 7.1
}

/// The part of a text that is at its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A text with a class.
pub(super) fn text(out: &mut String, class: &str, (x, y): (f64, f64), anchor: Anchor, what: &str) {
    let anchor = match anchor {
        Anchor::Start => "start",
        Anchor::Middle => "middle",
        Anchor::End => "end",
    };
    let what = escape(what);
    push(
        out,
        format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{what}\
             </text>"
        ),
    );
}

/// A line through these places.
pub(super) fn path(out: &mut String, class: &str, points: impl IntoIterator<Item = (f64, f64)>) {
    let mut data = String::new();
    for (index, (x, y)) in points.into_iter().enumerate() {
        let step = if index == 0 { 'M' } else { 'L' };
        let _ = write!(data, "{step}{x:.1} {y:.1}");
    }
    push(out, format_args!("<path class=\"{class}\" d=\"{data}\"/>"));
}

/// A mark at a place, with a hint that appears under the pointer.
pub(super) fn dot(out: &mut String, class: &str, (x, y): (f64, f64), hint: &str) {
    let hint = escape(hint);
    push(
        out,
        format_args!(
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"><title>{hint}</title>\
             </circle>"
        ),
    );
}

/// A mark of another form, for published values.
pub(super) fn diamond(out: &mut String, class: &str, (x, y): (f64, f64), hint: &str) {
    let hint = escape(hint);
    push(
        out,
        format_args!(
            "<path class=\"{class}\" d=\"M{x:.1} {:.1}l5.5 5.5l-5.5 5.5l-5.5 -5.5z\"><title>{hint}\
             </title></path>",
            y - 5.5
        ),
    );
}

/// A filled bar from `left` to `right`.
pub(super) fn bar(out: &mut String, class: &str, left: f64, right: f64, (y, height): (f64, f64)) {
    let width = (right - left).max(1.0);
    push(
        out,
        format_args!(
            "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\" rx=\"2\"/>"
        ),
    );
}

/// One element, on a line of its own.
pub(super) fn push(out: &mut String, element: impl Display) {
    let _ = writeln!(out, "{element}");
}
