//! How `bench compare` asks a program to measure one case, and how the program answers. The page
//! docs/comparing.md describes the same for authors of programs. Both sides use plain text, so any
//! language will do:
//!
//! - The arguments are the experiment, and then words `name=value`: `transport`, every parameter
//!   of the case, `seconds`, `cpus` (of client and server) and `realtime`.
//! - The answer is one JSON object on the standard output: `figures`, each with `metric`, `unit`
//!   and `value`; or `unsupported`, which states why there are none.

use std::collections::BTreeMap;

use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use dunlin_bench::harness::selection::word;

/// The hidden subcommand with which a dunlin keeps this contract.
pub(crate) const SUBCOMMAND: &str = "__measure";

/// One case to measure, as the arguments of a program.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Request {
    pub(crate) experiment: String,
    pub(crate) transport: String,
    pub(crate) params: BTreeMap<String, String>,
    /// How long to measure.
    pub(crate) seconds: f64,
    /// Processors of client and server, if there are two.
    pub(crate) cpus: Option<[usize; 2]>,
    /// Whether measuring threads have priority over all ordinary threads.
    pub(crate) realtime: bool,
}

/// A program's answer.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answer {
    /// The figures that were measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) figures: Vec<Figure>,
    /// The reason why the program does not measure this case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unsupported: Option<String>,
    /// Remarks for a reader of the figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<String>,
    /// The program's description, in any form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<Value>,
}

/// One figure.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Figure {
    pub(crate) metric: String,
    pub(crate) unit: String,
    pub(crate) value: f64,
}

impl Request {
    /// The request as arguments.
    pub(crate) fn words(&self) -> Vec<String> {
        let pair = |name: &str, value: &str| format!("{name}={value}");
        let mut words = vec![self.experiment.clone(), pair("transport", &self.transport)];
        words.extend(self.params.iter().map(|(name, value)| pair(name, value)));
        words.push(pair("seconds", &self.seconds.to_string()));
        if let Some([client, server]) = self.cpus {
            words.push(format!("cpus={client},{server}"));
        }
        words.push(pair("realtime", &self.realtime.to_string()));
        words
    }

    /// Reads a request from arguments; ignores the processors.
    ///
    /// # Errors
    /// If the arguments do not have this form.
    pub(crate) fn parse(words: &[String]) -> anyhow::Result<Self> {
        let (experiment, words) = words.split_first().context("no experiment is named")?;
        let mut params = BTreeMap::new();
        for word in words {
            let pair = word.split_once('=');
            let (name, value) = pair.with_context(|| format!("{word:?} is not name=value"))?;
            let twice = params.insert(name.to_owned(), value.to_owned());
            ensure!(twice.is_none(), "{name} is given twice");
        }
        let mut take = |name: &str| {
            let value = params.remove(name);
            value.with_context(|| format!("{name}=... is missing"))
        };
        let transport = take("transport")?;
        let seconds = take("seconds")?.parse().context("seconds")?;
        let realtime = take("realtime")?.parse().context("realtime")?;
        params.remove("cpus");
        Ok(Self {
            experiment: experiment.clone(),
            transport,
            params,
            seconds,
            cpus: None,
            realtime,
        })
    }
}

/// A case's parameters in the form of arguments.
pub(crate) fn params(params: &Map<String, Value>) -> BTreeMap<String, String> {
    let words = params
        .iter()
        .map(|(name, value)| (name.clone(), word(value)));
    words.collect()
}

impl Answer {
    /// # Errors
    /// The output is not one JSON object of this form, or it has both figures and a reason, or
    /// neither.
    pub(crate) fn parse(output: &str) -> anyhow::Result<Self> {
        let output = output.trim();
        ensure!(!output.is_empty(), "it printed nothing");
        let answer: Self = serde_json::from_str(output)
            .with_context(|| format!("it printed {:?}", beginning(output)))?;
        match (&answer.unsupported, answer.figures.len()) {
            (None, 0) => bail!("its answer has neither figures nor `unsupported`"),
            (Some(_), 1..) => bail!("its answer has figures and `unsupported`"),
            _ => {}
        }
        for (index, figure) in answer.figures.iter().enumerate() {
            let Figure { metric, value, .. } = figure;
            ensure!(
                value.is_finite() && *value >= 0.0,
                "its figure {metric} is {value}"
            );
            ensure!(
                answer.find(metric).is_some_and(|it| it.0 == index),
                "its figure {metric} comes twice"
            );
        }
        Ok(answer)
    }

    /// Finds a figure by its name; returns its index, too.
    pub(crate) fn find(&self, metric: &str) -> Option<(usize, &Figure)> {
        let mut figures = self.figures.iter().enumerate();
        figures.find(|(_, figure)| figure.metric == metric)
    }
}

/// The beginning of a text, cut to the length that a message has room for.
pub(super) fn beginning(text: &str) -> String {
    const MOST: usize = 200;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
