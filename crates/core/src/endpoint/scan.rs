//! What time does: lost packets, passed deadlines, probes, CANCELs of zombies, acknowledgements
//! of slow requests, responses whose hold has ended, silent peers (rules S4 to S6, S8, S9, S11).
//!
//! The agenda says when; here is what is then done. The tables are scanned in parts, at most
//! [`SCAN_LIMIT`] calls an interval and a 64th of the held responses, so the cost is small and
//! nothing can refer to a call that is over.

use dunlin_wire::ErrorCode;

use crate::client::call::{CallIdx, CallState};
use crate::config::{Config, SCAN_LIMIT, SWEEP_LIMIT, SWEEP_PARTS};
use crate::endpoint::proto::Proto;
use crate::error::{CloseReason, RpcError};
use crate::server::work::{Requests, WorkIdx, WorkState};
use crate::time::Nanos;

/// Doublings of the timeout after which it stays as it is.
const MAX_BACKOFF: u8 = 6;
/// Attempts before silence can mean that the peer has failed.
const MIN_ATTEMPTS: u8 = 3;
/// Parts of `response_hold` in which all held responses are looked at once.
const SWEEPS_PER_HOLD: u64 = 4;

impl Proto {
    /// Does everything that is due, except the user's timers, which the loop delivers before it
    /// finds out what is due next.
    /// `queue_empty`: the RX queue was seen empty, so what has not arrived is not merely waiting.
    #[inline(never)]
    pub(crate) fn on_time(&mut self, queue_empty: bool) {
        let (now, interval) = (self.moment.now(), self.config.scan_interval);
        if let Some(span) = self.agenda.absence(now, interval) {
            self.moment.on_absence(span);
        }
        self.acknowledge_due();
        self.release_paced();
        if self.agenda.scan_is_due(now) {
            self.scan_calls(queue_empty);
        }
        if self.agenda.sweep_is_due(now) {
            self.sweep_responses();
        }
        if let Some(blame) = self.agenda.transfers_due(now, queue_empty, interval) {
            self.check_transfers(blame);
        }
    }

    /// Looks at the pending calls, and finds out when they must be looked at again.
    fn scan_calls(&mut self, queue_empty: bool) {
        let (now, interval) = (self.moment.now(), self.config.scan_interval);
        let blame = self.agenda.may_blame(now, queue_empty, interval);
        let len = self.calls.len();
        let (start, count) = self.agenda.next_part(len, SCAN_LIMIT);
        let mut due = Nanos::MAX;
        for i in 0..count {
            let index = (start + i) % len;
            let idx = CallIdx(u32::try_from(index).unwrap_or(u32::MAX));
            due = due.min(self.check_call(idx, blame));
        }
        let soonest = now + interval;
        let live = self.calls.live();
        self.agenda.on_scanned(live, count == len, due, soonest);
    }

    /// Does what is due for one call; returns when it must be looked at again.
    fn check_call(&mut self, idx: CallIdx, blame: bool) -> Nanos {
        let call = self.calls.at(idx);
        match call.state {
            CallState::Free => Nanos::MAX,
            state if state.is_pending() && call.deadline <= self.moment.now() => {
                self.abort(idx, RpcError::DeadlinePassed);
                self.moment.now()
            }
            CallState::Queued | CallState::Sending | CallState::Receiving => call.deadline,
            _ if blame => self.check_sent(idx),
            _ => self.moment.now(),
        }
    }

    /// Sends something for a call that has been without an answer for too long.
    fn check_sent(&mut self, idx: CallIdx) -> Nanos {
        let call = self.calls.at(idx);
        let due = call.sent + self.patience(idx);
        if due > self.moment.now() {
            return due.min(call.deadline);
        }
        if self.is_silent(idx) {
            let session = self.sessions.handle(call.session);
            self.close(session, CloseReason::PeerFailed, true);
            return Nanos::MAX;
        }
        match call.state {
            CallState::Sent => self.retransmit(idx),
            CallState::Accepted => {
                self.probe(idx);
            }
            _ => self.send_cancel(idx),
        }
        self.moment.now()
    }

    /// How long the call waits for an answer before it does something.
    fn patience(&self, idx: CallIdx) -> Nanos {
        let call = self.calls.at(idx);
        let rtt = self.sessions.at(call.session).rtt();
        let timeout = rtt.timeout(self.config.rto_floor, self.config.rto_initial);
        let grown = timeout.times(1 << call.attempts.min(MAX_BACKOFF));
        grown.min(self.config.longest_backoff().max(timeout))
    }

    /// The peer has not sent anything for the failure timeout, although it was asked several
    /// times while this endpoint was running (rule S11).
    pub(crate) fn is_silent(&self, idx: CallIdx) -> bool {
        let call = self.calls.at(idx);
        let line = self.sessions.at(call.session);
        let present = self.moment.present(self.moment.now());
        let silence = line.silence(present, call.first_sent);
        call.attempts >= MIN_ATTEMPTS && silence >= self.config.failure_timeout
    }

    /// There is a response that must be given back some time.
    #[inline]
    pub(crate) fn expect_sweep(&mut self) {
        let interval = || sweep_interval(&self.config, &self.works);
        self.agenda.expect_sweep(interval, self.moment.now());
    }

    /// Gives back one part of the responses that were held for long enough (rule S9).
    fn sweep_responses(&mut self) {
        let len = self.works.len();
        let part = self.agenda.sweep_part(len, sweep_parts(&self.works));
        let end = part.end;
        for index in part {
            self.sweep(WorkIdx(u32::try_from(index).unwrap_or(u32::MAX)));
        }
        let next = self.moment.now() + sweep_interval(&self.config, &self.works);
        self.agenda.on_swept(end, len, next);
    }

    fn sweep(&mut self, idx: WorkIdx) {
        let work = self.works.at(idx);
        let held = self.moment.now().since(work.answered) >= self.config.response_hold;
        #[cfg(feature = "mutants")]
        if held
            && self.shows(crate::mutant::Mutant::TimerAfterCompletion)
            && work.state == WorkState::Detached
            && !work.marks.any_of(crate::server::work::Marks::ORPHAN)
            && work.answered != Nanos::ZERO
        {
            return self.free_work(idx);
        }
        match work.state {
            WorkState::Done if held => self.free_work(idx),
            WorkState::Receiving if held => {
                // The sender has stopped; what it is told must be given back in its turn.
                self.give_up(idx);
                self.reject(idx, ErrorCode::OVERLOADED);
                self.agenda.on_held();
            }
            WorkState::Done | WorkState::Receiving => self.agenda.on_held(),
            WorkState::Free | WorkState::Dispatched | WorkState::Detached => {}
        }
    }
}

/// In how many parts the held responses are swept: few if they are few.
fn sweep_parts(works: &Requests) -> usize {
    works.len().div_ceil(SWEEP_LIMIT).clamp(1, SWEEP_PARTS)
}

fn sweep_interval(config: &Config, works: &Requests) -> Nanos {
    let round = config.response_hold.0 / SWEEPS_PER_HOLD;
    Nanos((round / sweep_parts(works) as u64).max(1))
}
