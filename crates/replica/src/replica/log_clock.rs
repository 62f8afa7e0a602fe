//! The log's time, as a leader sets it: it goes on from the time that the log had when the leader
//! was elected, as fast as the leader's own clock. No clock of a wall is read, so one that jumps
//! moves nothing, and time without a leader does not count: no item goes early. Called by `seat`.

use dunlin_core::Nanos;

/// Milliseconds until a time that removes items is proposed again, if it was not applied.
const AGAIN: u64 = 20;

#[derive(Debug, Default)]
pub(super) struct LogClock {
    term: u64,
    /// The log's time at the beginning of the term, and when that was.
    base: u64,
    began: Nanos,
    /// No time is proposed to remove items before this one.
    next: u64,
}

impl LogClock {
    /// The log's time now, in milliseconds, for the leader of a term. The log had the time
    /// `applied` when it last said so.
    pub(super) fn read(&mut self, term: u64, applied: u64, now: Nanos) -> u64 {
        if self.term != term {
            *self = Self {
                term,
                base: applied,
                began: now,
                next: 0,
            };
        }
        self.base + now.since(self.began).0 / 1_000_000
    }

    /// Whether it is time to remove an item that goes at `due`.
    pub(super) fn removes(&mut self, time: u64, due: u64) -> bool {
        let removes = due <= time && self.next <= time;
        if removes {
            self.next = time + AGAIN;
        }
        removes
    }
}

#[cfg(test)]
mod tests;
