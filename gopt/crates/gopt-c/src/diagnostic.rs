//! The tool's messages about places in the source: a refusal says why, a warning names a risk.
//! Every pass makes messages, and the binary prints them.

use std::fmt;

/// Whether there is an output in spite of the message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    /// There is no output.
    Refused,
    /// There is output; its meaning may differ from the original's.
    Warning,
}

/// A line that names the origin of the next line, a file and a line number, as preprocessors write
/// it: `# 12 "in.c" 2`, or `#line 12 "in.c"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LineMarker<'a> {
    pub(crate) line: usize,
    pub(crate) file: &'a str,
    /// True if the file is a system header.
    pub(crate) is_system: bool,
}

impl<'a> LineMarker<'a> {
    /// `None` if this line is another directive.
    pub(crate) fn read(line: &'a str) -> Option<Self> {
        let rest = line.trim_start().strip_prefix('#')?.trim_start();
        let rest = rest.strip_prefix("line").unwrap_or(rest).trim_start();
        let (number, rest) = rest.split_once(char::is_whitespace)?;
        let (file, flags) = rest.trim_start().strip_prefix('"')?.rsplit_once('"')?;
        Some(Self {
            line: number.parse().ok()?,
            file,
            is_system: flags.split_whitespace().any(|flag| flag == "3"),
        })
    }

    /// The file and the line from which this byte comes, if a marker before it names them.
    fn origin(text: &'a str, at: usize) -> Option<(&'a str, usize)> {
        let before = &text[..text[..at].rfind('\n').map_or(0, |newline| newline + 1)];
        let mut lines = before.lines().rev().zip(0..);
        lines.find_map(|(line, passed)| {
            let marker = Self::read(line)?;
            Some((marker.file, marker.line + passed))
        })
    }
}

/// One message about one place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// Whether there is an output in spite of the message.
    pub severity: Severity,
    /// The file that the last line marker before the place names; `None` if there is no marker.
    pub file: Option<String>,
    /// Line, from 1, in that file.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The line of the source, without its end; cut if it is long.
    pub source_line: String,
    /// The reason, in a sentence without a full stop.
    pub reason: String,
}

/// The most characters of a source line that are shown.
const SHOWN_CHARS: usize = 160;

impl Diagnostic {
    /// A refusal at byte `at` of `text`.
    pub(crate) fn refused(text: &str, at: usize, reason: impl Into<String>) -> Self {
        Self::new(Severity::Refused, text, at, reason.into())
    }

    /// A warning at byte `at` of `text`.
    pub(crate) fn warning(text: &str, at: usize, reason: impl Into<String>) -> Self {
        Self::new(Severity::Warning, text, at, reason.into())
    }

    fn new(severity: Severity, text: &str, at: usize, reason: String) -> Self {
        let at = text.floor_char_boundary(at);
        let before = &text[..at];
        let begin = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line_text = text[begin..].lines().next().unwrap_or("");
        let origin = LineMarker::origin(text, at);
        let line = before.matches('\n').count() + 1;
        Self {
            severity,
            file: origin.map(|(file, _)| file.to_owned()),
            line: origin.map_or(line, |(_, line)| line),
            column: text[begin..at].chars().count() + 1,
            source_line: line_text.chars().take(SHOWN_CHARS).collect(),
            reason,
        }
    }

    /// The message as compilers print it: place and reason, source line, a mark under the column.
    /// `file` is the name of the text; a line marker in it may name another one.
    pub fn render(&self, file: &str) -> String {
        let file = self.file.as_deref().unwrap_or(file);
        let label = match self.severity {
            Severity::Refused => "error",
            Severity::Warning => "warning",
        };
        let Self {
            line,
            column,
            source_line,
            reason,
            ..
        } = self;
        let lead: String = source_line
            .chars()
            .take(column - 1)
            .map(|c| if c == '\t' { '\t' } else { ' ' })
            .collect();
        let mark = if *column <= SHOWN_CHARS { "^" } else { "" };
        format!("{file}:{line}:{column}: {label}: {reason}\n  {source_line}\n  {lead}{mark}\n")
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.reason)
    }
}
