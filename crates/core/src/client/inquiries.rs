//! Inquiries: questions to the peer, over the control plane, about calls that have had no answer
//! and no progress for the failure timeout (rules S11, C11).
//!
//! Packets alone cannot tell whether a peer has failed. A peer whose thread is in a handler sends
//! no packets although it is alive; and forged packets can make a session look alive while none of
//! its calls makes progress. So silence is only a reason to ask. The client decides by the peer's
//! answer, which comes over a connection that forged packets cannot touch.
//!
//! ```text
//!           a call is overdue           an account
//!   none ────────────────────▶ Waiting ───────────▶ Resting ──its time is over──▶ Waiting …
//!                                 │                    │
//!                                 │ nothing in time    │ too many were in vain
//!                                 ▼                    ▼
//!                                      the peer has failed
//! ```
//! An account is *in vain* for a call if the peer is there, yet the call makes no progress: the
//! peer does not know the request, or it has answered and the answer does not arrive. One such
//! account proves little: the peer may just have left a long handler, and its full queue may have
//! dropped all retransmissions meanwhile. Several in a row, a fraction of the timeout apart, prove
//! that the peer was there all that time. In a session without any packets, [`SILENT`] accounts in
//! vain therefore mean that the packets' path is cut. If packets do arrive, they may be late rather
//! than forged, so it takes [`PATIENT`] accounts.
//!
//! Invariant: a session has at most one question outstanding. Called by `protocol/inquiries.rs`.

use dunlin_wire::ReqNum;
use dunlin_wire::control::Fate;

use crate::handle::{Session, SessionIdx};
use crate::ordered::Map;
use crate::session::lifecycle::Account;
use crate::time::Nanos;

/// After this many accounts in vain, the peer of a silent session has failed: they span half a
/// timeout.
const SILENT: u8 = 5;
/// The same for a session in which packets arrive: the accounts span three and a half timeouts.
const PATIENT: u8 = 29;
/// Questions in each timeout while accounts are in vain. The peer's nexus answers even while its
/// endpoint is in a handler, so the client notices every absence of half a timeout.
const QUESTIONS: u64 = 8;

/// The questions of all sessions.
#[derive(Debug, Default)]
pub(crate) struct Inquiries {
    of: Map<SessionIdx, Inquiry>,
}

#[derive(Debug)]
struct Inquiry {
    session: Session,
    state: State,
    /// The calls that the last question was about, and their accounts in vain.
    calls: Vec<(ReqNum, u8)>,
}

/// The times are on the clock that measures silence.
#[derive(Clone, Copy, Debug)]
enum State {
    /// The question was asked at this time.
    Waiting(Nanos),
    /// The next question may be asked from this time on.
    Resting(Nanos),
}

/// The next step for an overdue call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// Time must pass.
    Wait,
    /// Ask the peer.
    Ask,
    /// Neither an account nor a packet has come for the failure timeout.
    Fail,
}

impl Inquiries {
    /// Decides about an overdue call of the session. `is_overdue` tests whether a call is overdue;
    /// `silent`: no packet of the session has come for the failure timeout.
    pub(crate) fn on_overdue(
        &self,
        session: Session,
        (is_overdue, silent): (impl Fn(ReqNum) -> bool, bool),
        present: Nanos,
        timeout: Nanos,
    ) -> Next {
        let Some(inquiry) = self.get(session) else {
            return Next::Ask;
        };
        match inquiry.state {
            State::Resting(until) if present < until => Next::Wait,
            State::Waiting(asked) if present.since(asked) < timeout => Next::Wait,
            // Once all calls of a question have ended, the question is over too.
            State::Waiting(_) if silent && inquiry.is_about_any(is_overdue) => Next::Fail,
            _ => Next::Ask,
        }
    }

    /// Notes that the question about these calls is asked now.
    pub(crate) fn on_asked(&mut self, session: Session, overdue: &[ReqNum], present: Nanos) {
        let vain = |req: &ReqNum| {
            let before = self.get(session);
            let mut calls = before.into_iter().flat_map(|inquiry| &inquiry.calls);
            let found = calls.find(|(other, _)| other == req);
            (*req, found.map_or(0, |(_, vain)| *vain))
        };
        let calls = overdue.iter().map(vain).collect();
        let state = State::Waiting(present);
        let inquiry = Inquiry {
            session,
            state,
            calls,
        };
        self.of.insert(session.index(), inquiry);
    }

    /// Weighs an account from the peer. `silent`: no packet of the session has come for the failure
    /// timeout. True if the peer has failed.
    pub(crate) fn on_account(
        &mut self,
        session: Session,
        account: &Account,
        (is_overdue, silent): (impl Fn(ReqNum) -> bool, bool),
        timeout: Nanos,
    ) -> bool {
        let inquiry = self.of.get_mut(&session.index());
        let waiting = inquiry.and_then(|inquiry| Some((inquiry.waits_since(session)?, inquiry)));
        let Some((asked, inquiry)) = waiting else {
            return false;
        };
        inquiry.calls.retain(|(req, _)| is_overdue(*req));
        match account {
            Account::Fates(fates) => inquiry.weigh(fates, silent),
            // The client's packets may have been lost in a queue that the peer did not read.
            Account::Away(_) if silent => inquiry.forgive(),
            Account::Away(_) => {}
            // Silence is the only evidence.
            Account::Nothing if silent && !inquiry.calls.is_empty() => return true,
            Account::Nothing => {}
        }
        let soon = inquiry.is_in_vain() || matches!(account, Account::Nothing);
        let rest = Nanos(timeout.0 / if soon { QUESTIONS } else { 1 });
        inquiry.state = State::Resting(asked + rest);
        let most = if silent { SILENT } else { PATIENT };
        inquiry.calls.iter().any(|(_, vain)| *vain >= most)
    }

    /// Forgets a session that has ended.
    pub(crate) fn on_ended(&mut self, index: SessionIdx) {
        self.of.remove(&index);
    }

    fn get(&self, session: Session) -> Option<&Inquiry> {
        let inquiry = self.of.get(&session.index());
        inquiry.filter(|inquiry| inquiry.session == session)
    }
}

impl Inquiry {
    fn is_about_any(&self, is_overdue: impl Fn(ReqNum) -> bool) -> bool {
        self.calls.iter().any(|(req, _)| is_overdue(*req))
    }

    /// When the unanswered question was asked.
    fn waits_since(&self, session: Session) -> Option<Nanos> {
        match self.state {
            State::Waiting(asked) if self.session == session => Some(asked),
            _ => None,
        }
    }

    fn is_in_vain(&self) -> bool {
        self.calls.iter().any(|(_, vain)| *vain > 0)
    }

    /// Forgets the accounts in vain so far: they no longer count against any call.
    fn forgive(&mut self) {
        self.calls.iter_mut().for_each(|(_, vain)| *vain = 0);
    }

    /// Counts the account for or against each call.
    fn weigh(&mut self, fates: &[(ReqNum, Fate)], silent: bool) {
        for (req, vain) in &mut self.calls {
            let fate = fates.iter().find(|(other, _)| other == req);
            let runs = fate.is_some_and(|(_, fate)| *fate == Fate::Running);
            // The handler runs. If in addition the session is not silent, probes and their
            // acknowledgements arrive.
            *vain = match runs && !silent {
                true => 0,
                false => *vain + 1,
            };
        }
    }
}

#[cfg(test)]
mod tests;
