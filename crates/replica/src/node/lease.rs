//! The lease of a leader: the time in which no other node can lead, so that gets need no majority
//! (Raft dissertation, §6.4.1).
//!
//! After a message of its leader, a node votes for no other node until the shortest election
//! timeout has passed, which it counts in ticks. So if a leader asks all nodes and a majority
//! answers, no other node can become leader for that many ticks after the question. Assumption: no
//! node's clock runs more than an eighth faster than another's, and none stands while others go on;
//! the clocks need not show the same time. After a pause of the process, the leader's clock shows
//! that the lease is over. After a suspension of its host, the clock may not show that.
//!
//! A leader may ask a node to take over. That node asks for votes at once, and the others vote for
//! it although they have a leader. The leader's request may arrive late, so after sending it, the
//! leader has no lease for the rest of that term.
//!
//! Called by `node`.

use std::collections::BTreeMap;

use dunlin_core::Nanos;

use crate::options::Options;

#[derive(Debug, Default)]
pub(super) struct Lease {
    now: Nanos,
    /// The times of questions that no majority has answered yet.
    asked: BTreeMap<u64, Nanos>,
    /// No other node becomes leader before this time.
    until: Nanos,
    /// The last term in which this node has asked another one to lead.
    given_up: u64,
    /// The number of ticks of this node, by which a planted bug measures time.
    #[cfg(feature = "mutants")]
    ticks: u64,
    #[cfg(feature = "mutants")]
    measures_ticks: bool,
}

impl Lease {
    /// Plants the bug that time is measured in ticks, so a long pause counts as one tick.
    #[cfg(feature = "mutants")]
    pub(super) fn measure_ticks(&mut self) {
        self.measures_ticks = true;
    }

    pub(super) fn on_time(&mut self, now: Nanos) {
        #[cfg(feature = "mutants")]
        if self.measures_ticks {
            return;
        }
        self.now = now;
    }

    /// Notes a tick of Raft. `tick` is its length.
    pub(super) fn on_tick(&mut self, tick: Nanos) {
        #[cfg(feature = "mutants")]
        if self.measures_ticks {
            self.ticks += 1;
            self.now = tick.times(self.ticks);
        }
        let _ = tick;
    }

    /// Notes a question to all nodes.
    pub(super) fn on_asked(&mut self, question: u64) {
        self.asked.insert(question, self.now);
    }

    /// Notes that a majority has answered a question.
    pub(super) fn on_confirmed(&mut self, question: &[u8], tick: Nanos) {
        let number = question.try_into().map(u64::from_le_bytes);
        let Some(asked) = number.ok().and_then(|it| self.asked.remove(&it)) else {
            return;
        };
        // Another node's first tick may come at once, and its clock may be fast.
        let ticks = Options::ELECTION_TICKS as u64 - 1;
        let until = asked + Nanos(tick.0 * ticks / 8 * 7);
        self.until = self.until.max(until);
    }

    /// Ends the lease, because the term is over.
    pub(super) fn end(&mut self) {
        self.asked.clear();
        self.until = Nanos::ZERO;
    }

    /// Gives up all leases of this term.
    pub(super) fn give_up(&mut self, term: u64) {
        self.given_up = term;
    }

    /// Whether this node, which leads in this term, can be sure that no other node leads.
    pub(super) fn holds(&self, term: u64) -> bool {
        self.now < self.until && self.given_up != term
    }
}

#[cfg(test)]
mod tests;
