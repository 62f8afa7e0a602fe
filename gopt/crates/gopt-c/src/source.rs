//! The original text, and the preprocessor's view of it: directives, macros, comments. The parser
//! gets a copy of the same length in which `#` lines, comments and attributes are blank and each
//! `foreach` reads `while  `, so a position in the tree is also a position in the text.

mod mask;

use std::collections::HashMap;
use std::ops::Range;

use crate::diagnostic::{Diagnostic, LineMarker};

/// The prefix of every name that the output adds, in capitals for macros.
pub(crate) const RESERVED: &str = "gopt_";

/// The names of the mark: the paper's, and an older one.
pub(crate) const MARKS: [&str; 2] = ["g_expensive", "FPP_EXPENSIVE"];

/// The remedy for a text that only the preprocessor understands.
pub(crate) const REMEDY: &str =
    "write it in one piece, or let `--preprocess` run the C preprocessor first";

/// A macro that the file defines.
#[derive(Default)]
pub(crate) struct Macro {
    /// The identifiers of its body that are not its parameters.
    pub(crate) names: Vec<String>,
    /// True if its body has the operator `&`, so it may take the address of an argument.
    pub(crate) takes_address: bool,
}

/// One `#` line, with the lines that continue it.
pub(crate) struct Directive {
    pub(crate) range: Range<usize>,
    /// `if`, `define` and so on; `ifdef` and `ifndef` count as `if`.
    pub(crate) keyword: String,
}

pub(crate) struct Source<'a> {
    pub(crate) text: &'a str,
    /// The text that the parser gets.
    pub(crate) masked: String,
    pub(crate) directives: Vec<Directive>,
    pub(crate) macros: HashMap<String, Macro>,
    /// The places where a `foreach` begins.
    pub(crate) foreach: Vec<usize>,
    /// The places of `__attribute__`, with its parentheses.
    pub(crate) attributes: Vec<Range<usize>>,
    /// The identifiers outside of comments, strings and directives.
    pub(crate) identifiers: Vec<Range<usize>>,
}

impl<'a> Source<'a> {
    pub(crate) fn read(text: &'a str) -> Result<Self, Diagnostic> {
        let mut source = Self {
            text,
            masked: String::new(),
            directives: Vec::new(),
            macros: HashMap::new(),
            foreach: Vec::new(),
            attributes: Vec::new(),
            identifiers: Vec::new(),
        };
        let mut masked = text.as_bytes().to_vec();
        source.scan(&mut masked)?;
        source.leave_out(&mut masked);
        source.mask_headers(&mut masked);
        source.check_directives()?;
        source.mask_words(&mut masked)?;
        source.mask_blocks(&mut masked);
        source.masked = String::from_utf8(masked).expect("only whole characters were replaced");
        Ok(source)
    }

    /// The identifiers in a part of the text.
    pub(crate) fn identifiers_in(&self, range: &Range<usize>) -> &[Range<usize>] {
        let find = |at: usize| self.identifiers.partition_point(|place| place.start < at);
        &self.identifiers[find(range.start)..find(range.end)]
    }

    /// Whether the text has line markers, and no `#if` left.
    pub(crate) fn is_preprocessed(&self) -> bool {
        let is_marker = |it: &Directive| LineMarker::read(&self.text[it.range.clone()]).is_some();
        let directives = || self.directives.iter();
        directives().any(is_marker) && directives().all(|it| it.keyword != "if")
    }

