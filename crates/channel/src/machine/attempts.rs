//! Attempts: where the next one goes, how they end, and the consequences of failures.

use dunlin_core::Nanos;
#[cfg(feature = "mutants")]
use dunlin_core::RpcError;
#[cfg(feature = "mutants")]
use dunlin_wire::ErrorCode;
use dunlin_wire::Ran;

use super::Machine;
use crate::addresses::Around;
use crate::call::{Attempt, Stage};
use crate::fault::Fault;
use crate::handle::{AddressId, AttemptId, CallId, LinkId};
#[cfg(feature = "mutants")]
use crate::mutant::Mutant;
use crate::repeat::{Repeat, repeat};
use crate::types::{Action, CallEnd, Outcome, Why};

impl Machine {
    /// Ends an attempt, even if its call has ended before. A fault that shows that the link is gone
    /// also ends the link.
    pub fn on_end(&mut self, id: AttemptId, outcome: Outcome, now: Nanos) {
        #[cfg(feature = "mutants")]
        let id = match self.config.shows(Mutant::StaleEndBelieved) {
            true => self.calls.in_place_of(id),
            false => id,
        };
        let Some(attempt) = self.calls.on_attempt_end(id) else {
            self.counters.stale += 1;
            return;
        };
        match &outcome {
            Outcome::Answered => {
                let span = now.since(attempt.since);
                let (address, outstanding) = (attempt.address, attempt.outstanding);
                self.addresses.on_answer(address, span, outstanding);
            }
            Outcome::Failed(fault) => self.on_fault(&attempt, fault, now),
        }
        self.release(&attempt, now);
        let Some(call) = attempt.call else { return };
        match outcome {
            Outcome::Answered => self.on_answer(call, id, now),
            Outcome::Failed(fault) => self.on_failure(call, fault, now),
        }
    }

    /// Notes that the driver has given an attempt to the endpoint, which may transmit it at any
    /// moment. An attempt that still waits in the driver has provably not run.
    pub fn on_issued(&mut self, id: AttemptId) {
        self.calls.on_issued(id);
    }

    /// Moves an attempt that waits in the driver to another link of the same server that has room,
    /// and returns that link. `None`: there is no such link.
    pub fn move_waiting(&mut self, id: AttemptId) -> Option<LinkId> {
        let attempt = *self.calls.attempt(id)?;
        let call = self.calls.get(attempt.call?)?;
        let endpoint = call.terms().endpoint;
        let to = self.addresses.with_room(attempt.address, endpoint)?;
        if attempt.is_issued || to == attempt.link {
            return None;
        }
        self.addresses.on_move(attempt.link, to);
        self.calls.on_move(id, to);
        Some(to)
    }

    /// Notes a lost link or a draining server, if the fault shows that.
    fn on_fault(&mut self, attempt: &Attempt, fault: &Fault, now: Nanos) {
        if let Some(reason) = fault.closes() {
            self.on_closed(attempt.link, reason, now);
        }
        if fault.is_of_drain() {
            let link = attempt.link;
            self.with_addresses(now, |all, around| all.on_shutting_down(link, around));
        }
    }

    fn on_answer(&mut self, call: CallId, attempt: AttemptId, now: Nanos) {
        #[cfg(feature = "mutants")]
        if self.config.shows(Mutant::HedgeLeft) {
            return self.finish(call, CallEnd::Answered(attempt));
        }
        self.drop_attempts(call, now);
        self.finish(call, CallEnd::Answered(attempt));
    }

