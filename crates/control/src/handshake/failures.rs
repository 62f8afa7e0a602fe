//! The latest sessions that could not be connected, with their reasons, for the program. Kept by
//! `failed_grants.rs`.

use std::collections::VecDeque;

use dunlin_core::Session;

use crate::types::{ConnectFailure, FailedConnect};

/// The number of failures that are kept for the program.
pub(super) const MAX_FAILURES: usize = 64;

/// The latest sessions that could not be connected.
#[derive(Debug, Default)]
pub(super) struct Failures {
    kept: VecDeque<FailedConnect>,
    /// The number of failures, the latest ones, that the program has not taken yet.
    untaken: usize,
}

impl Failures {
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
