//! The text of a scenario file, the changes that `--set` and `[sweep]` make, and the line of each
//! mistake.

use std::path::Path;

use anyhow::{Context, anyhow, bail};
use dunlin_sim::scenario::{Scenario, Wrong};
use serde_json::Value as Json;
use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

use crate::file::File;

/// A scenario file.
pub struct Source {
    /// The file's name in messages.
    name: String,
    text: String,
    table: Table,
    /// Keys that the command line sets, with their values.
    sets: Vec<(String, Value)>,
}

/// One run of a file.
pub struct Variant {
    /// The scenario's name in the report.
    pub name: String,
    /// The keys that `--set` and the sweep set for this run, with their values.
    pub params: Vec<(String, Json)>,
    /// The scenario itself.
    pub scenario: Scenario,
}

/// The most runs of a sweep.
const MOST_VARIANTS: usize = 1000;

impl Source {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, or is not a valid scenario.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
        Self::parse(name, text)
    }

    /// Reads the text of a file that is called `name`.
    ///
    /// # Errors
    /// The text is not a valid scenario: the error names key and line.
    pub fn parse(name: String, text: String) -> anyhow::Result<Self> {
        // Read the unchanged text first, so that an error names its line.
        let unreadable = |why: toml::de::Error| anyhow!("{name}: {}", why.to_string().trim_end());
        toml::from_str::<File>(&text).map_err(unreadable)?;
        let table = text.parse().map_err(unreadable)?;
        let sets = Vec::new();
        Ok(Self {
            name,
            text,
            table,
            sets,
        })
    }

    /// Applies `--set key=value`.
    ///
    /// # Errors
    /// There is no value, or no place for the key.
    pub fn set(&mut self, text: &str) -> anyhow::Result<()> {
        let (key, value) = text
            .split_once('=')
            .with_context(|| format!("--set {text}: write key=value"))?;
        self.set_value(key, value_of(value))
    }

    /// Sets a key to a value.
    ///
    /// # Errors
    /// There is no place for the key.
    pub fn set_value(&mut self, key: &str, value: Value) -> anyhow::Result<()> {
        put(&mut self.table, key, value.clone()).with_context(|| format!("--set {key}"))?;
        // A key that the command line sets is removed from the sweep.
        if let Some(Value::Table(sweep)) = self.table.get_mut("sweep") {
            sweep.remove(key);
        }
        self.sets.push((key.to_owned(), value));
        Ok(())
    }

    /// Every run that the file asks for, checked.
    ///
    /// # Errors
    /// The first mistake, with its key and line.
    pub fn variants(&self) -> anyhow::Result<Vec<Variant>> {
        let mut variants = vec![Vec::new()];
        for (key, values) in &self.file(&self.table)?.sweep {
            let values = match values {
                Value::Array(values) if !values.is_empty() => values.as_slice(),
                _ => bail!("{}: must be a list of values", self.place(&["sweep", key])),
            };
            let longer = variants.iter().flat_map(|params: &Vec<_>| {
                let with = |value: &Value| [&params[..], &[(key.clone(), value.clone())]].concat();
                values.iter().map(with)
            });
            variants = longer.collect();
            if variants.len() > MOST_VARIANTS {
                bail!(
                    "{}: more than {MOST_VARIANTS} runs",
                    self.place(&["sweep", key])
                );
            }
        }
        variants
            .into_iter()
            .map(|params| self.variant(params))
            .collect()
    }

    fn variant(&self, params: Vec<(String, Value)>) -> anyhow::Result<Variant> {
        let mut table = self.table.clone();
        for (key, value) in &params {
            let place = || self.place(&["sweep", key]);
            put(&mut table, key, value.clone()).with_context(place)?;
        }
        let file = self.file(&table)?;
        let scenario = file.scenario(self.compares_schemes()).and_then(|scenario| {
            scenario.check()?;
            Ok(scenario)
        });
        let scenario = scenario.map_err(|wrong| self.blame(&wrong, &params))?;
        let params = self.sets.iter().chain(&params);
        let params = params.map(|(key, value)| (key.clone(), json(value)));
        Ok(Variant {
            name: file.name,
            params: params.collect(),
            scenario,
        })
    }

    /// Whether the unchanged file sweeps a scheme. Some of its keys apply only to some schemes, and
    /// must not prevent the sweep or `--set` from choosing the others.
    fn compares_schemes(&self) -> bool {
        let file = toml::from_str::<File>(&self.text);
        file.is_ok_and(|file| file.sweep.keys().any(|key| key.ends_with(".cc")))
    }

    fn file(&self, table: &Table) -> anyhow::Result<File> {
        // The unchanged file was checked before, so only a key that was set or swept can be wrong.
        let keys = self.sets.iter().map(|(key, _)| key.as_str());
        let keys = keys.collect::<Vec<_>>().join(", ");
        let file = table.clone().try_into::<File>();
        file.map_err(|why| {
            let why = why.to_string();
            let why = why.trim_end();
            let changes = match keys.is_empty() {
                true => "with swept values".to_owned(),
                false => format!("with {keys} set, or with swept values"),
            };
            anyhow!("{}: {changes}: {why}", self.name)
        })
    }

    /// Adds to an error the key and the line that caused it.
    pub fn blame(&self, wrong: &Wrong, params: &[(String, Value)]) -> anyhow::Error {
        let Wrong::Key { key, what } = wrong else {
            return anyhow!("{wrong}");
        };
        let mut all = self.sets.iter().chain(params);
        let set = all.rfind(|(other, _)| other == key);
        let parts: Vec<&str> = key.split('.').collect();
        match set {
            Some((_, value)) => anyhow!("{}: {key} = {value}: {what}", self.name),
            None => anyhow!("{}: {key}: {what}", self.place(&parts)),
        }
    }

    /// File and line of a key, or of the table that would contain it.
    fn place(&self, parts: &[&str]) -> String {
        let line = line_of(&self.text, parts);
        line.map_or_else(|| self.name.clone(), |line| format!("{}:{line}", self.name))
    }
}

