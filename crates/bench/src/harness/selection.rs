//! Chooses which cases of an experiment are measured: transports, sizes of messages, and values of
//! other parameters. `bench` and `bench compare` use it.

use clap::Args;
use serde_json::Value;

use super::case::Case;
#[cfg(feature = "full")]
use super::link::EndName;
use super::transport::Transport;

/// Bytes of the largest message in experiments whose sizes can be chosen.
const LARGEST_SIZE: u16 = 8192;

/// Most MiB of items in a table: items are numbered with 32 bits, and a key alone has 16 bytes.
#[cfg(feature = "kv")]
const LARGEST_ITEMS: i64 = 64 << 10;

/// The command-line options that choose.
#[derive(Clone, Debug, Default, Args)]
pub struct Selection {
    /// Transports to measure over; by default, all that suit the experiment
    #[arg(long, value_enum, value_delimiter = ',', value_name = "T,...")]
    transport: Vec<Transport>,
    /// Bytes of request and response in `latency` and `rate`, multiples of 8
    #[arg(long, value_delimiter = ',', value_name = "N,...", value_parser = size)]
    size: Vec<u16>,
    /// MiB of keys and values in the tables of `store`, `store-memory`, `kv` and `memcached`
    #[cfg(feature = "kv")]
    #[arg(long, value_name = "MIB",
        value_parser = clap::value_parser!(u32).range(1..=LARGEST_ITEMS))]
    items_mib: Option<u32>,
    /// Of the cases that have this parameter, measure only those with one of these values; can be
    /// repeated
    #[arg(long, value_name = "NAME=V,...", value_parser = only)]
    only: Vec<Only>,
    /// The two ends of the link for `xdp`, and for `udp` in rows that say "same link", each as
    /// NAMESPACE/INTERFACE/ADDRESS; without them, the command makes a link, which needs root
    #[cfg(feature = "full")]
    #[arg(long, num_args = 2, value_names = ["NEAR", "FAR"])]
    ends: Vec<EndName>,
}

/// A parameter, and the values of it to keep.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Only {
    name: String,
    values: Vec<String>,
}

impl Selection {
    /// Chooses one size over one transport.
    pub fn one(transport: Option<Transport>, size: Option<u16>) -> Self {
        Self {
            transport: transport.into_iter().collect(),
            size: size.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Makes experiments over `xdp` use the chosen ends.
    ///
    /// # Errors
    /// There is no such namespace.
    pub(crate) fn use_ends(&self) -> anyhow::Result<()> {
        #[cfg(feature = "full")]
        if let [near, far] = &self.ends[..] {
            super::link::use_ends(near, far)?;
        }
        Ok(())
    }

    /// The chosen transports, or else the `usual` ones, without duplicates.
    pub(crate) fn transports(&self, usual: &[Transport]) -> Vec<Transport> {
        let mut transports = match &self.transport[..] {
            [] => usual.to_vec(),
            given => given.to_vec(),
        };
        transports.sort_unstable();
        transports.dedup();
        transports
    }

    /// The chosen sizes, if there are any.
    pub fn sizes(&self) -> Option<&[u16]> {
        (!self.size.is_empty()).then_some(&self.size[..])
    }

    /// The chosen size of tables, in MiB of items, if there is one.
    #[cfg(feature = "kv")]
    pub const fn items_mib(&self) -> Option<u32> {
        self.items_mib
    }

    /// Removes the cases that were not chosen.
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

/// A parameter's value as commands write it.
pub fn word(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// # Errors
/// The text is not a message size that is a multiple of a word.
fn size(text: &str) -> Result<u16, String> {
    let size: u16 = text.parse().map_err(|_| "not a number".to_owned())?;
    if !(8..=LARGEST_SIZE).contains(&size) || !size.is_multiple_of(8) {
        return Err(format!("not a multiple of 8 between 8 and {LARGEST_SIZE}"));
    }
    Ok(size)
}

/// # Errors
/// The text is not a parameter followed by values.
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