    /// The `#if` groups around `at` that begin after `from`, outermost first. Each has its lines
    /// before `at`: the `#if`, then `#elif` and `#else`.
    pub(crate) fn conditions(&self, from: usize, at: usize) -> Vec<Vec<&'a str>> {
        let mut stack: Vec<Vec<&str>> = Vec::new();
        let inside = |directive: &&Directive| directive.range.start > from;
        for directive in self.directives.iter().filter(inside) {
            if directive.range.start >= at {
                break;
            }
            let line = self.text[directive.range.clone()].trim_end();
            match directive.keyword.as_str() {
                "if" => stack.push(vec![line]),
                "else" | "elif" | "elifdef" | "elifndef" => {
                    if let Some(group) = stack.last_mut() {
                        group.push(line);
                    }
                }
                "endif" => drop(stack.pop()),
                _ => {}
            }
        }
        stack
    }

    fn scan(&mut self, masked: &mut [u8]) -> Result<(), Diagnostic> {
        let bytes = self.text.as_bytes();
        let (mut at, mut line_is_blank) = (0, true);
        while at < bytes.len() {
            let end = match bytes[at] {
                b'\n' => {
                    line_is_blank = true;
                    at += 1;
                    continue;
                }
                byte if byte.is_ascii_whitespace() => {
                    at += 1;
                    continue;
                }
                b'/' if matches!(bytes.get(at + 1), Some(b'/' | b'*')) => {
                    let end = self.comment_end(at)?;
                    blank(&mut masked[at..end]);
                    at = end;
                    continue;
                }
                b'#' if line_is_blank => {
                    let end = self.directive_end(at)?;
                    self.add_directive(at..end);
                    blank(&mut masked[at..end]);
                    end
                }
                b'"' | b'\'' => literal_end(bytes, at),
                b'\\' => self.splice_end(at, masked)?,
                byte if is_word(byte) => {
                    let end = word_end(bytes, at);
                    if !byte.is_ascii_digit() {
                        self.identifiers.push(at..end);
                    }
                    end
                }
                _ => at + 1,
            };
            line_is_blank = false;
            at = end;
        }
        Ok(())
    }

    /// A backslash at the end of a line joins the line with the next one. Between two words, the
    /// backslash becomes blank, as the end of the line does. Inside a word it is refused, because
    /// the parser would see two words.
    fn splice_end(&self, at: usize, masked: &mut [u8]) -> Result<usize, Diagnostic> {
        let bytes = self.text.as_bytes();
        let rest = bytes[at + 1..]
            .strip_prefix(b"\r")
            .unwrap_or(&bytes[at + 1..]);
        if rest.first() != Some(&b'\n') {
            return Ok(at + 1);
        }
        let next_line = bytes.len() - rest.len() + 1;
        let is_in_word = at > 0
            && is_word(bytes[at - 1])
            && bytes.get(next_line).is_some_and(|byte| is_word(*byte));
        if is_in_word {
            let reason = format!("a backslash divides this word into two lines; {REMEDY}");
            return Err(Diagnostic::refused(self.text, at, reason));
        }
        blank(&mut masked[at..=at]);
        Ok(next_line)
    }

    fn comment_end(&self, at: usize) -> Result<usize, Diagnostic> {
        let bytes = self.text.as_bytes();
        if bytes[at + 1] == b'/' {
            return Ok(line_end(bytes, at));
        }
        match self.text[at + 2..].find("*/") {
            Some(length) => Ok(at + 2 + length + 2),
            None => Err(Diagnostic::refused(self.text, at, "the comment has no end")),
        }
    }

    /// The end of a directive: the end of its line. A comment in the directive may contain line
    /// ends, which do not count.
    fn directive_end(&self, mut at: usize) -> Result<usize, Diagnostic> {
        let bytes = self.text.as_bytes();
        let end = line_end(bytes, at);
        while at < end {
            match bytes[at] {
                b'"' | b'\'' => at = literal_end(bytes, at).min(end),
                b'/' if bytes.get(at + 1) == Some(&b'*') => {
                    let comment = self.comment_end(at)?;
                    if comment > end {
                        return self.directive_end(comment);
                    }
                    at = comment;
                }
                b'/' if bytes.get(at + 1) == Some(&b'/') => break,
                _ => at += 1,
            }
        }
        Ok(end)
    }

    fn add_directive(&mut self, range: Range<usize>) {
        let line = &self.text[range.clone()];
        let body = line[1..].trim_start();
        let length = word_end(body.as_bytes(), 0);
        let (keyword, rest) = body.split_at(length);
        if keyword == "define" {
            self.add_macro(rest.trim_start());
        }
        let keyword = match keyword {
            "ifdef" | "ifndef" => "if",
            other => other,
        };
        let keyword = keyword.to_owned();
        self.directives.push(Directive { range, keyword });
    }

    fn add_macro(&mut self, definition: &str) {
        let (name, mut body) = definition.split_at(word_end(definition.as_bytes(), 0));
        let mut parameters = "";
        if let (true, Some(close)) = (body.starts_with('('), body.find(')')) {
            (parameters, body) = (&body[1..close], &body[close + 1..]);
        }
        let parameters: Vec<&str> = parameters.split(',').map(str::trim).collect();
        let mut found = Macro::default();
        let (bytes, mut at) = (body.as_bytes(), 0);
        while at < bytes.len() {
            at = match bytes[at] {
                b'"' | b'\'' => literal_end(bytes, at),
                byte if is_word(byte) => {
                    let end = word_end(bytes, at);
                    let word = &body[at..end];
                    if !byte.is_ascii_digit() && !parameters.contains(&word) {
                        found.names.push(word.to_owned());
                    }
                    end
                }
                b'&' if bytes.get(at + 1) == Some(&b'&') => at + 2,
                b'&' => {
                    found.takes_address = true;
                    at + 1
                }
                _ => at + 1,
            };
        }
        // A macro may be defined twice, in two branches of an `#if`: both definitions count.
        let known = self.macros.entry(name.to_owned()).or_default();
        known.names.append(&mut found.names);
        known.takes_address |= found.takes_address;
    }

    /// Blanks the text after `#if 0`, because it need not be C.
    fn leave_out(&mut self, masked: &mut [u8]) {
        let (mut depth, mut begin) = (0_usize, None);
        for directive in &self.directives {
            let line = &self.text[directive.range.clone()];
            match directive.keyword.as_str() {
                "if" if begin.is_some() => depth += 1,
                "if" if line[1..].split_whitespace().eq(["if", "0"]) => {
                    begin = Some(directive.range.end);
                }
                "endif" if depth > 0 => depth -= 1,
                "else" | "elif" | "elifdef" | "elifndef" | "endif" if depth == 0 => {
                    if let Some(begin) = begin.take() {
                        let range = begin..directive.range.start;
                        blank(&mut masked[range.clone()]);
                        self.identifiers
                            .retain(|place| !range.contains(&place.start));
                    }
                }
                _ => {}
            }
        }
    }
}

