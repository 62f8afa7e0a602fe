//! One fact about the machine, and the reading of small system files.

use std::path::Path;

use serde::Serialize;

/// One line of the answer.
#[derive(Debug)]
pub(super) struct Fact {
    pub(super) name: &'static str,
    pub(super) value: String,
    pub(super) state: State,
    /// The remedy, if there is one.
    pub(super) advice: Option<String>,
}

/// Whether the user should act.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    Good,
    /// The feature works, but could work better.
    Improve,
    /// The feature does not work.
    Missing,
}

impl Fact {
    /// A fact that needs no action.
    pub(super) fn good(name: &'static str, value: impl Into<String>) -> Self {
        Self {
            name,
            value: value.into(),
            state: State::Good,
            advice: None,
        }
    }

    /// Adds advice, unless the system is as it should be.
    pub(super) fn advise(self, is_good: bool, advice: impl Into<String>) -> Self {
        self.rate(is_good, State::Improve, advice)
    }

    /// The fact, marked as one about a feature that does not work.
    pub(super) fn missing(self, advice: impl Into<String>) -> Self {
        self.rate(false, State::Missing, advice)
    }

    fn rate(mut self, is_good: bool, state: State, advice: impl Into<String>) -> Self {
        if !is_good {
            self.state = state;
            self.advice = Some(advice.into());
        }
        self
    }
}

/// The content of a system file, without its last line end; `None` if there is no such file.
pub(super) fn file(path: impl AsRef<Path>) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim_end().to_owned())
}

/// A file that holds a number.
pub(super) fn number(path: impl AsRef<Path>) -> Option<u64> {
    file(path)?.trim().parse().ok()
}

/// The value of a line `name: value` or `name : value`.
pub(super) fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = text.lines().filter_map(|line| line.split_once(':'));
    let found = fields.find(|(key, _)| key.trim() == name);
    found.map(|(_, value)| value.trim())
}

/// The choice in brackets, as in `always [madvise] never`.
pub(super) fn chosen(text: &str) -> Option<&str> {
    let (_, behind) = text.split_once('[')?;
    behind.split_once(']').map(|(word, _)| word)
}

/// A number of bytes in words.
pub(super) fn size(bytes: u64) -> String {
    const NAMES: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut amount = bytes as f64;
    let mut names = NAMES.iter();
    let mut name = names.next();
    while amount >= 1024.0 {
        let Some(larger) = names.next() else { break };
        name = Some(larger);
        amount /= 1024.0;
    }
    let digits = usize::from(amount < 10.0 && amount.fract() != 0.0);
    format!("{amount:.digits$} {}", name.unwrap_or(&"B"))
}

#[cfg(test)]
mod tests;
