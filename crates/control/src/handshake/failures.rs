//! The latest sessions that could not be connected, with the reasons, which the program may take;
//! and the number of sessions that ended at their deadline, for each stage. Owned by
//! `failed_grants.rs`.

use std::collections::VecDeque;

use dunlin_core::Session;
use dunlin_wire::control::RefuseCode;

use super::stages::Stage;
use crate::types::{ConnectFailure, FailedConnect};

/// The number of failures that are stored for the program.
pub(super) const MAX_FAILURES: usize = 64;

/// The latest sessions that could not be connected.
#[derive(Debug, Default)]
pub(super) struct Failures {
    kept: VecDeque<FailedConnect>,
    /// How many of the latest failures the program has not taken yet.
    untaken: usize,
    overdue: Overdue,
}

/// The number of sessions whose deadline passed before they were open, by their stage at that time.
/// The other stages are not listed: a session enters and leaves each of them within one call, so no
/// deadline passes there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Overdue {
    /// No other endpoint was found.
    pub asked: u64,
    /// The session's offer waited for its turn.
    pub waiting: u64,
    /// The other side had the offer.
    pub offered: u64,
    /// The other side had granted the session, but this side could not complete it.
    pub completing: u64,
    /// The other side had granted the session, but not proven its address.
    pub proving: u64,
}

impl Overdue {
    /// The counts with their names.
    pub const fn named(&self) -> [(&'static str, u64); 5] {
        [
            ("asked", self.asked),
            ("waiting", self.waiting),
            ("offered", self.offered),
            ("completing", self.completing),
            ("proving", self.proving),
        ]
    }

    /// Adds the counts of another endpoint.
    pub const fn add(&mut self, other: Self) {
        self.asked += other.asked;
        self.waiting += other.waiting;
        self.offered += other.offered;
        self.completing += other.completing;
        self.proving += other.proving;
    }
}

impl Failures {
    /// Counts a session whose deadline passed in this stage.
    pub(super) const fn on_deadline<P>(&mut self, stage: &Stage<P>) {
        let count = match stage {
            Stage::Asked | Stage::Renaming => &mut self.overdue.asked,
            Stage::Waiting { .. } => &mut self.overdue.waiting,
            Stage::Offering { .. } | Stage::Offered { .. } => &mut self.overdue.offered,
            Stage::Completing { .. } => &mut self.overdue.completing,
            Stage::Proving { .. } => &mut self.overdue.proving,
        };
        *count += 1;
    }

    /// Counts a session that was granted, but could not be opened by its deadline.
    pub(super) const fn on_late_grant(&mut self, code: RefuseCode) {
        match code {
            RefuseCode::UnprovenAddress => self.overdue.proving += 1,
            _ => self.overdue.completing += 1,
        }
    }

    pub(super) const fn overdue(&self) -> Overdue {
        self.overdue
    }

    pub(super) fn add(&mut self, failed: FailedConnect) {
        if self.kept.len() == MAX_FAILURES {
            self.kept.pop_front();
        }
        self.kept.push_back(failed);
        self.untaken = self.kept.len().min(self.untaken + 1);
    }

    pub(super) fn of(&self, session: Session) -> Option<ConnectFailure> {
        let mut latest = self.kept.iter().rev();
        let found = latest.find(|failed| failed.session == session);
        found.map(|failed| failed.failure)
    }

    pub(super) fn take(&mut self) -> Option<FailedConnect> {
        let at = self.kept.len() - self.untaken;
        let failed = self.kept.get(at).copied();
        self.untaken -= usize::from(failed.is_some());
        failed
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }
}
