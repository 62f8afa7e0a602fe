//! The prose of a file: the comments of a Rust file, or a page, without blocks of code. Called by
//! the checks of words.

use super::tree::File;

/// A line of prose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Line<'a> {
    /// Its number, from 1.
    pub(super) number: usize,
    pub(super) text: &'a str,
    /// Whether it is the first line of a doc comment.
    pub(super) opens_doc: bool,
}

/// The lines of prose of a Rust file or a page; other files have none.
pub(super) fn lines(file: &File) -> Vec<Line<'_>> {
    let lines = match file.path.rsplit_once('.') {
        Some((_, "rs")) => comments(&file.text),
        Some((_, "md")) => page(&file.text),
        _ => Vec::new(),
    };
    without_code(lines)
}

fn page(text: &str) -> Vec<Line<'_>> {
    let line = |(index, text)| Line {
        number: index + 1,
        text,
        opens_doc: false,
    };
    text.lines().enumerate().map(line).collect()
}

/// Drops the lines of code blocks: those between two lines that begin with three backticks.
fn without_code(lines: Vec<Line<'_>>) -> Vec<Line<'_>> {
    let mut is_code = false;
    let is_prose = |line: &Line<'_>| {
        let is_fence = line.text.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    };
    lines.into_iter().filter(is_prose).collect()
}

/// The comments of a Rust file, line by line, without their marks.
fn comments(text: &str) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    let mut after_doc = 0;
    for (start, comment) in raw_comments(text) {
        let first = text[..start].matches('\n').count() + 1;
        for (number, raw) in (first..).zip(comment.lines()) {
            let marks = ["///", "//!", "/**", "/*!"];
            let is_doc = marks.iter().any(|mark| raw.starts_with(mark));
            let trimmed = raw.trim_start_matches(['/', '!', '*', ' ']);
            lines.push(Line {
                number,
                text: trimmed.trim_end_matches(['/', '*', ' ']),
                opens_doc: is_doc && after_doc != number,
            });
            if is_doc {
                after_doc = number + 1;
            }
        }
    }
    lines
}

/// Each comment with its place, including its marks. Text in literals does not count.
fn raw_comments(text: &str) -> Vec<(usize, &str)> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at..];
        let length = if rest.starts_with("//") {
            let length = rest.find('\n').unwrap_or(rest.len());
            found.push((at, &rest[..length]));
            length
        } else if rest.starts_with("/*") {
            let length = block_comment(rest);
            found.push((at, &rest[..length]));
            length
        } else if rest.starts_with('"') {
            string(rest)
        } else if rest.starts_with('\'') {
            character(rest)
        } else {
            raw_string_or_word(rest)
        };
        at += length;
    }
    found
}

/// Length of a block comment, which may contain others.
fn block_comment(rest: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        match rest.as_bytes().get(at..at + 2) {
            Some(b"/*") => depth += 1,
            Some(b"*/") => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            break;
        }
    }
    at
}

/// Length of a string literal.
fn string(rest: &str) -> usize {
    let mut is_escaped = false;
    let ends = |c: char| {
        let ends = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends
    };
    rest[1..].find(ends).map_or(rest.len(), |end| end + 2)
}

/// Length of a character literal, or 1 for the quote of a lifetime.
fn character(rest: &str) -> usize {
    let mut chars = rest[1..].chars();
    match (chars.next(), chars.next()) {
        (Some('\\'), Some(escaped)) => {
            let skipped = 2 + escaped.len_utf8();
            let end = rest[skipped..].find('\'');
            end.map_or(rest.len(), |end| skipped + end + 1)
        }
        (Some(c), Some('\'')) => c.len_utf8() + 2,
        _ => 1,
    }
}

/// Length of a raw string, of a word, or of a single other character.
fn raw_string_or_word(rest: &str) -> usize {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
    let (word, after) = rest.split_at(length);
    let hashes = after.len() - after.trim_start_matches('#').len();
    if matches!(word, "r" | "br" | "cr") && after[hashes..].starts_with('"') {
        let open = length + hashes + 1;
        let close = format!("\"{}", "#".repeat(hashes));
        let end = rest[open..].find(&close);
        return end.map_or(rest.len(), |end| open + end + close.len());
    }
    match rest.chars().next() {
        Some(first) if length == 0 => first.len_utf8(),
        _ => length,
    }
}

#[cfg(test)]
mod tests;
