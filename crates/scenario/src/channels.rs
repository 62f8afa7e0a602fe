//! Scenario files of channels (`scenarios/channels.toml` explains every key): clients with channels
//! call servers. At the times that the file gives, servers are killed, stopped, drained, or taken
//! off the list of addresses. [`Channels`] reads such a file, runs it, and compares the results
//! with the file's expectations.
//!
//! Used by `dunlin sim`.

mod file;
mod text;

use std::path::Path;

use anyhow::{Context, anyhow, bail};
use dunlin_sim::channel::{Played, Script, play};
use harness::progress::Timeline;
use harness::signal;
use toml::Table;

use crate::source::{put, value_of};
use file::{Expected, File};

pub use text::{channels_object, channels_text};

/// A scenario of channels.
#[derive(Debug)]
pub struct Channels {
    /// Its name in the report.
    pub name: String,
    script: Script,
    expected: Expected,
}

impl Channels {
    /// Reads a file, with these changes (`key=value`) and this seed. `None`: it is not a file of
    /// channels, because it has no table `[channel]`.
    ///
    /// # Errors
    /// The file cannot be read, or is wrong. The error names its key, and its line if it has one.
    pub fn read(path: &Path, sets: &[String], seed: Option<i64>) -> anyhow::Result<Option<Self>> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
        match text.parse::<Table>() {
            Ok(table) if table.contains_key("channel") => {
                Self::parse(&name, &text, sets, seed).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn parse(name: &str, text: &str, sets: &[String], seed: Option<i64>) -> anyhow::Result<Self> {
        let unreadable = |why: toml::de::Error| anyhow!("{name}: {}", why.to_string().trim_end());
        // Read the unchanged text first, so that an error names its line.
        toml::from_str::<File>(text).map_err(unreadable)?;
        let mut table: Table = text.parse().map_err(unreadable)?;
        for set in sets {
            let (key, value) = set
                .split_once('=')
                .with_context(|| format!("--set {set}: write key=value"))?;
            put(&mut table, key, value_of(value)).with_context(|| format!("--set {key}"))?;
        }
        if let Some(seed) = seed {
            table.insert("seed".to_owned(), seed.into());
        }
        let file: File = table.try_into().map_err(unreadable)?;
        let script = file.script().map_err(|wrong| anyhow!("{name}: {wrong}"))?;
        Ok(Self {
            name: file.name,
            script,
            expected: file.expect,
        })
    }

    /// Runs the scenario, with progress on the standard error. `None`: Ctrl-C ended it.
    ///
    /// # Errors
    /// The run broke an invariant.
    pub fn run(&self) -> anyhow::Result<Option<Played>> {
        let mut progress = Timeline::start(&self.name, self.script.end.0 / 1000);
        Ok(play(&self.script, |at| {
            progress.reached(at.0 / 1000);
            signal::check().is_ok()
        })?)
    }

    /// Compares the results with the file's expectations.
    ///
    /// # Errors
    /// The expectations that are not met.
    pub fn check(&self, played: &Played) -> anyhow::Result<()> {
        let unmet = self.expected.unmet(&self.script.servers, played);
        if !unmet.is_empty() {
            bail!("{}: not as expected: {}", self.name, unmet.join("; "));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
