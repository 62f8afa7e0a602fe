//! The judge of picks: which of the ready servers gets a new call. Some laws hold for each pick.
//! Others hold for the counts of a span, in which the same servers were ready and nothing else
//! happened.
//!
//! - Round robin: the counts of a span differ by at most 1.
//! - Least of two: no call goes to a server that has more than [`WEIGHT`] times as many
//!   outstanding attempts as the busiest of the other servers. In a span, equal servers have equal
//!   shares, and a slow server has a small one.
//! - Hash: a key stays while its server is ready. In a span, servers have equal shares of the keys.
//!   A server that leaves moves only its share of the keys.
//!
//! Called by the client when it begins a call.

use std::collections::BTreeMap;

use dunlin_channel::{Machine, Pick, State};
use dunlin_core::Nanos;

use super::super::plan::{Plan, ServerPlan};
use super::super::shares::{self, Judged};
use super::channel::Channel;

/// A ready server, and the number of attempts outstanding there.
type Ready = (usize, u32);

/// The machine's ready servers and its number of attempts, before it gets a call.
pub(super) struct Before {
    ready: Vec<Ready>,
    attempts: u64,
}

/// A server that got a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Home {
    server: usize,
    /// The servers that were ready.
    ready: Servers,
    /// The number of the span.
    span: u64,
}

/// A set of servers: a bit for each.
type Servers = u64;

#[derive(Clone, Debug, Default)]
struct Span {
    number: u64,
    since: Nanos,
    ready: Servers,
    /// The machine's number of attempts after the last call.
    attempts: u64,
    /// Calls of each ready server; with hashes, its keys.
    got: BTreeMap<usize, u64>,
    /// The difference in attempts between the busiest and the least busy server when the span
    /// began.
    ahead: u64,
    /// Attempts that were outstanding at the ready servers, summed over the calls.
    outstanding: u64,
    /// Number of keys whose previous call was made when one more server was ready, and how many of
    /// them moved.
    keys: u64,
    moved: u64,
}

/// With at least this many outstanding attempts at a server on average, the least of two avoids a
/// slow server. With fewer, servers are often idle.
const LOADED: u64 = 2;

/// An outstanding attempt at a slow server counts as at most this many attempts.
const WEIGHT: u32 = 4;

pub(super) struct Picks {
    pick: Pick,
    servers: Vec<ServerPlan>,
    /// Whether the client has other channels. Calls of those fill the same sessions, so servers
    /// that are equal answer this channel in different times.
    shares_sessions: bool,
    span: Span,
    homes: BTreeMap<u64, Home>,
    judged: Judged,
}

impl Before {
    pub(super) fn of(machine: &Machine) -> Self {
        Self {
            ready: ready(machine),
            attempts: machine.counters().attempts,
        }
    }

    fn servers(&self) -> Servers {
        self.ready.iter().map(|(server, _)| 1 << server).sum()
    }
}

fn ready(machine: &Machine) -> Vec<Ready> {
    let views = machine.addresses();
    let views = views.filter(|view| matches!(view.state, State::Ready | State::Degraded));
    let ready = views.filter_map(|view| Some((view.name.parse().ok()?, view.outstanding)));
    ready.collect()
}

impl Picks {
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            pick: plan.channel.pick,
            servers: plan.servers.clone(),
            shares_sessions: plan.channels > 1,
            span: Span::default(),
            homes: BTreeMap::new(),
            judged: Judged::default(),
        }
    }

    /// Judges the pick for a call that the machine has just received. `calm`: the time at which the
    /// last fault was over.
    pub(super) fn on_call(
        &mut self,
        before: &Before,
        machine: &Machine,
        key: u64,
        (now, calm): (Nanos, Nanos),
    ) -> Result<(), String> {
        let servers = before.servers();
        if servers != self.span.ready || before.attempts != self.span.attempts {
            self.end_span(now, calm)?;
            self.begin_span(before, now);
        }
        self.span.attempts = machine.counters().attempts;
        // The machine picks at once, and counts its attempt at the picked server.
        let is_picked = |(was, is): &(&Ready, Ready)| was.1 < is.1;
        let mut both = before.ready.iter().zip(ready(machine));
        let Some((&(server, busy), _)) = both.find(is_picked) else {
            // No server got the call yet. The machine picks one later, when this judge does not
            // look, so the next call begins a new span.
            self.span.ready = 0;
            return Ok(());
        };
        let others = before.ready.iter().filter(|(other, _)| *other != server);
        let most = others.map(|(_, busy)| *busy).max();
        self.span.outstanding += before.ready.iter().map(|it| u64::from(it.1)).sum::<u64>();
        match self.pick {
            Pick::LeastOfTwo if most.is_some_and(|most| busy > WEIGHT * most) => Err(format!(
                "server {server} is by far the busiest, but gets a call: {:?}",
                before.ready
            )),
            Pick::Hash => self.on_key(key, server),
            _ => {
                self.span.count(server);
                Ok(())
            }
        }
    }

    fn on_key(&mut self, key: u64, server: usize) -> Result<(), String> {
        let (ready, span) = (self.span.ready, self.span.number);
        let home = Home {
            server,
            ready,
            span,
        };
        let last = self.homes.insert(key, home);
        if last.is_none_or(|last| last.span != span) {
            self.span.count(server);
            let left = last.filter(|last| is_one_less(ready, last.ready));
            self.span.keys += u64::from(left.is_some());
            self.span.moved += u64::from(left.is_some_and(|last| last.server != server));
        }
        match last.filter(|last| last.moves_in_vain(home)) {
            Some(last) => Err(format!(
                "key {key} moves without a reason: {last:?}, {home:?}"
            )),
            None => Ok(()),
        }
    }

    fn begin_span(&mut self, before: &Before, now: Nanos) {
        let busy = || before.ready.iter().map(|(_, busy)| u64::from(*busy));
        self.span = Span {
            number: self.span.number + 1,
            since: now,
            ready: before.servers(),
            got: before
                .ready
                .iter()
                .map(|(server, _)| (*server, 0))
                .collect(),
            ahead: busy().max().unwrap_or(0) - busy().min().unwrap_or(0),
            ..Span::default()
        };
    }

    /// Judges the last span.
    pub(super) fn end_span(&mut self, now: Nanos, calm: Nanos) -> Result<(), String> {
        let span = std::mem::take(&mut self.span);
        self.span.number = span.number;
        if span.since < calm {
            return Ok(());
        }
        let plans = &self.servers;
        let judged = match self.pick {
            Pick::RoundRobin => span.judge_turns(),
            Pick::Hash => span.judge_keys(),
            _ if self.shares_sessions => Ok(Judged::default()),
            _ => span.judge_least(plans, now),
        };
        let judged = judged.map_err(|what| format!("{what}: {:?}, {span:?}", self.pick))?;
        self.judged = self.judged.plus(judged);
        Ok(())
    }
}