/// The line of the last part of the key that occurs in the text.
fn line_of(text: &str, parts: &[&str]) -> Option<usize> {
    let root = DeTable::parse(text).ok()?;
    let mut table = root.get_ref();
    let mut found = None;
    let mut parts = parts.iter();
    while let Some(part) = parts.next() {
        let Some((key, value)) = table.iter().find(|(key, _)| key.get_ref() == *part) else {
            break;
        };
        found = Some(key.span().start);
        let inner = match value.get_ref() {
            DeValue::Array(items) => {
                let index = parts.next().and_then(|part| part.parse::<usize>().ok());
                let item = index.and_then(|index| items.get(index));
                found = item.map(|item| item.span().start).or(found);
                item.map(|item| item.get_ref())
            }
            other => Some(other),
        };
        match inner {
            Some(DeValue::Table(inner)) => table = inner,
            _ => break,
        }
    }
    found.map(|at| text[..at].matches('\n').count() + 1)
}

/// Parses a value as a file would contain it. Anything else counts as text without quotes.
pub(crate) fn value_of(text: &str) -> Value {
    let line = format!("value = {text}");
    let table = line.parse::<Table>().ok();
    let value = table.and_then(|mut table| table.remove("value"));
    value.unwrap_or_else(|| Value::String(text.to_owned()))
}

/// Puts a value at a key with dots, in which numbers are list indices, from 0.
pub(crate) fn put(table: &mut Table, key: &str, value: Value) -> anyhow::Result<()> {
    let Some((first, rest)) = key.split_once('.') else {
        table.insert(key.to_owned(), value);
        return Ok(());
    };
    let inner = table
        .entry(first)
        .or_insert_with(|| Value::Table(Table::new()));
    match inner {
        Value::Table(inner) => put(inner, rest, value),
        Value::Array(items) => {
            let (index, rest) = rest.split_once('.').context("a key is missing")?;
            let item = index.parse::<usize>().ok().and_then(|at| items.get_mut(at));
            match item {
                Some(Value::Table(inner)) => put(inner, rest, value),
                _ => bail!("there is no {first}.{index}"),
            }
        }
        _ => bail!("{first} has no keys"),
    }
}

fn json(value: &Value) -> Json {
    serde_json::to_value(value).unwrap_or(Json::Null)
}

#[cfg(test)]
mod tests;
