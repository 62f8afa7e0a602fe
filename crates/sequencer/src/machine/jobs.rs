//! The machine's work for the disk: which job is next, and what follows from its outcome. One job
//! is in progress at a time.

use std::io;

use dunlin_core::Nanos;

use super::entry::NamedSequence;
use super::{Ending, Sequencer, Stage};
use crate::disk::{Done, Job, JobError, Kind, Outcome};
use crate::state::{SLOT, State};

/// Number of looks for higher epochs during a lease. If one is slow, the next is still in time.
const LOOKS: u64 = 3;

/// A server ends after this number of looks in succession that another attempt will not mend: about
/// three leases, in which another member of a cluster may give an answer. The look that follows a
/// save does not count.
const MOST_HOPELESS: u8 = 10;

/// A server ends after this number of saves in succession that may or may not have written their
/// slot, with good looks between them. A cluster without a leader does not answer looks either, so
/// this one has members that do not understand each other, or disks that hang.
const MOST_UNKNOWN: u8 = 100;

/// The job in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Under {
    /// A time before it began.
    begin: Nanos,
    /// Whether it saves the last state before the server ends.
    is_last: bool,
}

impl Sequencer {
    /// The next job, if one is due and none is in progress.
    pub(crate) fn next_job(&mut self, now: Nanos) -> Option<Job> {
        if self.under.is_some() {
            return None;
        }
        if let Stage::Claimed(span) = self.stage {
            self.stage = Stage::TakingOver(now + span);
        }
        let kind = match self.stage {
            Stage::TakingOver(until) if now >= until => {
                self.stage = Stage::Inheriting;
                Kind::Inherit(self.before)
            }
            Stage::Inheriting if now >= self.check_at => Kind::Inherit(self.before),
            Stage::Serving if self.is_short && now >= self.save_at => self.save(),
            Stage::Serving if now >= self.check_at => Kind::Check,
            Stage::Stopping => self.save(),
            _ => return None,
        };
        self.under = Some(Under {
            begin: now,
            is_last: matches!(self.stage, Stage::Stopping),
        });
        self.check_at = now + Nanos(self.options.lease.0 / LOOKS);
        if matches!(kind, Kind::Check) {
            // A save that waits for this look follows before the next one.
            self.save_at = self.save_at.min(self.check_at);
        }
        Some(Job { kind })
    }

    /// The time at which [`Self::next_job`] may return a job.
    #[inline]
    pub(crate) fn next_job_at(&self) -> Nanos {
        match self.stage {
            _ if self.under.is_some() => Nanos::MAX,
            Stage::TakingOver(until) => until,
            Stage::Serving if self.is_short => self.save_at.min(self.check_at),
            Stage::Serving | Stage::Inheriting => self.check_at,
            Stage::Claimed(_) | Stage::Stopping => Nanos::ZERO,
            Stage::Ended => Nanos::MAX,
        }
    }

    fn save(&mut self) -> Kind {
        let is_stopping = matches!(self.stage, Stage::Stopping);
        let limit = |entry: &mut NamedSequence| match is_stopping {
            true => entry.next(),
            false => entry.begin_save(),
        };
        let entries = self.entries.iter_mut();
        let sequences = entries.map(|entry| (entry.name().clone(), limit(entry)));
        let sequences = sequences.collect();
        self.is_short = false;
        self.generation += 1;
        let state = State {
            epoch: self.epoch,
            generation: self.generation,
            process: self.process,
            lease_ns: self.options.lease.0,
            raise: self.options.terms(self.process).raise,
            before: self.before,
            sequences,
        };
        #[cfg(feature = "mutants")]
        if self.options.mutant == Some(super::Mutant::Unsynced) {
            self.entries.iter_mut().for_each(NamedSequence::on_saved);
        }
        Kind::Save {
            // The slot that was not written last.
            offset: (self.generation % 2) * SLOT as u64,
            slot: state.encode(),
            clears: (self.clean_slots >= 2).then_some(self.epoch),
        }
    }