impl Channel {
    /// Judges the shares of the calls so far.
    pub(in crate::channel) fn judge_shares(&mut self, now: Nanos) -> Result<(), String> {
        let calm = self.ledger.borrow().calm();
        self.picks.end_span(now, calm)
    }

    /// The number of judgements of shares.
    pub(in crate::channel) fn judged(&self) -> Judged {
        self.picks.judged
    }
}

impl Home {
    /// Whether a key that was here has moved to `home` without a reason: its old server is still
    /// ready, and its new one was ready before. Each key has a fixed order of all servers.
    fn moves_in_vain(&self, home: Self) -> bool {
        let holds = |servers: Servers, server: usize| servers >> server & 1 == 1;
        let is_other = self.server != home.server;
        is_other && holds(home.ready, self.server) && holds(self.ready, home.server)
    }
}

/// Whether `now` is `before` without one server.
fn is_one_less(now: Servers, before: Servers) -> bool {
    now & before == now && (before & !now).count_ones() == 1
}

impl Span {
    fn count(&mut self, server: usize) {
        *self.got.entry(server).or_default() += 1;
    }

    fn judge_turns(&self) -> Result<Judged, String> {
        let most = self.got.values().max().copied().unwrap_or(0);
        let least = self.got.values().min().copied().unwrap_or(0);
        match most - least > 1 {
            true => Err("round robin has skipped a server".to_owned()),
            false => shares::equal(self.got.values().copied(), 0, shares::ALONE),
        }
    }

    fn judge_keys(&self) -> Result<Judged, String> {
        let judged = shares::equal(self.got.values().copied(), 0, shares::ALONE)?;
        let moved = shares::moved(self.moved, self.keys, self.got.len() as u64 + 1)?;
        Ok(judged.plus(moved))
    }

    fn judge_least(&self, plans: &[ServerPlan], now: Nanos) -> Result<Judged, String> {
        let mut judged = Judged::default();
        for (at, plan) in plans.iter().enumerate() {
            if plans[..at].iter().any(|before| before.is_equal(plan)) {
                continue;
            }
            let equal = self.got.iter().filter(|it| plans[*it.0].is_equal(plan));
            let equal = equal.map(|(_, got)| *got);
            judged = judged.plus(shares::equal(equal, self.ahead, shares::ALIKE)?);
        }
        let slow = self.got.iter().find(|it| self.is_slow(*it.0, plans));
        let Some((server, got)) = slow else {
            return Ok(judged);
        };
        let (calls, servers) = (self.got.values().sum::<u64>(), self.got.len() as u64);
        let is_busy = self.outstanding >= LOADED * calls * servers;
        let lasts = now.since(self.since).0 / 10 >= plans[*server].takes.mean().0;
        match is_busy && lasts {
            true => Ok(judged.plus(shares::slow(*got, calls, servers)?)),
            false => Ok(judged),
        }
    }

    /// Whether a server is ten times as slow as every other one.
    fn is_slow(&self, server: usize, plans: &[ServerPlan]) -> bool {
        let mean = |server: usize| plans[server].takes.mean().0;
        let mut others = self.got.keys().filter(|other| **other != server);
        self.got.len() > 1 && others.all(|other| mean(*other) * 10 <= mean(server))
    }
}