    fn on_failure(&mut self, id: CallId, fault: Fault, now: Nanos) {
        let ran = fault.ran();
        #[cfg(feature = "mutants")]
        let ran = match self.config.shows(Mutant::AnyServerBelieved) {
            true => fault.believed().ran(),
            false => ran,
        };
        #[cfg(feature = "mutants")]
        if self.config.shows(Mutant::LastAttemptAlone) {
            self.calls.forget_ran(id);
        }
        self.calls.on_ran(id, ran);
        let is_unsent = fault.is_unsent();
        let is_free = is_unsent || fault.is_of_drain();
        match is_free {
            true => self.calls.on_free(id, now + self.config.patience),
            false => self.calls.on_sent(id),
        }
        let Some(call) = self.calls.get(id) else {
            return;
        };
        // If another attempt is under way, it may still get an answer, and the call goes on. But if
        // the failed attempt has run, its error ends the call.
        if call.live().next().is_some() && ran != Ran::Yes {
            return;
        }
        let terms = *call.terms();
        let is_once = terms.once;
        #[cfg(feature = "mutants")]
        let is_once = is_once && !self.config.shows(Mutant::NotificationRepeated);
        // Free attempts, which were never transmitted or which a draining server refused, do not
        // count for this limit; the patience bounds them. In a rolling upgrade, one server after
        // another may refuse the call.
        let has_failed_often = call.free() >= self.config.attempts();
        let is_bounded = is_free && has_failed_often && !call.is_patient(now);
        let has_more = call.begun() < self.config.attempts() && !is_bounded;
        let how = match repeat(&fault, terms.idempotent) {
            _ if is_once && !is_unsent => Repeat::Never,
            // Without a ready server, the call waits in the queue. It is not in the queue during a
            // pause, so servers that come and go could pass it over for ever.
            Repeat::AtOnce if has_failed_often && !self.addresses.ready().is_empty() => {
                Repeat::Later
            }
            how => how,
        };
        #[cfg(feature = "mutants")]
        let (how, has_more) = self.mutated(how, has_more, &fault);
        match how {
            _ if !has_more => self.end(id, Why::Attempt(fault), now),
            Repeat::Never => self.end(id, Why::Attempt(fault), now),
            Repeat::AtOnce => {
                self.counters.free_repeats += 1;
                self.dispatch(id, now);
            }
            Repeat::Later => {
                self.counters.free_repeats += 1;
                self.pause(id, now);
            }
            Repeat::Paid if self.pay(now) => {
                self.counters.paid_repeats += 1;
                self.pause(id, now);
            }
            Repeat::Paid => self.end(id, Why::Attempt(fault), now),
        }
    }

    fn pay(&mut self, now: Nanos) -> bool {
        let is_paid = self.budget.take(now);
        #[cfg(feature = "mutants")]
        let is_paid = is_paid || self.config.shows(Mutant::BudgetIgnored);
        self.counters.unpaid += u64::from(!is_paid);
        is_paid
    }

    fn pause(&mut self, id: CallId, now: Nanos) {
        let call = self.calls.get(id);
        let repeats = call.map_or(1, |call| call.begun() + call.free());
        let repeats = u32::try_from(repeats).unwrap_or(u32::MAX);
        let pause = self.config.retry.pause.pause(repeats, &mut self.rng);
        let until = now + pause;
        self.calls.enter(id, Stage::Pausing { until });
    }

    /// Sends the call to a server that is ready, or makes it wait for one.
    pub(super) fn dispatch(&mut self, id: CallId, now: Nanos) {
        if self.is_over(id, now) {
            self.counters.expired += 1;
            return self.end(id, Why::DeadlinePassed, now);
        }
        if self.send(id, now) {
            return;
        }
        match self.config.patience {
            Nanos::ZERO => {
                self.counters.no_server += 1;
                self.end(id, Why::NoServer, now);
            }
            patience => {
                let until = now + patience;
                self.calls.enter(id, Stage::Waiting { until });
            }
        }
    }

    /// Tries again to send a waiting call.
    pub(super) fn try_waiting(&mut self, id: CallId, now: Nanos) {
        if !self.is_over(id, now) {
            self.send(id, now);
        }
    }

    fn is_over(&self, id: CallId, now: Nanos) -> bool {
        let deadline = self.calls.get(id).and_then(|call| call.terms().deadline);
        deadline.is_some_and(|end| end <= now)
    }

    /// Sends a call whose answer is late to a second server as well.
    pub(super) fn hedge(&mut self, id: CallId, now: Nanos) {
        self.calls.enter(id, Stage::Flying { hedge: None });
        let Some(call) = self.calls.get(id) else {
            return;
        };
        let has_more = call.begun() < self.config.attempts();
        let first = call.last();
        let is_there_another = self
            .addresses
            .ready()
            .iter()
            .any(|one| Some(one.id) != first);
        if has_more && is_there_another && self.pay(now) && self.send(id, now) {
            self.counters.hedges += 1;
        }
    }

