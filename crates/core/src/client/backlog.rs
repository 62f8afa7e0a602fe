//! The backlog of a session: calls that wait for a slot or a credit, in order.
//!
//! Called by `client/calls.rs` when a call cannot start, and by the loop for sessions of the stall
//! queue.

use dunlin_wire::ErrorCode;

use crate::client::call::CallIdx;
use crate::endpoint::proto::Proto;
use crate::error::RpcError;

impl Proto {
    /// Lets the call wait for a slot or a credit.
    #[inline(never)]
    pub(crate) fn enqueue(&mut self, session: u32, idx: CallIdx) {
        self.calls.enqueue(session, idx);
        self.sessions.at_mut(session).set_waiting(true);
        self.stats.on_stall();
        #[cfg(feature = "mutants")]
        if self.shows(crate::mutant::Mutant::CountedTwice) {
            self.stats.on_stall();
        }
        // For its deadline.
        self.agenda
            .on_call(self.moment.now(), self.config.scan_interval);
    }

    /// Takes the call out of those that wait.
    pub(crate) fn unlink(&mut self, session: u32, idx: CallIdx) {
        if self.calls.unlink(session, idx) {
            self.sessions.at_mut(session).set_waiting(false);
        }
    }

    /// Sends what the session's slots and credits allow of the calls that wait.
    #[inline(never)]
    pub(crate) fn drain_backlog(&mut self, session: u32) {
        while self.sessions.at(session).can_send()
            && let Some(idx) = self.calls.first_waiting(session)
        {
            self.unlink(session, idx);
            self.start(session, idx);
        }
    }

    /// Ends the calls that waited for the other side's answer and are larger than it takes.
    pub(crate) fn end_too_large(&mut self, session: u32) {
        let limit = self.sessions.at(session).terms().max_message as usize;
        let mut next = self.calls.first_waiting(session);
        while let Some(idx) = next {
            next = self.calls.next_waiting(idx);
            let request = self.calls.at(idx).request.as_ref();
            if request.is_some_and(|request| request.len() > limit) {
                self.abort(idx, RpcError::Rejected(ErrorCode::TOO_LARGE));
            }
        }
    }
}
