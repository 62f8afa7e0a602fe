//! Calls that end without an answer: cancelled, past their deadline, or with their session (rules
//! S6 and S11).
//!
//! Called by `Cx`, by `endpoint/scan.rs` and by `session/lifecycle.rs`. Completions are queued for
//! the loop.

use crate::client::call::{CallId, CallIdx, CallState, Done};
use crate::endpoint::proto::Proto;
use crate::error::{CloseReason, RpcError};
use crate::session::table::{NONE, State};
use crate::transport::TxSeq;

impl Proto {
    /// Cancels a call; its completion follows. False if it has completed already.
    pub(crate) fn cancel(&mut self, id: CallId) -> bool {
        let Some(idx) = self.calls.find(id) else {
            return false;
        };
        self.abort(idx, RpcError::Cancelled);
        true
    }

    /// Completes a call to the user before the server has answered (rule S6).
    pub(crate) fn abort(&mut self, idx: CallIdx, error: RpcError) {
        let (state, session) = (self.calls.at(idx).state, self.calls.at(idx).session);
        let tx_end = self.calls.at(idx).tx_end;
        let Some(done) = self.take_done(idx, Err(error)) else {
            return;
        };
        if state == CallState::Queued {
            self.unlink(session, idx);
            self.calls.remove(idx);
            self.end(done, TxSeq(0));
            return;
        }
        self.end(done, tx_end);
        self.end_transfer(session, idx);
        #[cfg(feature = "mutants")]
        if self.shows(crate::mutant::Mutant::FreeOnCancel) {
            let req = self.calls.at(idx).req;
            self.free_slot(session, req);
            self.calls.remove(idx);
            return;
        }
        let call = self.calls.at_mut(idx);
        call.state = CallState::Zombie;
        call.attempts = 0;
        // What is answered from now on may be the CANCEL.
        call.sample = false;
        call.sent = self.moment.now();
        self.agenda
            .on_call(self.moment.now(), self.config.scan_interval);
        self.send_cancel(idx);
        #[cfg(feature = "mutants")]
        if self.shows(crate::mutant::Mutant::SlotReusedEarly) {
            let (req, window) = (self.calls.at(idx).req, self.sessions.at(session).window);
            self.free_slot(session, req.previous(u32::from(window)));
            self.calls.remove(idx);
        }
    }

    /// Ends every call of a session that closes, in the order in which they were issued to slots,
    /// then the backlog.
    pub(crate) fn end_calls(&mut self, session: u32, reason: CloseReason) {
        let error = match reason {
            CloseReason::PeerFailed => RpcError::PeerFailed,
            other => RpcError::SessionClosed(other),
        };
        let state = self.sessions.at_mut(session);
        let (slots, window) = (state.slots, u32::from(state.window));
        for at in slots..slots + window {
            let call = self.sessions.client_slots[at as usize].call;
            if call != NONE {
                self.end_call(CallIdx(call), error);
            }
        }
        while self.sessions.at(session).backlog_head != NONE {
            let idx = CallIdx(self.sessions.at(session).backlog_head);
            self.unlink(session, idx);
            self.end_call(idx, error);
        }
        let state = self.sessions.at_mut(session);
        debug_assert_eq!(state.backlog_len, 0);
        state.in_flight = 0;
        debug_assert!(state.state != State::Free);
    }

    fn end_call(&mut self, idx: CallIdx, error: RpcError) {
        let tx_end = self.calls.at(idx).tx_end;
        let (session, in_slot) = {
            let call = self.calls.at(idx);
            (call.session, call.state.has_slot())
        };
        self.end_transfer(session, idx);
        if let Some(done) = self.take_done(idx, Err(error)) {
            #[cfg(feature = "mutants")]
            if self.shows(crate::mutant::Mutant::LostCompletion) {
                self.calls.remove(idx);
                return;
            }
            let tx_end = if in_slot { tx_end } else { TxSeq(0) };
            self.end(done, tx_end);
        }
        self.calls.remove(idx);
    }

    /// Takes the buffers out of a call, as its completion.
    fn take_done(&mut self, idx: CallIdx, result: Result<(), RpcError>) -> Option<Done> {
        let call = self.calls.at_mut(idx);
        let (request, response) = (call.request.take()?, call.response.take()?);
        let (tag, index) = (call.tag, call.session);
        Some(Done {
            session: self.sessions.handle(index),
            tag,
            result,
            request,
            response,
        })
    }

    /// Gives slot and credit back as an answer does.
    #[cfg(feature = "mutants")]
    fn free_slot(&mut self, session: u32, req: dunlin_wire::ReqNum) {
        let (state, slots) = self.sessions.with_client_slots(session);
        let window = u32::from(state.window);
        let bit = 1_u64 << req.slot(window);
        state.free |= bit;
        state.unacked |= bit;
        state.credits += 1;
        state.in_flight -= 1;
        slots[req.slot(window) as usize] = crate::session::table::ClientSlot {
            req: req.next(window),
            call: NONE,
        };
        self.wake(session);
    }
}
