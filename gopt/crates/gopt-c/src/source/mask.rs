//! Makes the copy that the parser gets. In it, words that the grammar does not know are replaced by
//! known words of the same length or less, and text that no pass needs is blank. The output is made
//! from the original. Called by `source.rs`.

use std::ops::Range;

use super::{MARKS, RESERVED, Source, blank, is_word, next_byte, parentheses_end};
use crate::diagnostic::{Diagnostic, LineMarker};

impl Source<'_> {
    /// Finds the words that the grammar does not know, and replaces them.
    pub(super) fn mask_words(&mut self, masked: &mut [u8]) -> Result<(), Diagnostic> {
        for range in &self.identifiers {
            let word = &self.text[range.clone()];
            match word {
                "foreach" => {
                    if next_byte(masked, range.end) != Some(b'(') {
                        let reason = "`foreach` is a word of gopt and cannot be a name here";
                        return Err(Diagnostic::refused(self.text, range.start, reason));
                    }
                    put(masked, range, "while");
                    self.foreach.push(range.start);
                }
                "__extension__" | "_Thread_local" | "__thread" => {
                    blank(&mut masked[range.clone()]);
                }
                // `volatile` may stand wherever one of these words may.
                "_Complex" | "__complex__" | "__complex" => put(masked, range, "volatile"),
                "case" => mask_range(masked, range.end),
                "__real__" | "__imag__" | "__real" | "__imag" => put(masked, range, "+"),
                // Their arguments are types, which the parser cannot read there; their values are
                // constants.
                "__builtin_offsetof" | "__builtin_types_compatible_p" => {
                    if let Some(end) = parentheses_end(masked, range.end) {
                        put(masked, &(range.start..end), "0");
                    }
                }
                "__attribute__" | "__attribute" => {
                    let end = parentheses_end(masked, range.end).unwrap_or(range.end);
                    self.attributes.push(range.start..end);
                    blank(&mut masked[range.start..end]);
                }
                _ if word.to_ascii_lowercase().starts_with(RESERVED) => {
                    let reason = format!("names that begin with `{RESERVED}` are for the output");
                    return Err(Diagnostic::refused(self.text, range.start, reason));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Refuses directives with names that begin like those that the output adds.
    pub(super) fn check_directives(&self) -> Result<(), Diagnostic> {
        for directive in &self.directives {
            let line = &self.text[directive.range.clone()];
            let has_reserved = line
                .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
                .any(|word| word.to_ascii_lowercase().starts_with(RESERVED));
            let is_path = directive.keyword == "include" || LineMarker::read(line).is_some();
            if !is_path && has_reserved {
                let reason = format!("names that begin with `{RESERVED}` are for the output");
                let at = directive.range.start;
                return Err(Diagnostic::refused(self.text, at, reason));
            }
        }
        Ok(())
    }

    /// Blanks the text that the preprocessor has inserted from system headers: it has no lanes, and
    /// no grammar knows all of its constructs.
    pub(super) fn mask_headers(&mut self, masked: &mut [u8]) {
        let mut main = None;
        let mut header: Option<usize> = None;
        let mut left_out: Vec<Range<usize>> = Vec::new();
        for directive in &self.directives {
            let Some(marker) = LineMarker::read(&self.text[directive.range.clone()]) else {
                continue;
            };
            let main = *main.get_or_insert(marker.file);
            left_out.extend(header.take().map(|begin| begin..directive.range.start));
            if marker.is_system && marker.file != main {
                header = Some(directive.range.end);
            }
        }
        left_out.extend(header.map(|begin| begin..self.text.len()));
        for range in &left_out {
            blank(&mut masked[range.clone()]);
        }
        let is_left_out = |at: usize| {
            let before = left_out.partition_point(|range| range.start <= at);
            before > 0 && left_out[before - 1].contains(&at)
        };
        self.identifiers.retain(|place| !is_left_out(place.start));
    }

    /// Blanks the bodies of functions, structs and initialisers that contain neither a lane nor a
    /// mark: the output has them unchanged, so the grammar need not know them.
    pub(super) fn mask_blocks(&self, masked: &mut [u8]) {
        let mut at = 0;
        while let Some(offset) = masked[at..].iter().position(|byte| *byte == b'{') {
            let open = at + offset;
            let Some(close) = braces_end(masked, open) else {
                return;
            };
            let inside = open + 1..close;
            let is_ours = |place: &Range<usize>| {
                let word = &self.text[place.clone()];
                word == "foreach" || MARKS.contains(&word)
            };
            let is_needed = self.identifiers_in(&inside).iter().any(is_ours);
            // Both branches of an `#if` are in the copy, so their braces need not match.
            let has_branches = self.directives.iter().any(|it| {
                let is_inside = inside.contains(&it.range.start);
                is_inside && LineMarker::read(&self.text[it.range.clone()]).is_none()
            });
            if !is_needed && !has_branches && is_body(masked, open) {
                blank(&mut masked[inside]);
            }
            at = close + 1;
        }
    }
}

/// Puts a word in the place of another one that is at least as long.
fn put(masked: &mut [u8], range: &Range<usize>, word: &str) {
    blank(&mut masked[range.clone()]);
    masked[range.start..range.start + word.len()].copy_from_slice(word.as_bytes());
}

/// Replaces the range in `case 0 ... 9:` by a sum, because the grammar knows no ranges.
fn mask_range(masked: &mut [u8], begin: usize) {
    let Some(length) = masked[begin..].iter().position(|byte| *byte == b':') else {
        return;
    };
    let value = &mut masked[begin..begin + length];
    if let Some(at) = value.windows(3).position(|three| three == b"...") {
        value[at..at + 3].copy_from_slice(b" + ");
    }
}

/// The brace that closes the one at `open`. Skips strings and characters.
fn braces_end(masked: &[u8], open: usize) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, open);
    while at < masked.len() {
        match masked[at] {
            b'"' | b'\'' => {
                at = super::literal_end(masked, at);
                continue;
            }
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Whether this brace opens a function, a struct, a union or a value. The words before it show
/// that.
fn is_body(masked: &[u8], open: usize) -> bool {
    let before = masked[..open].trim_ascii_end();
    match before.last() {
        Some(b')' | b'=') => true,
        Some(byte) if is_word(*byte) => {
            let words = before.split(|byte| !is_word(*byte)).rev();
            let words = words.filter(|word| !word.is_empty()).take(2);
            words
                .into_iter()
                .any(|word| matches!(word, b"struct" | b"union"))
        }
        _ => false,
    }
}
