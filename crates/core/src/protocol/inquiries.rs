//! Questions about unanswered calls, and the peers' answers, each brought to the parts that they
//! concern (rules S11, C11).
//!
//! Called by `protocol/client.rs` when a call is overdue, and by `Lifecycle` on behalf of the
//! control plane.

use dunlin_wire::ReqNum;

use crate::client::calls::Calls;
use crate::client::inquiries::{Inquiries, Next};
use crate::context::Context;
use crate::handle::{CallIdx, Session};
use crate::session::lifecycle::{Account, Question, Report};
use crate::session::table::Sessions;
use crate::time::Nanos;
use crate::transfer::transfers::Transfers;

/// How often per failure timeout the endpoint looks at the progress of a large message.
const LOOKS: u64 = 8;

/// The parts that a question concerns, borrowed for an event.
pub(crate) struct Inquirer<'a> {
    pub(super) inquiries: &'a mut Inquiries,
    pub(super) sessions: &'a Sessions,
    pub(super) calls: &'a Calls,
    pub(super) transfers: &'a mut Transfers,
    pub(super) context: &'a mut Context,
}

/// The result of a look at a large message.
pub(crate) enum Progress {
    /// Look again at this time.
    LookAt(Nanos),
    /// The peer has failed.
    Failed(Session),
}

impl Inquirer<'_> {
    /// Asks the peer about an overdue call of the session, if it is time for a question. True if
    /// the peer has failed.
    #[inline(never)]
    pub(crate) fn on_overdue(&mut self, session: Session) -> bool {
        let present = self.context.moment.present_now();
        let timeout = self.context.config.failure_timeout;
        let line = self.sessions.at(session.index());
        let is_overdue = |req| {
            let idx = self.calls.in_slot(line.slot_at(req), req);
            idx.is_some_and(|idx| is_overdue(idx, self.calls, self.transfers, self.context))
        };
        let of = (is_overdue, line.is_silent(present, timeout));
        let next = self.inquiries.on_overdue(session, of, present, timeout);
        if matches!(next, Next::Ask) {
            self.ask(session);
        }
        matches!(next, Next::Fail)
    }

    fn ask(&mut self, session: Session) {
        let line = self.sessions.at(session.index());
        let (calls, transfers, context) = (self.calls, &*self.transfers, &*self.context);
        let overdue = calls.in_slots(line.slots());
        let overdue = overdue.filter(|idx| is_overdue(*idx, calls, transfers, context));
        let requests: Vec<ReqNum> = overdue.map(|idx| calls.req_of(idx)).collect();
        let token = line.token();
        let present = self.context.moment.present_now();
        self.inquiries.on_asked(session, &requests, present);
        self.context.stats.on_inquiry();
        let question = Question {
            session,
            token,
            requests,
        };
        self.context.notices.on_report(Report::Question(question));
    }

    /// Takes the peer's answer to the question. True if it shows that the peer has failed.
    pub(crate) fn on_account(&mut self, session: Session, account: &Account) -> bool {
        let Some(line) = self.sessions.find_line(session) else {
            return false;
        };
        let present = self.context.moment.present_now();
        let timeout = self.context.config.failure_timeout;
        #[cfg(feature = "mutants")]
        let account = &mutate_account(account, self.context);
        let silent = line.is_silent(present, timeout);
        let is_overdue = |req| {
            let idx = self.calls.in_slot(line.slot_at(req), req);
            idx.is_some_and(|idx| is_overdue(idx, self.calls, self.transfers, self.context))
        };
        let of = (is_overdue, silent);
        self.inquiries.on_account(session, account, of, timeout)
    }

    /// Checks whether packets of the call's large message have arrived since the last look.
    pub(crate) fn look_at_progress(&mut self, idx: CallIdx) -> Progress {
        let Some(transfer) = self.calls.transfer_of(idx) else {
            return Progress::LookAt(Nanos::MAX);
        };
        let present = self.context.moment.present_now();
        let timeout = self.context.config.failure_timeout;
        self.transfers.look_at_progress(transfer, present);
        if self.transfers.is_stalled(transfer, present, timeout) {
            let session = self.sessions.handle(self.calls.session_of(idx));
            if self.on_overdue(session) {
                return Progress::Failed(session);
            }
        }
        Progress::LookAt(self.context.moment.now() + Nanos(timeout.0 / LOOKS))
    }
}

/// A planted bug: misreads the account.
#[cfg(feature = "mutants")]
fn mutate_account(account: &Account, context: &Context) -> Account {
    use crate::mutant::Mutant;
    match (context.config.mutant, account) {
        (Some(Mutant::AbsenceIsFailure), Account::Away(_)) => Account::Fates(Vec::new()),
        _ => account.clone(),
    }
}

/// Whether the call, which is in a slot, has made no progress for the failure timeout.
fn is_overdue(idx: CallIdx, calls: &Calls, transfers: &Transfers, context: &Context) -> bool {
    let (present, timeout) = (context.moment.present_now(), context.config.failure_timeout);
    match calls.transfer_of(idx) {
        Some(transfer) => transfers.is_stalled(transfer, present, timeout),
        None => calls.is_overdue(idx, context),
    }
}
