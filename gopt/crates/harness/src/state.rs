//! In which state the machine was while something was measured, and which measurements belong
//! together.
//!
//! A virtual machine's processors may lie close together or far apart, and that changes every few
//! seconds to minutes: a cache line then goes to and fro in 100 ns or in 500, and every figure of
//! two processes with it. So such a ping-pong runs directly before and after each measurement. A
//! round whose ping-pongs do not agree was measured in two states, and is left out; the others are
//! grouped into [`states`]. All of this is plain computing on numbers.

use serde::{Deserialize, Serialize};

use crate::row::Spread;

/// How much longer the slowest of some ping-pongs may take than the fastest, in one state.
const AGREEMENT: f64 = 1.3;

/// One state of the machine: what a cache line takes to and fro, in ns, in the rounds that were
/// measured in it.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The median of the rounds, of which each has the median of its ping-pongs.
    pub ping_ns: f64,
    /// Of the rounds, the smallest.
    pub min: f64,
    /// And the largest.
    pub max: f64,
    /// Rounds that are left out: measured in another state, or in several.
    pub left_out: usize,
}

/// The rounds of one state.
#[derive(Clone, PartialEq, Debug)]
pub struct Group {
    /// Which rounds, in order.
    pub rounds: Vec<usize>,
    /// Times of the rounds' ping-pongs.
    pub ping_ns: Spread,
}

impl Group {
    /// The state, if there were `rounds` rounds in all.
    #[must_use]
    pub fn state(&self, rounds: usize) -> State {
        State {
            ping_ns: self.ping_ns.median,
            min: self.ping_ns.min,
            max: self.ping_ns.max,
            left_out: rounds - self.rounds.len(),
        }
    }
}

/// The time of one round's ping-pongs, in ns, if they say that it was measured in one state.
pub fn steady(pings: &[f64]) -> Option<f64> {
    let Spread { median, min, max } = Spread::of(pings.iter().copied())?;
    agree(min, max).then_some(median)
}

/// The states that rounds were measured in, those with the most rounds first, of equals the
/// faster; a round that was measured in several (`None`) is in none of them. A round is in at most
/// one state.
pub fn states(rounds: &[Option<f64>]) -> Vec<Group> {
    let with_index = rounds.iter().enumerate();
    let mut left: Vec<(f64, usize)> = with_index
        .filter_map(|(index, ping)| ping.map(|ping| (ping, index)))
        .collect();
    left.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut groups = Vec::new();
    while let Some((begin, len)) = widest(&left) {
        let taken: Vec<(f64, usize)> = left.drain(begin..begin + len).collect();
        let mut rounds: Vec<usize> = taken.iter().map(|&(_, index)| index).collect();
        rounds.sort_unstable();
        let ping_ns = Spread::of(taken.into_iter().map(|(ping, _)| ping));
        groups.extend(ping_ns.map(|ping_ns| Group { rounds, ping_ns }));
    }
    groups
}

/// Where in sorted rounds the longest stretch begins that agrees, and how long it is; the first of
/// equals.
fn widest(sorted: &[(f64, usize)]) -> Option<(usize, usize)> {
    let stretch = |begin: usize| {
        let fastest = sorted[begin].0;
        let agrees = |it: &&(f64, usize)| agree(fastest, it.0);
        (begin, sorted[begin..].iter().take_while(agrees).count())
    };
    let stretches = (0..sorted.len()).map(stretch);
    stretches
        .filter(|(_, len)| *len > 0)
        .reduce(|best, it| if it.1 > best.1 { it } else { best })
}

/// True if the fastest and the slowest of some ping-pongs belong to one state.
fn agree(fastest: f64, slowest: f64) -> bool {
    fastest > 0.0 && slowest <= AGREEMENT * fastest
}

#[cfg(test)]
mod tests;
