//! Calls that end without an answer: cancelled, past their deadline, or with their session (rules
//! S6 and S11). Completions are queued for the loop.

use super::{Call, CallMarks, CallState, Calls, Ended};
use crate::call::Done;
use crate::context::Context;
use crate::error::RpcError;
use crate::handle::CallIdx;
use crate::session::line::Line;
use crate::transport::{Source, TxSeq};

impl Call {
    /// The error of a call that ends without an answer. If the call never had a slot, the error
    /// says that the request was never transmitted.
    fn proved(&self, error: RpcError) -> RpcError {
        match self.state {
            CallState::Queued => error.before_transmission(),
            _ => error,
        }
    }
}

impl Calls {
    /// Completes a call before the server has answered (rule S6). The caller has already ended the
    /// call's transfer, if it had one.
    pub(crate) fn abort(
        &mut self,
        idx: CallIdx,
        error: RpcError,
        line: &mut Line,
        context: &mut Context,
    ) {
        let (state, tx_end) = (self.at(idx).state, self.at(idx).tx_end());
        let error = self.at(idx).proved(error);
        self.keep_staged(idx, context);
        let Some(done) = self.take_done(idx, Err(error), line) else {
            return;
        };
        if state == CallState::Queued {
            self.unlink(idx, line);
            self.remove(idx);
            return context.end(done, TxSeq(0));
        }
        context.end(done, tx_end);
        #[cfg(feature = "mutants")]
        if context.shows(crate::mutant::Mutant::FreeOnCancel) {
            self.release(line, self.req_of(idx));
            context.wake(self.session_of(idx), line);
            return self.remove(idx);
        }
        self.become_zombie(idx, line, context);
        #[cfg(feature = "mutants")]
        if context.shows(crate::mutant::Mutant::SlotReusedEarly) {
            let (at, req) = (self.at(idx).at(), self.req_of(idx));
            self.release(line, req);
            context.wake(self.session_of(idx), line);
            self.repeat_number(at, req);
            self.remove(idx);
        }
    }

    /// Makes a call a zombie: the user has its completion, but the server has not answered.
    fn become_zombie(&mut self, idx: CallIdx, line: &mut Line, context: &mut Context) {
        let now = context.moment.now();
        let call = self.at_mut(idx);
        call.enter(CallState::Zombie);
        call.attempts = 0;
        // From now on, an answer may belong to the CANCEL.
        call.marks.set(CallMarks::SAMPLE, false);
        call.sent = now;
        #[cfg(feature = "mutants")]
        let awaits = context.shows(crate::mutant::Mutant::AwaitedAfterCancel);
        #[cfg(not(feature = "mutants"))]
        let awaits = false;
        if !awaits {
            self.settle(idx);
        }
        context.expect_scan();
        self.send_cancel(idx, line, context);
    }

    /// Ends a call of a session that closes. The caller has already taken the call out of the
    /// backlog, or ended its transfer.
    pub(crate) fn end_with_session(
        &mut self,
        idx: CallIdx,
        error: RpcError,
        line: &Line,
        context: &mut Context,
    ) {
        let call = self.at(idx);
        let error = call.proved(error);
        let tx_end = match call.state {
            CallState::Queued => TxSeq(0),
            _ => call.tx_end(),
        };
        self.keep_staged(idx, context);
        if let Some(done) = self.take_done(idx, Err(error), line) {
            #[cfg(feature = "mutants")]
            if context.shows(crate::mutant::Mutant::LostCompletion) {
                return self.remove(idx);
            }
            context.end(done, tx_end);
        }
        self.remove(idx);
    }

    /// If the request is staged, lets it leave although its buffer goes back to the user.
    fn keep_staged(&self, idx: CallIdx, context: &mut Context) {
        let call = self.at(idx);
        if let Some(request) = call.request() {
            let source = Source::of_call(idx, call.generation);
            context.outbox.keep(source, request);
        }
    }

    /// Takes the buffers out of a call, and makes them its completion; `None` if they were taken
    /// before.
    pub(super) fn take_done(
        &mut self,
        idx: CallIdx,
        result: Result<(), RpcError>,
        line: &Line,
    ) -> Option<Done> {
        let call = self.at_mut(idx);
        let ended = Ended {
            session: line.handle(),
            tag: call.tag,
            bufs: call.bufs.take()?,
        };
        Some(ended.done(result))
    }
}
