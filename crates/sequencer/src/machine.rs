//! The sequencer as a state machine without input and output of its own: numbers, reservations, and
//! the lease during which this server may give numbers.
//!
//! ```text
//! Claimed ──▶ TakingOver ──the lease of the server before has ended──▶ Inheriting ──▶ Serving
//!                                                                                      │   │
//!        Ended ◀── a higher epoch, a disk that fails ──────────────────────────────────┘   │
//!          ▲────────────────────────────────────────────────────────────────── Stopping ◀──┘
//! ```
//!
//! Invariants: a number is given only below a limit that a synced slot has, and only while the
//! lease lasts. A lease begins at a time before this server looked for higher epochs and found
//! none. A server that takes over first puts its epoch's file on the disk, and then waits for the
//! duration of the previous server's lease, so the previous server has stopped by then. This
//! requires that no clock runs more than one eighth slower than another, or stands while another
//! goes on; they need not show the same time.
//!
//! Called by `desk.rs`. The procedures in `disk.rs` perform its jobs.

mod entry;
mod jobs;
mod options;

use dunlin_core::Nanos;

use crate::disk::Claim;
use crate::state::Damage;
use crate::wire::{
    Answer, Figures, Head, MAX_COUNT, MAX_SEQUENCES, Name, Opened, Phase, Status, Take, Words,
    halves,
};

use entry::NamedSequence;
use jobs::Under;
#[cfg(feature = "mutants")]
pub use options::Mutant;
pub use options::Options;

/// The reason why a server no longer gives numbers.
#[derive(Debug)]
pub enum Ending {
    /// It was asked to stop, and has saved its state.
    Stopped,
    /// A server of this epoch has taken over.
    Deposed(u32),
    /// The disk has failed, and it is unknown which writes it has kept.
    Failed(std::io::Error),
    /// The file of this epoch cannot be used. It is the file of a server that this one replaces.
    Damaged(u32, Damage),
    /// The file of this server's epoch is gone.
    Gone,
    /// The disk has answered several looks in succession with data that no sequencer writes, or can
    /// no longer be asked.
    Unreadable(std::io::Error),
}

/// The result of an attempt to take numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Taken {
    /// The first of the numbers.
    First(u64),
    /// The disk must reserve numbers first, or the lease must be renewed.
    Later,
    Refused(Status),
}

#[derive(Debug)]
enum Stage {
    /// The duration of its wait.
    Claimed(Nanos),
    /// The time until which it waits.
    TakingOver(Nanos),
    Inheriting,
    Serving,
    Stopping,
    Ended,
}

/// The sequences of a server.
#[derive(Debug)]
pub(crate) struct Sequencer {
    options: Options,
    stage: Stage,
    ending: Option<Ending>,
    epoch: u32,
    process: u32,
    generation: u64,
    /// The epoch whose limits are not known yet; 0 if there is none.
    before: u32,
    /// The number of slots that were synced since `before` became 0.
    clean_slots: u8,
    entries: Vec<NamedSequence>,
    /// Numbers are given before this time; zero unless the stage is `Serving`.
    lease_end: Nanos,
    /// A sequence needs a reservation.
    is_short: bool,
    /// When the next look for higher epochs begins.
    check_at: Nanos,
    /// No save begins before this time; the end of time if a look must come first.
    save_at: Nanos,
    under: Option<Under>,
    /// The number of looks since the last good job that another attempt will not mend.
    hopeless: u8,
    /// The number of saves in succession that may or may not have written their slot. It begins
    /// anew with a good save and with a look that another attempt may mend.
    unknown: u8,
    figures: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    requests: u64,
    saves: u64,
    waits: u64,
}

