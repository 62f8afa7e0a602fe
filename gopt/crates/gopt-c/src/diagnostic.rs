//! What the tool says about a place in the source: why it refuses it, or what to look at. Every
//! pass makes them; the binary prints them.

use std::fmt;

/// Whether the text can be transformed all the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    /// There is no output.
    Refused,
    /// There is output; its meaning may differ from the original's.
    Warning,
}

/// One message about one place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// Whether there is output all the same.
    pub severity: Severity,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The line of the source, without its end; cut if it is long.
    pub source_line: String,
    /// The reason, in a sentence without a full stop.
    pub reason: String,
}

/// How much of a source line is shown.
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
        Self {
            severity,
            line: before.matches('\n').count() + 1,
            column: text[begin..at].chars().count() + 1,
            source_line: line_text.chars().take(SHOWN_CHARS).collect(),
            reason,
        }
    }

    /// The message as compilers print it: place and reason, source line, a mark under the column.
    pub fn render(&self, file: &str) -> String {
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
