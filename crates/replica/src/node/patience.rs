//! How long a node with a disk waits for the outcome of an election.
//!
//! A vote must be on its voter's disk before it is sent, and a candidate's own vote on its disk
//! before it asks for others. So an election takes two writes, one after the other, and each of
//! them waits for the write that is under way before it. Where these take longer than an election
//! time-out, a candidate whose clock runs meanwhile gives up before any vote can come, and all
//! votes come too late, for ever.
//!
//! Hence the election clock of a node stands while its vote, or its term, is on the way to its
//! disk. In a term that has had no leader yet, it then stands for twice the time that writes have
//! taken here lately, because others have to write, too. The disks of others may be slower than
//! this one, so that time, with a time-out added, doubles with each further term without a leader.
//! A term that had a leader begins its elections at once; but a node that has granted a pre-vote
//! first waits as long for the candidate.
//!
//! While its clock stands, a node grants no pre-vote for a later term: the election under way would
//! be overtaken by one that began after it. Called by `journal`.

use crate::options::Options;

/// Most ticks for which a clock stands when the promise is on the disk: 128 time-outs.
const MOST: usize = 128 * Options::ELECTION_TICKS;

/// Most doublings. With one more, a time-out alone would be longer than [`MOST`].
const MOST_LOST: u32 = 7;

/// The share of the longest time that a later, shorter one takes away.
const FORGET: usize = 8;

#[derive(Debug)]
pub(super) struct Patience {
    term: u64,
    /// The term has had a leader.
    is_led: bool,
    /// The last node that this one has let become a candidate in the next term; 0: none.
    granted: u64,
    /// Terms without a leader in a row, before this one.
    lost: u32,
    /// Ticks for which the clock has stood, while the promise of this term was on the disk.
    waited: usize,
    /// Ticks that a write has taken lately.
    slowest: usize,
}

impl Patience {
    /// That of a node that starts with this term.
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

    /// Notes the ticks from the begin of a write's wait to its end.
    pub(super) fn on_saved(&mut self, ticks: usize) {
        let before = self.slowest - self.slowest.div_ceil(FORGET);
        self.slowest = ticks.max(before).min(MOST);
    }

    /// Notes the candidate to which this node has granted a pre-vote.
    pub(super) const fn on_granted(&mut self, candidate: u64) {
        self.granted = candidate;
    }

    /// Takes a tick. True: the election clock stands.
    pub(super) fn on_tick(&mut self, is_promised: bool) -> bool {
        let stands = self.stands(is_promised);
        self.waited += usize::from(stands && is_promised);
        stands
    }

    /// Takes the term, and its leader or 0.
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

    /// Whether the clock stands, for another candidate than this one.
    pub(super) const fn waits_for_other(&self, candidate: u64, is_promised: bool) -> bool {
        self.stands(is_promised) && self.granted != candidate
    }

    const fn stands(&self, is_promised: bool) -> bool {
        let waits = !self.is_led || self.granted != 0;
        !is_promised || (waits && self.waited < self.most())
    }

    /// Ticks for which the clock stands when the promise is on the disk.
    const fn most(&self) -> usize {
        let once = Options::ELECTION_TICKS + 2 * self.slowest;
        let most = (once << self.lost) - Options::ELECTION_TICKS;
        if most < MOST { most } else { MOST }
    }
}

#[cfg(test)]
mod tests;
