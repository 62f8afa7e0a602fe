//! Failed grants and attempts: asks again under another token, gives a grant back, and reports to
//! the program why there is no session (rules C4 and C5). Called by `handshake.rs`.

use dunlin_core::{CloseReason, Nanos, Session};
use dunlin_wire::control::RefuseCode;

use super::failures::Overdue;
use super::stages::{Connecting, Stage};
use super::steps::Step;
use super::{Handshake, MAX_RETRIES};
#[cfg(feature = "mutants")]
use crate::mutant::Mutant;
use crate::types::{Command, ConnectFailure, FailedConnect, SessionKey};

impl<F, P> Handshake<F, P> {
    /// Returns why a session could not be connected. `None` if it did not fail, or if its failure
    /// is no longer stored.
    pub fn failure(&self, session: Session) -> Option<ConnectFailure> {
        self.failures.of(session)
    }

    /// Takes the next session that could not be connected. Each is returned once; if more than 64
    /// wait to be taken, the oldest are lost.
    pub fn take_failed(&mut self) -> Option<FailedConnect> {
        self.failures.take()
    }

    /// The number of sessions whose deadline passed before they were open, by stage.
    pub const fn overdue(&self) -> Overdue {
        self.failures.overdue()
    }

    /// Takes the session's new token from core; `None`: the session has ended, which core will
    /// report.
    pub fn on_renamed(&mut self, old: SessionKey, new: Option<SessionKey>) {
        let entry = self.connecting.get_mut(&old.session);
        let renaming = entry.filter(|entry| entry.key == old);
        let (Some(entry), Some(new)) = (renaming, new) else {
            return;
        };
        (entry.key, entry.stage) = (new, Stage::Asked);
        let wish = entry.wish.clone();
        // The plane closes a route that no attempt needs. The new attempt therefore begins before
        // the old one ends.
        self.ask(new, &wish);
        self.command(Command::Abandon { key: old });
    }

    pub(super) fn on_failed(&mut self, key: SessionKey, failure: ConnectFailure) {
        if self.named(key).is_none() {
            return;
        }
        let Some(entry) = self.take(key) else {
            return;
        };
        let failure = match failure {
            // This attempt did not reach a nexus, but an earlier one did.
            ConnectFailure::Unreachable if entry.met => ConnectFailure::TimedOut(None),
            other => other,
        };
        if failure.close_reason() == CloseReason::ConnectTimeout {
            self.failures.on_deadline(&entry.stage);
        }
        self.fail(&entry, failure);
        #[cfg(feature = "mutants")]
        if self.shows(Mutant::TurnKept)
            && let Stage::Offered { pending, .. } = entry.stage
        {
            self.steps.push_back(Step::Abandon { pending });
            return;
        }
        self.give_up(key.session, entry.stage);
    }

    /// Handles a grant that cannot be completed: the offered channel is gone with its last session,
    /// or this side cannot use it. The transport's next offer will be for another channel.
    pub(super) fn on_unusable(&mut self, mut entry: Connecting<P>, code: RefuseCode, now: Nanos) {
        let key = entry.key;
        #[cfg(feature = "mutants")]
        if self.shows(Mutant::GoneGrantRefused) {
            entry.retries = MAX_RETRIES;
        }
        if entry.retries == MAX_RETRIES {
            return self.give_back(&entry, ConnectFailure::Refused(code));
        }
        if now >= entry.wish.deadline {
            self.failures.on_late_grant(code);
            #[cfg(feature = "mutants")]
            if self.shows(Mutant::LateGrantKept) {
                return self.fail(&entry, ConnectFailure::TimedOut(Some(code)));
            }
            return self.give_back(&entry, ConnectFailure::TimedOut(Some(code)));
        }
        #[cfg(feature = "mutants")]
        if self.shows(Mutant::StaleEndBelieved) {
            self.command(Command::Abandon { key });
            return self.on_connect(entry.session, key, entry.wish);
        }
        self.steps.push_back(Step::Rename { key });
        entry.retries += 1;
        entry.stage = Stage::Renaming;
        self.connecting.insert(key.session, entry);
    }

    /// Gives back a grant that this side cannot use.
    pub(super) fn give_back(&mut self, entry: &Connecting<P>, failure: ConnectFailure) {
        let (key, reason) = (entry.key, CloseReason::Disconnected);
        self.command(Command::Disconnect { key, reason });
        self.fail(entry, failure);
    }

    fn fail(&mut self, entry: &Connecting<P>, failure: ConnectFailure) {
        self.failures.add(FailedConnect {
            session: entry.session,
            address: entry.wish.to.first().copied(),
            failure,
        });
        let (key, reason) = (entry.key, failure.close_reason());
        self.steps.push_back(Step::Close { key, reason });
    }
}