impl Sequencer {
    /// Makes the sequencer for a claimed epoch. The wait for the previous server begins with the
    /// first call of [`Self::next_job`].
    pub(crate) fn new(claim: Claim, options: Options) -> Self {
        let Claim { state, wait_ns } = claim;
        let is_known = state.before == 0;
        let stage = match is_known {
            true => Stage::Serving,
            false => Stage::Claimed(Nanos(wait_ns.saturating_add(wait_ns / 8))),
        };
        let mut it = Self {
            stage,
            ending: None,
            epoch: state.epoch,
            process: state.process,
            generation: state.generation,
            before: state.before,
            clean_slots: if is_known { 2 } else { 0 },
            is_short: true,
            entries: Vec::new(),
            lease_end: Nanos::ZERO,
            check_at: Nanos::ZERO,
            save_at: Nanos::ZERO,
            under: None,
            hopeless: 0,
            unknown: 0,
            figures: Counts::default(),
            options,
        };
        for (name, limit) in state.sequences {
            it.add(name, limit, is_known);
        }
        it
    }

    /// Adds a sequence; see [`NamedSequence::new`].
    fn add(&mut self, name: Name, limit: u64, is_known: bool) {
        let number = u16::try_from(self.entries.len()).expect("a server has at most 256");
        let head = Head::new(number, self.epoch);
        let block = self.options.block;
        let entry = NamedSequence::new(name, head, limit, is_known, block);
        self.entries.push(entry);
    }

    /// Takes numbers for a request that had arrived at `now`, if it is like almost all others: it
    /// names a sequence of this epoch that has ample numbers, and expects no upper bytes. `None`
    /// changes nothing; [`Self::take`] is for all requests.
    #[inline]
    pub(crate) fn take_usual(&mut self, words: Words, now: Nanos) -> Option<u64> {
        let Words { head, rest: count } = words;
        let gives = self.gives(now);
        let entry = self.entries.get_mut(head.sequence())?;
        // The upper four bytes are zeros.
        let is_count = count.wrapping_sub(1) < u64::from(MAX_COUNT);
        if entry.head() != head || !is_count || !gives {
            return None;
        }
        let first = entry.take_of_ample(count)?;
        self.figures.requests += 1;
        Some(first)
    }

    /// Like [`Self::take_usual`], for a request that expects upper bytes.
    #[inline]
    pub(crate) fn take_expecting(&mut self, words: Words, now: Nanos) -> Option<Answer> {
        let (expected, count) = halves(words.rest);
        let gives = self.gives(now);
        let entry = self.entries.get_mut(words.head.sequence())?;
        let is_count = count.wrapping_sub(1) < MAX_COUNT;
        if entry.head().speculating() != words.head || !is_count || !gives {
            return None;
        }
        let first = entry.take_of_ample(count.into())?;
        self.figures.requests += 1;
        let (upper, lower) = halves(first);
        Some(match upper == expected {
            true => Answer::Lower(lower),
            false => Answer::Whole(first),
        })
    }

    /// Takes numbers for a request that had arrived at `now`, if that was possible at that time.
    pub(crate) fn take(&mut self, take: &Take, now: Nanos) -> Taken {
        if !self.gives(now) || take.epoch != self.epoch {
            return self.refuse_or_wait(take);
        }
        let Some(entry) = self.entries.get_mut(usize::from(take.sequence)) else {
            return Taken::Refused(Status::Moved);
        };
        if take.count.wrapping_sub(1) >= MAX_COUNT {
            return Taken::Refused(Status::BadCount);
        }
        let taken = match entry.take_of_ample(take.count.into()) {
            Some(first) => Taken::First(first),
            None => {
                let taken = entry.take_of_rest(take.count);
                self.is_short |= entry.is_short();
                taken
            }
        };
        self.figures.requests += u64::from(matches!(taken, Taken::First(_)));
        taken
    }

    /// Whether numbers may be given at this time.
    #[inline]
    fn gives(&self, now: Nanos) -> bool {
        #[cfg(feature = "mutants")]
        if self.options.mutant == Some(Mutant::ServesOn) {
            return matches!(self.stage, Stage::Serving);
        }
        now < self.lease_end
    }

