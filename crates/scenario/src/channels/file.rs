//! The keys of a file of channels, and the script that they describe.

use std::ops::RangeInclusive;

use dunlin_sim::channel::{Answers, Config, Pick, Played, Script, Strike, Tally, What};
use dunlin_sim::scenario::{Nanos, Wrong};
use dunlin_sim::world::net::FaultRates;
use dunlin_sim::world::rng::Ppm;
use serde::Deserialize;

use crate::file::{amount, micros};

/// A file of channels.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct File {
    pub(super) name: String,
    seed: u64,
    /// Calls begin until this time.
    end_ms: f64,
    channel: Channel,
    calls: Calls,
    server: Vec<Server>,
    fault: Vec<Fault>,
    network: Network,
    pub(super) expect: Expected,
}

/// The options of every channel.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Channel {
    pick: PickText,
    attempts: u8,
    patience_ms: f64,
    /// None if left out.
    deadline_ms: Option<f64>,
    /// No hedges if left out.
    hedge_ms: Option<f64>,
    lookup_ms: f64,
}

/// [`Pick`] in the words of a file.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PickText {
    RoundRobin,
    #[default]
    LeastOfTwo,
    Hash,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Calls {
    clients: usize,
    /// The time at which the first calls begin.
    begin_ms: f64,
    /// Calls of each client, which begin at random times.
    rate_per_s: f64,
    idempotent_percent: f64,
    /// Calls that their callers drop.
    dropped_percent: f64,
    /// Number of different keys; 0: each call has its own.
    keys: u64,
    /// The most calls of a session at its server.
    window: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Server {
    /// The mean time of a handler.
    handler_ms: f64,
    /// Requests that it refuses as overloaded.
    refused_percent: f64,
    /// Requests that its handler answers with an error.
    failed_percent: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fault {
    at_ms: f64,
    /// The index of the server in the file, from 0.
    server: usize,
    what: WhatText,
    for_ms: f64,
}

/// [`What`] in the words of a file.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WhatText {
    Crash,
    Stop,
    Drain,
    Unlist,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Network {
    loss_ppm: u32,
    duplicate_ppm: u32,
    reorder_ppm: u32,
    /// Longest delay of a late frame.
    reorder_us: u64,
}

/// The expected results. A result that is left out may have any value.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Expected {
    least_answered: Option<u64>,
    least_failed: Option<u64>,
    most_failed: Option<u64>,
    /// Handlers that began after their call had ended.
    least_late_runs: Option<u64>,
    longest_call_ms: Option<f64>,
    /// How far the handlers of each server may deviate from an equal share, in percent of that
    /// share.
    equal_shares_percent: Option<f64>,
    /// The most handlers that the server with the slowest handlers may run, in percent of an equal
    /// share.
    most_of_slowest_percent: Option<f64>,
    /// The most keys whose last call runs at another server than their first, in percent.
    most_moved_percent: Option<f64>,
}

impl Default for File {
    fn default() -> Self {
        Self {
            name: "channels".to_owned(),
            seed: 1,
            end_ms: 1000.0,
            channel: Channel::default(),
            calls: Calls::default(),
            server: Vec::new(),
            fault: Vec::new(),
            network: Network::default(),
            expect: Expected::default(),
        }
    }
}

impl Default for Channel {
    fn default() -> Self {
        Self {
            pick: PickText::default(),
            attempts: Config::DEFAULT.retry.attempts,
            patience_ms: 5000.0,
            deadline_ms: None,
            hedge_ms: None,
            lookup_ms: 30_000.0,
        }
    }
}

impl Default for Calls {
    fn default() -> Self {
        Self {
            clients: 1,
            begin_ms: 0.0,
            rate_per_s: 1000.0,
            idempotent_percent: 0.0,
            dropped_percent: 0.0,
            keys: 0,
            window: 8,
        }
    }
}

impl Default for Server {
    fn default() -> Self {
        Self {
            handler_ms: 0.1,
            refused_percent: 0.0,
            failed_percent: 0.0,
        }
    }
}

/// The most calls of a run: each costs memory, and the checkers look at all of them.
const MOST_CALLS: f64 = 1e6;

/// The most clients, and most servers.
const HOSTS: RangeInclusive<usize> = 1..=100;

impl File {
    /// # Errors
    /// A key has an invalid value.
    pub(super) fn script(&self) -> Result<Script, Wrong> {
        let (calls, network) = (&self.calls, &self.network);
        if !HOSTS.contains(&calls.clients) {
            return Err(Wrong::new("calls.clients", "must be from 1 to 100"));
        }
        if !HOSTS.contains(&self.server.len()) {
            return Err(Wrong::new("server", "there must be 1 to 100"));
        }
        let rate = calls.rate_per_s;
        let all = rate * self.end_ms / 1e3 * f64::from(u8::try_from(calls.clients).unwrap_or(0));
        if !(rate > 0.0 && all <= MOST_CALLS) {
            let what = "must be above 0, with at most a million calls of all clients until end_ms";
            return Err(Wrong::new("calls.rate_per_s", what));
        }
        if !(1..=64).contains(&calls.window) {
            return Err(Wrong::new("calls.window", "must be from 1 to 64"));
        }
        network.check()?;
        Ok(Script {
            seed: self.seed,
            end: millis("end_ms", self.end_ms)?,
            channel: self.channel.config()?,
            servers: self.answers()?,
            clients: calls.clients,
            begin: millis("calls.begin_ms", calls.begin_ms)?,
            gap: Nanos(amount("calls.rate_per_s", 1e9 / rate)?),
            idempotent: percent("calls.idempotent_percent", calls.idempotent_percent)?,
            dropped: percent("calls.dropped_percent", calls.dropped_percent)?,
            keys: calls.keys,
            window: calls.window,
            rates: FaultRates {
                loss: Ppm(network.loss_ppm),
                duplicate: Ppm(network.duplicate_ppm),
                reorder: Ppm(network.reorder_ppm),
                reorder_by: micros(network.reorder_us),
                ..FaultRates::NONE
            },
            strikes: self.strikes()?,
        })
    }

    /// The faults. At one server, two faults of the process must not overlap, nor must two faults
    /// of the list: the later one would have no effect, or end the earlier one.
    fn strikes(&self) -> Result<Vec<Strike>, Wrong> {
        let mut strikes: Vec<Strike> = Vec::new();
        for (index, fault) in self.fault.iter().enumerate() {
            let strike = fault.strike(index, self.server.len())?;
            let is_beside = |other: &Strike| {
                let is_alike = (strike.what == What::Unlist) == (other.what == What::Unlist);
                let begins_in = |a: &Strike, b: &Strike| b.at <= a.at && a.at <= b.at + b.span;
                let overlap = begins_in(&strike, other) || begins_in(other, &strike);
                strike.server == other.server && is_alike && overlap
            };
            if let Some(place) = strikes.iter().position(is_beside) {
                let what = format!("fault.{place} strikes this server at the same time");
                return Err(Wrong::new(&format!("fault.{index}.at_ms"), what));
            }
            strikes.push(strike);
        }
        Ok(strikes)
    }

    fn answers(&self) -> Result<Vec<Answers>, Wrong> {
        let servers = self.server.iter().enumerate();
        let answers = servers.map(|(index, server)| {
            let key = |name: &str| format!("server.{index}.{name}");
            Ok(Answers {
                mean: handler(&key("handler_ms"), server.handler_ms)?,
                refuses: percent(&key("refused_percent"), server.refused_percent)?,
                fails: percent(&key("failed_percent"), server.failed_percent)?,
            })
        });
        answers.collect()
    }
}

impl Channel {
    fn config(&self) -> Result<Config, Wrong> {
        let most = Config::DEFAULT.retry.attempts;
        if !(1..=most).contains(&self.attempts) {
            let what = format!("must be from 1 to {most}");
            return Err(Wrong::new("channel.attempts", what));
        }
        let span = |key, ms: Option<f64>| ms.map(|ms| millis(key, ms)).transpose();
        let mut config = Config {
            pick: match self.pick {
                PickText::RoundRobin => Pick::RoundRobin,
                PickText::LeastOfTwo => Pick::LeastOfTwo,
                PickText::Hash => Pick::Hash,
            },
            patience: millis("channel.patience_ms", self.patience_ms)?,
            deadline: span("channel.deadline_ms", self.deadline_ms)?,
            hedge: span("channel.hedge_ms", self.hedge_ms)?,
            lookup: Some(millis("channel.lookup_ms", self.lookup_ms)?),
            ..Config::DEFAULT
        };
        config.retry.attempts = self.attempts;
        Ok(config)
    }
}

impl Network {
    fn check(&self) -> Result<(), Wrong> {
        for (key, ppm) in [
            ("network.loss_ppm", self.loss_ppm),
            ("network.duplicate_ppm", self.duplicate_ppm),
            ("network.reorder_ppm", self.reorder_ppm),
        ] {
            if ppm > 1_000_000 {
                return Err(Wrong::new(key, "must be at most a million"));
            }
        }
        match (self.reorder_ppm > 0, self.reorder_us > 0) {
            (true, false) => Err(Wrong::new("network.reorder_ppm", "needs reorder_us")),
            (false, true) => Err(Wrong::new("network.reorder_us", "needs reorder_ppm")),
            _ => Ok(()),
        }
    }
}

impl Fault {
    fn strike(&self, index: usize, servers: usize) -> Result<Strike, Wrong> {
        let key = |name: &str| format!("fault.{index}.{name}");
        if self.server >= servers {
            let what = format!("there are {servers} servers, numbered from 0");
            return Err(Wrong::new(&key("server"), what));
        }
        Ok(Strike {
            at: millis(&key("at_ms"), self.at_ms)?,
            server: self.server,
            what: match self.what {
                WhatText::Crash => What::Crash,
                WhatText::Stop => What::Stop,
                WhatText::Drain => What::Drain,
                WhatText::Unlist => What::Unlist,
            },
            span: millis(&key("for_ms"), self.for_ms)?,
        })
    }
}

impl Expected {
    /// The expectations that a run against these servers has not met.
    pub(super) fn unmet(&self, servers: &[Answers], played: &Played) -> Vec<String> {
        let tally = &played.tally;
        let failed = tally.failed.iter().sum();
        let least = [
            ("least_answered", self.least_answered, tally.answered),
            ("least_failed", self.least_failed, failed),
            ("least_late_runs", self.least_late_runs, tally.late_runs),
        ];
        let least = least.into_iter().filter_map(|(key, least, count)| {
            let least = least.filter(|least| count < *least)?;
            Some(format!("{key} = {least}, but there are {count}"))
        });
        let most = self.most_failed.filter(|most| failed > *most);
        let most = most.map(|most| format!("most_failed = {most}, but there are {failed}"));
        let longest = crate::text::micros(tally.longest.0) / 1e3;
        let late = self.longest_call_ms.filter(|most| longest > *most);
        let late = late.map(|most| format!("longest_call_ms = {most}, but one took {longest:.3}"));
        let unmet = least.chain(most).chain(late);
        unmet.chain(self.unmet_shares(servers, tally)).collect()
    }

    fn unmet_shares(&self, servers: &[Answers], tally: &Tally) -> Vec<String> {
        let all: u64 = tally.runs.values().sum();
        let share = |server: usize| {
            let runs = tally.runs.get(&server).copied().unwrap_or(0);
            percent_of(runs * servers.len() as u64, all)
        };
        let shares = (0..servers.len()).map(share);
        let apart = shares.fold(0.0_f64, |most, share| most.max((share - 100.0).abs()));
        let slowest = (0..servers.len()).max_by_key(|server| servers[*server].mean);
        let slowest = slowest.map_or(0.0, share);
        let (moved, keys) = tally.moved();
        let moved = percent_of(moved as u64, keys as u64);
        let found = [
            ("equal_shares_percent", self.equal_shares_percent, apart),
            (
                "most_of_slowest_percent",
                self.most_of_slowest_percent,
                slowest,
            ),
            ("most_moved_percent", self.most_moved_percent, moved),
        ];
        let unmet = found.into_iter().filter_map(|(key, most, found)| {
            let most = most.filter(|most| found > *most)?;
            Some(format!("{key} = {most}, but it is {found:.1}"))
        });
        unmet.collect()
    }
}

/// The part in percent; 0 if there is nothing, which is no equal share.
fn percent_of(part: u64, all: u64) -> f64 {
    match all {
        0 => 0.0,
        all => 100.0 * part as f64 / all as f64,
    }
}

/// Longest time in a file: a day.
const DAY_MS: f64 = 86_400_000.0;

fn millis(key: &str, ms: f64) -> Result<Nanos, Wrong> {
    match ms <= DAY_MS {
        true => Ok(Nanos(amount(key, ms * 1e6)?)),
        false => Err(Wrong::new(key, "must be at most a day")),
    }
}

/// The mean time of a handler. All calls of a run must end within a bounded time after the last one
/// has begun.
fn handler(key: &str, ms: f64) -> Result<Nanos, Wrong> {
    match ms <= 1_000.0 {
        true => millis(key, ms),
        false => Err(Wrong::new(key, "must be at most a second")),
    }
}

fn percent(key: &str, percent: f64) -> Result<Ppm, Wrong> {
    match (0.0..=100.0).contains(&percent) {
        true => Ok(Ppm(u32::try_from(amount(key, percent * 1e4)?).unwrap_or(0))),
        false => Err(Wrong::new(key, "must be from 0 to 100")),
    }
}