fn blank(bytes: &mut [u8]) {
    for byte in bytes {
        if !matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

fn word_end(bytes: &[u8], at: usize) -> usize {
    let length = bytes[at..].iter().position(|byte| !is_word(*byte));
    length.map_or(bytes.len(), |length| at + length)
}

/// The end of the line, without its newline; a backslash before it continues the line.
fn line_end(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() {
        if bytes[at] == b'\n' {
            let before = bytes[..at].strip_suffix(b"\r").unwrap_or(&bytes[..at]);
            if before.last() != Some(&b'\\') {
                return before.len();
            }
        }
        at += 1;
    }
    at
}

/// The end of a string or character; an open one ends with its line.
fn literal_end(bytes: &[u8], begin: usize) -> usize {
    let mut at = begin + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'\n' => return at,
            byte if byte == bytes[begin] => return at + 1,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

fn next_byte(bytes: &[u8], at: usize) -> Option<u8> {
    let mut rest = bytes[at..].iter();
    rest.find(|byte| !byte.is_ascii_whitespace()).copied()
}

/// The end of the parentheses that open after `at`.
fn parentheses_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (offset, byte) in bytes[at..].iter().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + offset + 1);
                }
            }
            byte if depth == 0 && !byte.is_ascii_whitespace() => return None,
            _ => {}
        }
    }
    None
}