    #[cold]
    fn refuse_or_wait(&mut self, take: &Take) -> Taken {
        self.on_known_epoch(take.epoch);
        match (&self.stage, &self.ending) {
            (_, Some(Ending::Deposed(_))) => Taken::Refused(Status::Deposed),
            (Stage::Serving, _) if take.epoch != self.epoch => Taken::Refused(Status::Moved),
            (Stage::Serving, _) => Taken::Later,
            _ => Taken::Refused(Status::NotServing),
        }
    }

    /// Returns the number by which requests of this epoch name a sequence.
    ///
    /// # Errors
    /// The status for the client.
    pub(crate) fn open(
        &mut self,
        known_epoch: u32,
        name: &[u8],
        create: bool,
    ) -> Result<Opened, Status> {
        self.on_known_epoch(known_epoch);
        let name = Name::from_bytes(name).map_err(|_| Status::BadName)?;
        match (&self.stage, &self.ending) {
            (_, Some(Ending::Deposed(_))) => return Err(Status::Deposed),
            (Stage::Serving, _) => {}
            _ => return Err(Status::NotServing),
        }
        let found = self.entries.iter().position(|it| *it.name() == name);
        let place = match found {
            Some(place) => place,
            None if !create => return Err(Status::NoSequence),
            None if self.entries.len() == MAX_SEQUENCES => return Err(Status::TooMany),
            None => {
                self.add(name, entry::FIRST, false);
                self.is_short = true;
                self.entries.len() - 1
            }
        };
        Ok(Opened {
            sequence: u16::try_from(place).expect("a server has at most 256"),
            epoch: self.epoch,
            next: self.entries[place].next(),
        })
    }

    /// Notes an epoch that a client has seen. If it is higher than this server's, another server
    /// has taken over.
    fn on_known_epoch(&mut self, known: u32) {
        #[cfg(feature = "mutants")]
        if self.options.mutant == Some(Mutant::ServesOn) {
            return;
        }
        if known > self.epoch {
            self.end(Ending::Deposed(known));
        }
    }

    /// Notes that a request waits for the disk.
    pub(crate) const fn on_wait(&mut self) {
        self.figures.waits += 1;
    }

    /// Begins to stop: no more numbers are given, and the limits are lowered to the next numbers.
    pub(crate) fn stop(&mut self) {
        match self.stage {
            Stage::Serving => {
                self.stage = Stage::Stopping;
                self.lease_end = Nanos::ZERO;
            }
            Stage::Claimed(_) | Stage::TakingOver(_) | Stage::Inheriting => {
                self.end(Ending::Stopped);
            }
            Stage::Stopping | Stage::Ended => {}
        }
    }

    fn end(&mut self, ending: Ending) {
        self.stage = Stage::Ended;
        self.lease_end = Nanos::ZERO;
        self.ending.get_or_insert(ending);
    }

    /// Its epoch.
    pub(crate) const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The reason why the server has ended; `None` before its end.
    pub(crate) const fn ending(&self) -> Option<&Ending> {
        self.ending.as_ref()
    }

    /// Moves the reason out, at the end.
    pub(crate) const fn take_ending(&mut self) -> Option<Ending> {
        self.ending.take()
    }

    /// The server's state at a time.
    pub(crate) fn figures(&self, now: Nanos) -> Figures {
        let phase = match self.stage {
            Stage::Claimed(_) | Stage::TakingOver(_) | Stage::Inheriting => Phase::TakingOver,
            Stage::Serving if now < self.lease_end => Phase::Serving,
            Stage::Serving => Phase::Uncertain,
            Stage::Stopping | Stage::Ended => Phase::Ended,
        };
        Figures {
            phase,
            epoch: self.epoch,
            requests: self.figures.requests,
            numbers: self.entries.iter().map(NamedSequence::given).sum(),
            saves: self.figures.saves,
            waits: self.figures.waits,
            sequences: self.entries.iter().map(NamedSequence::progress).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
