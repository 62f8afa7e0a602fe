//! The log's time, as a leader sets it: it goes on from the time that the log had when the leader
//! was elected, as fast as the leader's own clock. No clock of a wall is read, so one that jumps
//! moves nothing, and time without a leader does not count: no item goes early. Called by `seat`.

use dunlin_core::Nanos;

use crate::options::Options;

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
    /// A planted bug: the log's time is that of the leader's clock.
    #[cfg(feature = "mutants")]
    is_leaders: bool,
}

impl LogClock {
    /// The clock of a new seat, with its bug, if the options name one.
    pub(super) fn of(options: &Options) -> Self {
        let _ = options;
        Self {
            #[cfg(feature = "mutants")]
            is_leaders: options.shows(crate::options::Mutant::LeadersTime),
            ..Self::default()
        }
    }

    /// The log's time now, in milliseconds, for the leader of a term. The log had the time
    /// `applied` when it last said so.
    pub(super) fn read(&mut self, term: u64, applied: u64, now: Nanos) -> u64 {
        #[cfg(feature = "mutants")]
        if self.is_leaders {
            return now.0 / 1_000_000;
        }
        if self.term != term {
            (self.term, self.base) = (term, applied);
            (self.began, self.next) = (now, 0);
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