    /// Begins an attempt, if a server is ready.
    fn send(&mut self, id: CallId, now: Nanos) -> bool {
        let Some((address, link)) = self.place(id, now) else {
            return false;
        };
        let attempt = Attempt {
            call: Some(id),
            address,
            link,
            since: now,
            outstanding: self.addresses.load(address).outstanding + 1,
            is_out: false,
            is_issued: false,
        };
        let Some(handle) = self.calls.on_attempt(id, attempt) else {
            return false;
        };
        self.addresses.on_attempt(address, link);
        self.counters.attempts += 1;
        let Some(call) = self.calls.get(id) else {
            return false;
        };
        let may_run_twice = call.terms().idempotent && !call.terms().once;
        let may_hedge = may_run_twice && call.begun() < self.config.attempts();
        #[cfg(feature = "mutants")]
        let may_hedge = may_hedge || self.config.shows(Mutant::AnyCallHedged);
        let after = self.config.hedge.filter(|_| may_hedge);
        let deadline = call.terms().deadline;
        #[cfg(feature = "mutants")]
        let deadline = self.restarted(deadline, call.begun(), now);
        let hedge = after.map(|after| now + after);
        self.calls.enter(id, Stage::Flying { hedge });
        self.actions.push_back(Action::Send {
            attempt: handle,
            call: id,
            link,
            deadline,
        });
        true
    }

    /// Takes back an attempt that the driver has not taken, because its link is gone or its server
    /// drains. The call then goes elsewhere, as if the attempt had never been made.
    pub(super) fn take_back(&mut self, id: AttemptId, now: Nanos) {
        let Some(attempt) = self.calls.take_back(id) else {
            return;
        };
        self.release(&attempt, now);
        let call = attempt.call.and_then(|id| self.calls.get(id));
        if call.is_some_and(|call| call.live().next().is_none())
            && let Some(call) = attempt.call
        {
            self.dispatch(call, now);
        }
    }

    /// Picks a server and a link for the next attempt: another server than for the last attempt, if
    /// there is one.
    fn place(&mut self, id: CallId, now: Nanos) -> Option<(AddressId, LinkId)> {
        let call = self.calls.get(id)?;
        let (terms, last) = (*call.terms(), call.last());
        let addresses = &self.addresses;
        let picked = self.picker.pick(
            addresses.ready(),
            last,
            terms.key,
            |id| addresses.load(id),
            &mut self.rng,
        )?;
        let link = self.with_addresses(now, |all, around: &mut Around<'_>| {
            all.choose(picked, terms.endpoint, around)
        })?;
        Some((picked, link))
    }

    /// Gives up all attempts of a call. The driver never gets the attempts that it has not taken;
    /// the others are cancelled, and stay outstanding until the driver reports their end.
    pub(super) fn drop_attempts(&mut self, id: CallId, now: Nanos) {
        let Some(call) = self.calls.get(id) else {
            return;
        };
        for id in call.live() {
            let Some(attempt) = self.calls.attempt(id).copied() else {
                continue;
            };
            self.calls.orphan(id);
            if attempt.is_out {
                self.actions.push_back(Action::Cancel { attempt: id });
                #[cfg(feature = "mutants")]
                if self.config.shows(Mutant::CancelledNotCounted) {
                    self.release(&attempt, now);
                }
            } else {
                self.calls.on_attempt_end(id);
                self.release(&attempt, now);
            }
        }
    }

    /// Stops counting an attempt as outstanding.
    fn release(&mut self, attempt: &Attempt, now: Nanos) {
        let (address, link) = (attempt.address, attempt.link);
        self.with_addresses(now, |all, around| {
            all.on_attempt_end(address, link, around);
        });
    }
}

/// The planted bugs in repeats.
#[cfg(feature = "mutants")]
impl Machine {
    fn mutated(&self, how: Repeat, has_more: bool, fault: &Fault) -> (Repeat, bool) {
        let no_memory = Fault::Sent(RpcError::rejected(ErrorCode::NO_RESPONSE_MEMORY, true));
        let how = match how {
            Repeat::Never if self.config.shows(Mutant::NoMemoryRepeated) && *fault == no_memory => {
                Repeat::Paid
            }
            Repeat::Never if self.config.shows(Mutant::RepeatAfterLostAnswer) => {
                repeat(&fault.believed(), true)
            }
            Repeat::Never if self.config.shows(Mutant::AnyServerBelieved) => {
                repeat(&fault.believed(), false)
            }
            how => how,
        };
        (how, has_more || self.config.shows(Mutant::EndlessAttempts))
    }

    fn restarted(&self, deadline: Option<Nanos>, begun: usize, now: Nanos) -> Option<Nanos> {
        let restarts = begun > 1 && self.config.shows(Mutant::DeadlineRestarts);
        deadline.map(|end| {
            if restarts {
                end + Nanos(now.0 / 2)
            } else {
                end
            }
        })
    }
}
