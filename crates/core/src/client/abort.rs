//! Calls that end without an answer: cancelled, past their deadline, or with their session (rules
//! S6 and S11).
//!
//! Called by `Cx`, by `endpoint/scan.rs` and by `session/lifecycle.rs`. Completions are queued for
//! the loop.

use crate::client::call::{CallId, CallIdx, CallState, Done};
use crate::endpoint::proto::Proto;
use crate::error::{CloseReason, RpcError};
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
            self.release_slot(session, req);
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
            let req = self.calls.at(idx).req;
            self.release_slot(session, req);
            let at = self.sessions.at(session).slot_at(req);
            self.calls.repeat_number(at, req);
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
        for at in self.sessions.at(session).slots() {
            if let Some(idx) = self.calls.call_at(at) {
                self.end_call(idx, error);
            }
        }
        while let Some(idx) = self.calls.first_waiting(session) {
            self.unlink(session, idx);
            self.end_call(idx, error);
        }
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
}
