//! The last events, for the reader of a failure. Checking runs keep no trace: a seed determines its
//! run, so a failed run is repeated with the trace on.
//!
//! Invariant: at most [`Trace::CAPACITY`] lines are kept, the newest.

use std::collections::VecDeque;
use std::fmt;

use dunlin_core::Nanos;

/// A bounded record of what happened, oldest first.
#[derive(Debug, Default)]
pub struct Trace {
    on: bool,
    lines: VecDeque<Line>,
    forgotten: u64,
}

#[derive(Debug)]
struct Line {
    at: Nanos,
    what: String,
}

impl Trace {
    /// The most lines kept.
    pub const CAPACITY: usize = 50_000;

    /// A trace that keeps its lines only if `on`.
    pub fn new(on: bool) -> Self {
        Self {
            on,
            ..Self::default()
        }
    }

    /// Adds a line. Does not call `what` if the trace is off.
    pub fn note(&mut self, at: Nanos, what: impl FnOnce() -> String) {
        if !self.on {
            return;
        }
        if self.lines.len() == Self::CAPACITY {
            self.lines.pop_front();
            self.forgotten += 1;
        }
        self.lines.push_back(Line { at, what: what() });
    }

    /// True if lines are kept.
    pub fn is_on(&self) -> bool {
        self.on
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.forgotten != 0 {
            writeln!(f, "… {} earlier lines are not kept", self.forgotten)?;
        }
        for line in &self.lines {
            let (micros, nanos) = (line.at.0 / 1000, line.at.0 % 1000);
            writeln!(f, "{micros:>9}.{nanos:03} {}", line.what)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
