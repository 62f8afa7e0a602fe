//! Chooses the cases of an experiment that are measured: transports, sizes of messages, and values
//! of other parameters. Used by `bench` and by `bench compare`.

use clap::Args;
use serde_json::Value;

use super::case::Case;
use super::transport::Transport;

/// Bytes of a message that experiments with a choice of sizes can have.
const LARGEST_SIZE: u16 = 8192;

/// The options that say so.
#[derive(Clone, Debug, Default, Args)]
pub struct Selection {
    /// Over what; without it, what suits the experiment
    #[arg(long, value_enum, value_delimiter = ',', value_name = "T,...")]
    transport: Vec<Transport>,
    /// Bytes of request and response in `latency` and `rate`, multiples of 8
    #[arg(long, value_delimiter = ',', value_name = "N,...", value_parser = size)]
    size: Vec<u16>,
    /// Of the cases that have such a parameter, those with one of these values; can be repeated
    #[arg(long, value_name = "NAME=V,...", value_parser = only)]
    only: Vec<Only>,
}

/// A parameter, and the values of it that are wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Only {
    name: String,
    values: Vec<String>,
}

impl Selection {
    /// One size over one transport.
    pub fn one(transport: Option<Transport>, size: Option<u16>) -> Self {
        Self {
            transport: transport.into_iter().collect(),
            size: size.into_iter().collect(),
            only: Vec::new(),
        }
    }

    /// The transports that were asked for, or else the `usual` ones; each once.
    pub(crate) fn transports(&self, usual: &[Transport]) -> Vec<Transport> {
        let mut transports = match &self.transport[..] {
            [] => usual.to_vec(),
            given => given.to_vec(),
        };
        transports.sort_unstable();
        transports.dedup();
        transports
    }

    /// The sizes that were asked for, if any were.
    pub fn sizes(&self) -> Option<&[u16]> {
        (!self.size.is_empty()).then_some(&self.size[..])
    }

    /// Takes out the cases that are not wanted.
    pub(crate) fn keep(&self, cases: &mut Vec<Case>) {
        cases.retain(|case| self.only.iter().all(|only| only.allows(case)));
    }
}

impl Only {
    fn allows(&self, case: &Case) -> bool {
        let Some(value) = case.params().get(&self.name) else {
            return true;
        };
        self.values.iter().any(|wanted| *wanted == word(value))
    }
}

/// A parameter's value as it is written in commands.
pub fn word(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// # Errors
/// It is not the size of a message that is filled word by word.
fn size(text: &str) -> Result<u16, String> {
    let size: u16 = text.parse().map_err(|_| "not a number".to_owned())?;
    if !(8..=LARGEST_SIZE).contains(&size) || !size.is_multiple_of(8) {
        return Err(format!("not a multiple of 8 between 8 and {LARGEST_SIZE}"));
    }
    Ok(size)
}

/// # Errors
/// It is no parameter with values.
fn only(text: &str) -> Result<Only, String> {
    let (name, values) = text
        .split_once('=')
        .filter(|(name, values)| !name.is_empty() && !values.is_empty())
        .ok_or("write it as parameter=value,...")?;
    Ok(Only {
        name: name.to_owned(),
        values: values.split(',').map(str::to_owned).collect(),
    })
}

#[cfg(test)]
mod tests;
