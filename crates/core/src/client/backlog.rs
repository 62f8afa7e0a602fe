//! The backlog of a session: calls that wait for a slot or a credit, in order (design
//! §5). A doubly linked list through the table of calls, so that a call can leave from anywhere.
//!
//! Called by `client/calls.rs` when a call cannot start, and by the loop for sessions of the stall
//! queue.

use dunlin_wire::ErrorCode;

use crate::client::call::{CallIdx, CallState};
use crate::endpoint::proto::Proto;
use crate::error::RpcError;
use crate::session::table::NONE;

impl Proto {
    /// Puts the call at the end of its session's backlog.
    #[inline(never)]
    pub(crate) fn enqueue(&mut self, session: u32, idx: CallIdx) {
        let state = self.sessions.at_mut(session);
        let tail = std::mem::replace(&mut state.backlog_tail, idx.0);
        state.backlog_len += 1;
        if tail == NONE {
            state.backlog_head = idx.0;
        } else {
            self.calls.at_mut(CallIdx(tail)).next = idx.0;
        }
        let call = self.calls.at_mut(idx);
        call.state = CallState::Queued;
        call.previous = tail;
        call.next = NONE;
        self.stats.on_stall();
        #[cfg(feature = "mutants")]
        if self.shows(crate::mutant::Mutant::CountedTwice) {
            self.stats.on_stall();
        }
        // For its deadline.
        self.agenda
            .on_call(self.moment.now(), self.config.scan_interval);
    }

    /// Takes the call out of its session's backlog.
    pub(crate) fn unlink(&mut self, session: u32, idx: CallIdx) {
        let call = self.calls.at(idx);
        let (previous, next) = (call.previous, call.next);
        let state = self.sessions.at_mut(session);
        state.backlog_len -= 1;
        if previous == NONE {
            state.backlog_head = next;
        } else {
            self.calls.at_mut(CallIdx(previous)).next = next;
        }
        if next == NONE {
            state.backlog_tail = previous;
        } else {
            self.calls.at_mut(CallIdx(next)).previous = previous;
        }
    }

    /// Sends what the session's backlog, slots and credits allow.
    #[inline(never)]
    pub(crate) fn drain_backlog(&mut self, session: u32) {
        loop {
            let state = self.sessions.at(session);
            let idx = CallIdx(state.backlog_head);
            if idx.0 == NONE || !state.can_send() {
                return;
            }
            self.unlink(session, idx);
            self.start(session, idx);
        }
    }

    /// Ends the calls that waited for the other side's answer and are larger than it takes.
    pub(crate) fn end_too_large(&mut self, session: u32) {
        let limit = self.sessions.at(session).max_message as usize;
        let mut next = self.sessions.at(session).backlog_head;
        while next != NONE {
            let idx = CallIdx(next);
            let call = self.calls.at(idx);
            next = call.next;
            if call
                .request
                .as_ref()
                .is_some_and(|request| request.len() > limit)
            {
                self.abort(idx, RpcError::Rejected(ErrorCode::TOO_LARGE));
            }
        }
    }
}
