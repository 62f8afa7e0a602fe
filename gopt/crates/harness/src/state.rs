//! Finds the machine's states during measurements, and the measurements of the same state.
//!
//! A virtual machine's processors may be close together or far apart, and that changes every few
//! seconds to minutes. A cache line then goes back and forth in 100 ns or in 500, and the figures
//! of two processes change with it. So a ping-pong of a line runs directly before and after each
//! measurement. A round whose ping-pongs do not agree was measured in two states, and is left out;
//! the others are grouped into [`states`]. This file only computes with numbers.

use serde::{Deserialize, Serialize};

use crate::row::Spread;

/// Ping-pongs belong to one state if the slowest takes at most this many times as long as the
/// fastest.
const AGREEMENT: f64 = 1.3;

/// One state of the machine: the round trip of a cache line, in ns, in the rounds that were
/// measured in it.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The median over the rounds; each round counts with the median of its ping-pongs.
    pub ping_ns: f64,
    /// The smallest value of a round.
    pub min: f64,
    /// The largest value of a round.
    pub max: f64,
    /// Rounds that are left out: measured in another state, or in several.
    pub left_out: usize,
}

/// The state of the machine during a row's rounds, or the reason why there is none.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Condition {
    /// All rounds that count were measured in this state.
    Steady(State),
    /// There is no such state, for this reason.
    Without(Reason),
}

/// The reason why a row has no state of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Reason {
    /// The figure does not depend on it, or no ping-pong can be played on this machine.
    #[serde(rename = "not measured")]
    NotMeasured,
    /// It changed in every round.
    #[serde(rename = "changing")]
    Changing,
    /// The row was written by a program that did not record it.
    #[serde(rename = "not recorded")]
    NotRecorded,
}

impl Condition {
    /// The state, if there is one.
    #[must_use]
    pub fn state(&self) -> Option<State> {
        match self {
            Self::Steady(state) => Some(*state),
            Self::Without(_) => None,
        }
    }

    /// True if the figures of both rows may be compared: they come from the same state, or depend
    /// on none.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        match (self.state(), other.state()) {
            (Some(State { ping_ns: one, .. }), Some(State { ping_ns: other, .. })) => {
                agree(one.min(other), one.max(other))
            }
            _ => self == other,
        }
    }

    /// The condition of an older row, which did not record one.
    pub(crate) fn of_older() -> Self {
        Self::Without(Reason::NotRecorded)
    }
}

/// The rounds of one state.
#[derive(Clone, PartialEq, Debug)]
pub struct Group {
    /// The indices of the rounds, in order.
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

/// The time of one round's ping-pongs, in ns; `None` if they show more than one state.
pub fn steady(pings: &[f64]) -> Option<f64> {
    let Spread { median, min, max } = Spread::of(pings.iter().copied())?;
    agree(min, max).then_some(median)
}

/// The states of the machine in these rounds: the state with the most rounds first; if two have
/// equally many, the faster one comes first. A round that was measured in several states (`None`)
/// belongs to none. A round is in at most one state.
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

/// Start and length of the longest run of sorted rounds that agree. Of several equally long runs,
/// the first.
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
