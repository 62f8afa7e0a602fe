//! The log's time, as a leader sets it. It starts from the time that the log had when the leader
//! was elected, and advances as fast as the leader's own clock. No wall clock is read, so a jump of
//! one has no effect. Time without a leader does not count, so no item expires early. Called by
//! `seat`.

use dunlin_core::Nanos;

use crate::options::Options;

/// Milliseconds after which a time that removes items is proposed again, if it was not applied.
const AGAIN: u64 = 20;

#[derive(Debug, Default)]
pub(super) struct LogClock {
    term: u64,
    /// The log's time at the beginning of the term, and the leader's time at that moment.
    base: u64,
    began: Nanos,
    /// Before this time, no time is proposed to remove items.
    next: u64,
    /// A planted bug: the log's time is the leader's clock.
    #[cfg(feature = "mutants")]
    is_leaders: bool,
}

impl LogClock {
    /// The clock of a new seat, with its planted bug, if any.
    pub(super) fn of(options: &Options) -> Self {
        let _ = options;
        Self {
            #[cfg(feature = "mutants")]
            is_leaders: options.shows(crate::options::Mutant::LeadersTime),
            ..Self::default()
        }
    }

    /// The log's present time in milliseconds, for the leader of a term. `applied` is the time in
    /// the last entry that set it.
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

    /// Whether the leader should now remove an item that expires at `due`.
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
