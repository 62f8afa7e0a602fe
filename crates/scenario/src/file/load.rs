//! A `[[load]]` of a scenario file, and the load that it describes.

use std::ops::Range;
use std::str::FromStr;

use dunlin_core::ConfigError;
use dunlin_sim::scenario::{Arrivals, Load, Nanos, Partners, Scheme, SessionOptions, Wrong};
use serde::{Deserialize, Deserializer};

use super::{Endpoint, amount};

/// Clients that keep servers busy.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LoadSection {
    name: String,
    /// Hosts: `"3"` or `3`, `"1-20"`, `"1-"` (all from the second on), `"all"`.
    #[serde(deserialize_with = "text_or_number")]
    clients: String,
    #[serde(deserialize_with = "text_or_number")]
    pub(super) servers: String,
    #[serde(default = "one")]
    pub(super) endpoints: usize,
    /// `"drawn"`: a partner is drawn for each request; or `"fixed"`.
    #[serde(default)]
    pub(super) partners: PartnersText,
    /// The load's own congestion control scheme, which overrides that of `[endpoint]`.
    pub(super) cc: Option<String>,
    pub(super) credits: Option<u32>,
    pub(super) window: Option<u32>,
    request_bytes: u32,
    pub(super) response_bytes: u32,
    #[serde(default = "one")]
    in_flight: u32,
    /// Only in a closed loop.
    pub(super) batch: Option<u32>,
    /// Only in a closed loop: the mean of the pauses between two batches.
    pub(super) think_us: Option<f64>,
    /// Only in an open loop: the rate at which requests of a client arrive.
    pub(super) rate_per_s: Option<f64>,
    #[serde(default)]
    start_us: f64,
    #[serde(default)]
    spread_us: f64,
    /// The time at which clients leave.
    stop_us: Option<f64>,
}

/// [`Partners`] in the words of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum PartnersText {
    #[default]
    Drawn,
    Fixed,
}

fn one<N: From<u8>>() -> N {
    1.into()
}

/// Accepts one host as a number, as in `--set load.0.clients=1`.
fn text_or_number<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(
        untagged,
        expecting = "expected hosts: \"3\", \"1-20\", \"1-\" or \"all\""
    )]
    enum Hosts {
        Number(u64),
        Text(String),
    }
    Ok(match Hosts::deserialize(from)? {
        Hosts::Number(host) => host.to_string(),
        Hosts::Text(text) => text,
    })
}

impl LoadSection {
    /// The load at this index of the list, in a scenario with `all` hosts and the options of
    /// `endpoint`.
    pub(super) fn load(
        &self,
        index: usize,
        all: usize,
        endpoint: &Endpoint,
    ) -> Result<Load, Wrong> {
        let key = |name: &str| format!("load.{index}.{name}");
        let hosts = |name: &str, text: &str| {
            let what = "use \"3\", \"1-20\", \"1-\" or \"all\"";
            hosts(text, all).ok_or_else(|| Wrong::new(&key(name), what))
        };
        let time = |name: &str, us: f64| amount(&key(name), us * 1e3).map(Nanos);
        let stop = self.stop_us.map(|us| time("stop_us", us)).transpose()?;
        Ok(Load {
            name: self.name.clone(),
            clients: hosts("clients", &self.clients)?,
            servers: hosts("servers", &self.servers)?,
            endpoints: self.endpoints,
            partners: match self.partners {
                PartnersText::Drawn => Partners::Drawn,
                PartnersText::Fixed => Partners::Fixed,
            },
            session: self.session(index, endpoint)?,
            request_bytes: self.request_bytes,
            response_bytes: self.response_bytes,
            in_flight: self.in_flight,
            arrivals: match self.rate_per_s {
                Some(rate) => Arrivals::Open {
                    gap: gap(&key("rate_per_s"), rate)?,
                },
                None => Arrivals::Closed {
                    batch: self.batch.unwrap_or(1),
                    think: time("think_us", self.think_us.unwrap_or(0.0))?,
                },
            },
            start: time("start_us", self.start_us)?,
            spread: time("spread_us", self.spread_us)?,
            stop: stop.unwrap_or(Nanos::MAX),
        })
    }

    /// The options of the load's sessions. An error names the key that set the value: the load's
    /// own, or the one in `[endpoint]`.
    fn session(&self, index: usize, endpoint: &Endpoint) -> Result<SessionOptions, Wrong> {
        let blame = |is_own: bool, name: &str, why: &dyn ToString| {
            let key = match is_own {
                true => format!("load.{index}.{name}"),
                false => format!("endpoint.{name}"),
            };
            Wrong::new(&key, why.to_string())
        };
        let cc = self.cc.as_ref().unwrap_or(&endpoint.cc);
        let scheme = Scheme::from_str(cc);
        let scheme = scheme.map_err(|why| blame(self.cc.is_some(), "cc", &why))?;
        let options = SessionOptions {
            window: self.window.unwrap_or(endpoint.window),
            credits: self.credits.unwrap_or(endpoint.credits),
            scheme: Some(scheme),
        };
        options.check().map_err(|why| match why {
            ConfigError::Window(_) => blame(self.window.is_some(), "window", &why),
            _ => blame(self.credits.is_some(), "credits", &why),
        })?;
        Ok(options)
    }
}

/// The mean time between two arrivals.
fn gap(key: &str, per_second: f64) -> Result<Nanos, Wrong> {
    // A negative rate is refused; with a rate of 0, the time is infinite.
    amount(key, per_second)?;
    amount(key, 1e9 / per_second.abs()).map(Nanos)
}

/// The range of hosts, out of `all`, that the text names.
pub(super) fn hosts(text: &str, all: usize) -> Option<Range<usize>> {
    let until = |last: &str| last.parse::<usize>().ok()?.checked_add(1);
    if text == "all" {
        return Some(0..all);
    }
    match text.split_once('-') {
        None => Some(text.parse().ok()?..until(text)?),
        Some((first, "")) => Some(first.parse().ok()?..all),
        Some((first, last)) => Some(first.parse().ok()?..until(last)?),
    }
}

#[cfg(test)]
mod tests;
