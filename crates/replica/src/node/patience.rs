//! How long a node with a disk waits for the result of an election.
//!
//! A vote must be on the voter's disk before it is sent, and a candidate's own vote on its disk
//! before it asks for others. So an election takes two consecutive writes, and each waits for the
//! write that is already under way. If these writes take longer than an election timeout, a
//! candidate whose clock keeps running gives up before any vote can arrive. All votes come too
//! late, in every term.
//!
//! Hence a node's election clock is stopped while its vote or its term is being written to its
//! disk. In a term that has had no leader yet, the clock then remains stopped for twice the recent
//! write time of this disk, because other nodes have to write, too. Their disks may be slower than
//! this one, so that time, plus a timeout, doubles with each consecutive term without a leader.
//! After a term that had a leader, elections begin at once; but a node that has granted a pre-vote
//! first waits for that candidate, for the same time.
//!
//! While its clock is stopped, a node grants no pre-vote for a later term, because a later election
//! would overtake the current one. Called by `journal`.

use crate::options::Options;

/// The clock is stopped for at most this number of ticks once the promise is on the disk: 128
/// timeouts.
const MOST: usize = 128 * Options::ELECTION_TICKS;

/// The most doublings. With one more, a timeout alone would exceed [`MOST`].
const MOST_LOST: u32 = 7;

/// Each shorter write reduces the recorded longest time by one part in this number.
const FORGET: usize = 8;

#[derive(Debug)]
pub(super) struct Patience {
    term: u64,
    /// The term has had a leader.
    is_led: bool,
    /// The last candidate for the next term to which this node has granted a pre-vote; 0 if none.
    granted: u64,
    /// Consecutive terms without a leader before this one.
    lost: u32,
    /// Ticks during which the clock was stopped while this term's promise was on the disk.
    waited: usize,
    /// Ticks that the slowest recent write has taken.
    slowest: usize,
}

impl Patience {
    /// The state of a node that starts with this term.
    pub(super) const fn new(term: u64) -> Self {
        Self {
            term,
            is_led: true,
            granted: 0,
            lost: 0,
            waited: 0,
            slowest: 0,
        }
    }

    /// Notes the ticks from the moment a write began to wait until it was saved.
    pub(super) fn on_saved(&mut self, ticks: usize) {
        let before = self.slowest - self.slowest.div_ceil(FORGET);
        self.slowest = ticks.max(before).min(MOST);
    }

    /// Notes the candidate to which this node has granted a pre-vote.
    pub(super) const fn on_granted(&mut self, candidate: u64) {
        self.granted = candidate;
    }

    /// Takes a tick. True: the election clock is stopped.
    pub(super) fn on_tick(&mut self, is_promised: bool) -> bool {
        let stands = self.stands(is_promised);
        self.waited += usize::from(stands && is_promised);
        stands
    }

    /// Takes the term and its leader; 0 if there is none.
    pub(super) fn on_term(&mut self, term: u64, leader: u64) {
        if self.term != term {
            self.lost = (self.lost + u32::from(!self.is_led)).min(MOST_LOST);
            (self.term, self.is_led) = (term, false);
            (self.waited, self.granted) = (0, 0);
        }
        if leader != 0 && !self.is_led {
            self.is_led = true;
            (self.lost, self.waited, self.granted) = (0, 0, 0);
        }
    }

    /// Whether the clock is stopped, in favour of a candidate other than this one.
    pub(super) const fn waits_for_other(&self, candidate: u64, is_promised: bool) -> bool {
        self.stands(is_promised) && self.granted != candidate
    }

    const fn stands(&self, is_promised: bool) -> bool {
        let waits = !self.is_led || self.granted != 0;
        !is_promised || (waits && self.waited < self.most())
    }

    /// The number of ticks for which the clock is stopped once the promise is on the disk.
    const fn most(&self) -> usize {
        let once = Options::ELECTION_TICKS + 2 * self.slowest;
        let most = (once << self.lost) - Options::ELECTION_TICKS;
        if most < MOST { most } else { MOST }
    }
}

#[cfg(test)]
mod tests;