    /// Takes the outcome of the job in progress. After that, waiting requests may get numbers.
    pub(crate) fn on_outcome(&mut self, outcome: Outcome) {
        let Some(under) = self.under.take() else {
            return;
        };
        if outcome.result.is_ok() {
            self.hopeless = 0;
        }
        match outcome.result {
            Ok(Done::Checked(newest)) => self.on_newest(newest, under.begin),
            Ok(Done::Inherited(state)) => self.on_inherited(&state),
            Ok(Done::Saved(newest)) => {
                self.figures.saves += 1;
                self.on_saved(under);
                self.on_newest(newest, under.begin);
            }
            Err(JobError::Read(error)) => self.on_unread(error),
            Err(JobError::Unseen(_)) => {
                // Saves may follow each other within a moment, so a failed look of a save does not
                // count as hopeless. A failed look that is a job of its own does.
                self.figures.saves += 1;
                self.on_saved(under);
            }
            Err(JobError::Unchanged(error)) => self.on_unchanged(under, error),
            Err(JobError::Write(error)) => self.end(Ending::Failed(error)),
            Err(JobError::Damaged(epoch, damage)) => self.end(Ending::Damaged(epoch, damage)),
        }
    }

    fn on_saved(&mut self, under: Under) {
        self.unknown = 0;
        if under.is_last {
            return self.end(Ending::Stopped);
        }
        self.entries.iter_mut().for_each(NamedSequence::on_saved);
        self.is_short |= self.entries.iter().any(NamedSequence::is_short);
        if self.before == 0 {
            self.clean_slots = self.clean_slots.saturating_add(1);
        }
    }

    /// Notes that a save does not count. The next attempt writes the same slot, after a look for
    /// higher epochs: as long as that succeeds, the lease goes on. A server that is stopping does
    /// not try again, because its limits only leave a gap.
    fn on_unchanged(&mut self, under: Under, error: io::Error) {
        self.unknown = match error.kind() {
            io::ErrorKind::TimedOut => self.unknown + 1,
            _ => 0,
        };
        if under.is_last || self.unknown >= MOST_UNKNOWN {
            return self.end(Ending::Failed(error));
        }
        self.generation -= 1;
        self.entries
            .iter_mut()
            .for_each(NamedSequence::on_unchanged);
        self.is_short = true;
        self.check_at = Nanos::ZERO;
        self.save_at = Nanos::MAX;
    }

    /// Notes that the disk could not be read. The next look comes soon, and the lease continues
    /// until then.
    fn on_unread(&mut self, error: io::Error) {
        let is_hopeless = matches!(
            error.kind(),
            io::ErrorKind::InvalidData | io::ErrorKind::BrokenPipe
        );
        if !is_hopeless {
            self.unknown = 0;
            return;
        }
        self.hopeless += 1;
        if self.hopeless >= MOST_HOPELESS {
            self.end(Ending::Unreadable(error));
        }
    }

    fn on_newest(&mut self, newest: u32, begin: Nanos) {
        if newest == self.epoch {
            if matches!(self.stage, Stage::Serving) {
                self.lease_end = begin + self.options.lease;
            }
            return;
        }
        #[cfg(feature = "mutants")]
        if self.options.mutant == Some(super::Mutant::ServesOn) {
            return;
        }
        self.end(match newest > self.epoch {
            true => Ending::Deposed(newest),
            false => Ending::Gone,
        });
    }

    /// Takes over the limits of the previous servers, none of which gives numbers any more.
    fn on_inherited(&mut self, state: &State) {
        if !matches!(self.stage, Stage::Inheriting) {
            return;
        }
        for (name, limit) in &state.sequences {
            match self.entries.iter_mut().find(|it| it.name() == name) {
                Some(entry) => entry.inherit(*limit),
                None => self.add(name.clone(), *limit, false),
            }
        }
        self.before = 0;
        self.is_short = true;
        self.stage = Stage::Serving;
    }
}
