//! The text of a counters file. It lists the names of a block's values in the order in which the
//! block stores them, so a reader can compute where each part of a block begins.

use std::str::SplitWhitespace;

use super::source::{ReadError, Source, bytes};
use crate::layout::{block, key};

/// Maximum size of the text in bytes.
const MAX_TEXT: u64 = 64 << 10;
/// Maximum number of names of one kind, and of rows.
const MAX_NAMES: usize = 256;
/// Maximum number of buckets of a histogram.
const MAX_BUCKETS: usize = 4096;

/// The content of the text.
#[derive(Debug, Default)]
pub(super) struct Text {
    pub(super) program: String,
    pub(super) address: String,
    pub(super) release: String,
    pub(super) nexus: Vec<String>,
    pub(super) counters: Vec<String>,
    pub(super) drops: Vec<String>,
    pub(super) transport: Vec<String>,
    pub(super) gauges: Vec<String>,
    pub(super) histograms: Vec<String>,
    /// The smallest value of each bucket, ascending.
    pub(super) buckets: Vec<u64>,
    pub(super) sessions: Vec<String>,
    pub(super) rows: usize,
    pub(super) own_counters: Vec<String>,
    pub(super) own_gauges: Vec<String>,
}

impl Text {
    pub(super) fn read(source: &mut dyn Source, start: u64, len: u64) -> Result<Self, ReadError> {
        if len > MAX_TEXT {
            return Err(ReadError::Damaged("its text is too long"));
        }
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let text = bytes(source, start, len)?;
        let text = std::str::from_utf8(&text);
        let text = text.map_err(|_| ReadError::Damaged("its text is not UTF-8"))?;
        let mut read = Self::default();
        for line in text.lines() {
            let (key, value) = line.split_once(' ').unwrap_or((line, ""));
            read.take_line(key, value)?;
        }
        if read.buckets.is_empty() && !read.histograms.is_empty() {
            return Err(ReadError::Damaged("its histograms have no buckets"));
        }
        Ok(read)
    }

    /// Words of an endpoint's block.
    pub(super) fn block_words(&self) -> usize {
        self.own_at() + self.own_counters.len() + self.own_gauges.len()
    }

    /// Words of a block before the values of the program itself.
    pub(super) fn own_at(&self) -> usize {
        let values =
            self.counters.len() + self.drops.len() + self.transport.len() + self.gauges.len();
        let histograms = self.histograms.len() * (1 + self.buckets.len());
        block::HEAD + values + histograms + self.rows * self.sessions.len()
    }

    /// Reads one line. A key that this release does not know is ignored, because it adds no words
    /// to a block.
    fn take_line(&mut self, key: &str, value: &str) -> Result<(), ReadError> {
        let words = value.split_whitespace();
        match key {
            key::PROGRAM => self.program = shown(value),
            key::ADDRESS => self.address = shown(value),
            key::RELEASE => self.release = shown(value),
            key::NEXUS => self.nexus = names(words)?,
            key::COUNTERS => self.counters = names(words)?,
            key::DROPS => self.drops = names(words)?,
            key::TRANSPORT => self.transport = names(words)?,
            key::GAUGES => self.gauges = names(words)?,
            key::HISTOGRAMS => self.histograms = names(words)?,
            key::OWN_COUNTERS => self.own_counters = names(words)?,
            key::OWN_GAUGES => self.own_gauges = names(words)?,
            key::BUCKETS => self.buckets = bounds(words)?,
            key::SESSIONS => self.sessions = names(words)?,
            key::ROWS => {
                let rows = value.parse().ok().filter(|rows| *rows <= MAX_NAMES);
                self.rows = rows.ok_or(ReadError::Damaged("it has no number of rows"))?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// The text without characters that control a terminal.
fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(256).collect()
}

/// Names that are valid in Prometheus.
fn names(words: SplitWhitespace<'_>) -> Result<Vec<String>, ReadError> {
    let names: Vec<String> = words.take(MAX_NAMES + 1).map(str::to_owned).collect();
    let is_name = |name: &String| {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        name.len() <= 64 && name.chars().all(plain)
    };
    if names.len() <= MAX_NAMES && names.iter().all(is_name) {
        Ok(names)
    } else {
        Err(ReadError::Damaged("its text has invalid names"))
    }
}

fn bounds(words: SplitWhitespace<'_>) -> Result<Vec<u64>, ReadError> {
    let bounds: Option<Vec<u64>> = words
        .take(MAX_BUCKETS + 1)
        .map(|word| word.parse().ok())
        .collect();
    bounds
        .filter(|bounds| bounds.len() <= MAX_BUCKETS && bounds.is_sorted_by(|a, b| a < b))
        .ok_or(ReadError::Damaged("its buckets are not in order"))
}
