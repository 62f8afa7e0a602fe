//! Edits of a text by byte ranges. Bytes that no edit touches are copied, so comments, macros, `#`
//! lines and layout stay. An edit consists of new text and of ranges of the old text, which are
//! rendered with the edits inside them.

use std::ops::Range;

/// A part of an edit's replacement.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    New(String),
    Old(Range<usize>),
    /// Like `Old`, for text that moves here. The edit of the whole range, which removes the text
    /// from its old place, is ignored here.
    Moved(Range<usize>),
}

impl From<&str> for Piece {
    fn from(text: &str) -> Self {
        Self::New(text.to_owned())
    }
}

impl From<String> for Piece {
    fn from(text: String) -> Self {
        Self::New(text)
    }
}

impl From<Range<usize>> for Piece {
    fn from(range: Range<usize>) -> Self {
        Self::Old(range)
    }
}

struct Edit {
    range: Range<usize>,
    pieces: Vec<Piece>,
}

/// The edits of one text. Any two of them are disjoint, or one contains the other.
#[derive(Default)]
pub(crate) struct Edits {
    edits: Vec<Edit>,
}

impl Edits {
    pub(crate) fn replace(&mut self, range: Range<usize>, pieces: Vec<Piece>) {
        self.edits.push(Edit { range, pieces });
    }

    pub(crate) fn insert(&mut self, at: usize, text: impl Into<String>) {
        self.replace(at..at, vec![Piece::New(text.into())]);
    }

    /// The whole text, edited.
    pub(crate) fn render(mut self, text: &str) -> String {
        // Of two edits that begin together, the longer one contains the other; insertions come
        // first.
        self.edits.sort_by_key(|edit| {
            let length = edit.range.len();
            (edit.range.start, length != 0, std::cmp::Reverse(length))
        });
        let mut out = String::with_capacity(text.len() * 2);
        self.copy(text, 0..text.len(), &|_| false, &mut out);
        out
    }

    /// Copies a range with the edits inside it, except those for which `is_left_out` holds.
    fn copy(
        &self,
        text: &str,
        range: Range<usize>,
        is_left_out: &dyn Fn(usize) -> bool,
        out: &mut String,
    ) {
        let mut at = range.start;
        let first = self
            .edits
            .partition_point(|edit| edit.range.start < range.start);
        for (number, edit) in self.edits.iter().enumerate().skip(first) {
            if edit.range.start > range.end {
                break;
            }
            let is_inside = edit.range.start >= at && edit.range.end <= range.end;
            // An edit that starts where a copied piece ends belongs to the text after the piece.
            let is_behind = edit.range.start == range.end && range.end != text.len();
            if is_left_out(number) || !is_inside || is_behind {
                continue;
            }
            out.push_str(&text[at..edit.range.start]);
            for piece in &edit.pieces {
                match piece {
                    Piece::New(new) => out.push_str(new),
                    Piece::Old(old) => self.copy(text, old.clone(), &|it| it == number, out),
                    Piece::Moved(old) => {
                        let is_whole = |it: usize| self.edits[it].range == *old;
                        self.copy(text, old.clone(), &is_whole, out);
                    }
                }
            }
            at = edit.range.end;
        }
        out.push_str(&text[at..range.end]);
    }
}
