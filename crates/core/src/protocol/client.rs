//! Events of the client side, each brought to the parts that it concerns: calls, their transfers,
//! their sessions and the pacer.

use dunlin_msgbuf::MsgBuf;
use dunlin_wire::{Header, Ran, ReqType};

use crate::call::{CallOptions, Tag};
use crate::client::calls::answers::{Answer, Answered};
use crate::client::calls::issue::{Started, Wish};
use crate::client::calls::plain::Given;
use crate::client::calls::retransmission::Overdue;
use crate::error::{CallError, CloseReason, HandleError, RpcError};
use crate::handle::{CallId, CallIdx, Session, SessionIdx};
#[cfg(feature = "mutants")]
use crate::mutant::Mutant;
use crate::packet::receive::{Data, bitmap_of};
use crate::protocol::Core;
use crate::protocol::inquiries::Progress;
use crate::scheme::Bypasses;
use crate::time::Nanos;

impl Core {
    /// Accepts a request. It leaves once the session has a slot and a credit for it.
    #[inline(always)]
    pub(crate) fn call(
        &mut self,
        session: Session,
        req_type: ReqType,
        request: MsgBuf,
        response: MsgBuf,
        tag: Tag,
        options: CallOptions,
    ) -> Result<CallId, CallError> {
        let (sessions, context) = (&mut self.sessions, &mut self.context);
        let len = request.len();
        // Each branch makes its own value: one that both shared would go through memory.
        let given = || (req_type, tag, options);
        if let Some(claim) = self.calls.claim::<false>(session, len, sessions, context) {
            return Ok(claim.issue::<false>(request, response, given(), context));
        }
        if let Some(claim) = self.calls.claim::<true>(session, len, sessions, context) {
            return Ok(claim.issue::<true>(request, response, given(), context));
        }
        self.call_otherwise(session, request, response, given())
    }

    #[inline(never)]
    fn call_otherwise(
        &mut self,
        session: Session,
        request: MsgBuf,
        response: MsgBuf,
        given: Given,
    ) -> Result<CallId, CallError> {
        if self.sessions.is_stalled(session) {
            // Waiting calls leave first. Otherwise this call, and each later call of the session,
            // would have to wait after them until the end of the iteration.
            self.resume_stalled();
            let (req_type, tag, options) = given;
            return self.call(session, req_type, request, response, tag, options);
        }
        let (sessions, context) = (&mut self.sessions, &mut self.context);
        let bufs = [request, response];
        let [request, response] = match self
            .calls
            .issue_apart(session, bufs, given, sessions, context)
        {
            Ok(id) => return Ok(id),
            Err(bufs) => bufs,
        };
        let (req_type, tag, options) = given;
        let wish = Wish {
            session,
            req_type,
            request,
            response,
            tag,
            options,
        };
        let issued = self
            .calls
            .issue(wish, &mut self.sessions, &mut self.context)?;
        if issued.starts {
            self.start(session.index(), issued.id.index());
        }
        Ok(issued.id)
    }

    /// Gives the call a slot and a credit, and sends its request.
    #[inline]
    fn start(&mut self, session: SessionIdx, idx: CallIdx) {
        let line = self.sessions.at_mut(session);
        let started = self
            .calls
            .start(idx, line, &mut self.pacer, &mut self.context);
        if let Started::InParts(size) = started {
            let (transfers, mut lent) = self.transfers();
            transfers.start(&mut lent, session, idx, size);
        }
    }

    /// Sends waiting calls as far as slots and credits allow, in the sessions whose backlog may now
    /// be able to move.
    #[inline(never)]
    pub(crate) fn resume_stalled(&mut self) {
        while let Some(session) = self.context.agenda.pop_stalled() {
            self.sessions.at_mut(session).leave_stall_queue();
            #[cfg(feature = "mutants")]
            let had_waiting = self.calls.waiting(session) != 0;
            while self.sessions.at(session).can_send()
                && let Some(idx) = self.calls.first_waiting(session)
            {
                self.calls.unlink(idx, self.sessions.at_mut(session));
                self.start(session, idx);
            }
            #[cfg(feature = "mutants")]
            if self.context.shows(Mutant::BacklogMarked) && self.calls.waiting(session) == 0 {
                let line = self.sessions.at_mut(session);
                match had_waiting && line.in_flight() != 0 {
                    true => line.begin_waiting(),
                    false => line.end_waiting(),
                }
            }
        }
    }

    /// Ends the calls that waited for the session to open and are larger than the peer accepts.
    pub(crate) fn end_too_large(&mut self, session: SessionIdx) {
        let limit = self.sessions.at(session).terms().max_message;
        while let Some(idx) = self.calls.first_too_large(session, limit as usize) {
            self.abort(idx, RpcError::TooLarge { limit });
        }
    }

    /// Handles RESP or ERR. Returns the call if only its completion is left to do.
    #[inline(always)]
    pub(crate) fn on_answer(
        &mut self,
        session: SessionIdx,
        header: &Header,
        data: &[u8],
    ) -> Option<Answered> {
        let asserts = self.sessions.asserts();
        let line = self.sessions.at_mut(session);
        assert!(
            !asserts || self.calls.are_slots_settled(line.slots(), session),
            "at {session:?}"
        );
        let (pacer, context) = (&mut self.pacer, &mut self.context);
        match self.calls.on_answer(header, data, line, pacer, context) {
            Answer::Ends(answered) => Some(answered),
            Answer::Taken => None,
            Answer::InParts => {
                self.on_large_answer(session, header, Data::Here(data));
                None
            }
            Answer::Amid(idx) => {
                // The server has answered a large request, or the request has failed.
                let (transfers, mut lent) = self.transfers();
                transfers.on_answer_amid(&mut lent, session, idx, header);
                self.end_transfer(session, idx);
                self.on_answer_again(session, header, data)
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn on_answer_again(
        &mut self,
        session: SessionIdx,
        header: &Header,
        data: &[u8],
    ) -> Option<Answered> {
        let line = self.sessions.at_mut(session);
        let (pacer, context) = (&mut self.pacer, &mut self.context);
        match self.calls.on_answer(header, data, line, pacer, context) {
            Answer::Ends(answered) => Some(answered),
            _ => None,
        }
    }

    /// Handles one packet of a response of several packets.
    #[cold]
    pub(crate) fn on_large_answer(&mut self, session: SessionIdx, header: &Header, data: Data<'_>) {
        let (transfers, mut lent) = self.transfers();
        transfers.on_large_answer(&mut lent, session, header, data);
    }

    /// Ends the call's transfer.
    fn end_transfer(&mut self, session: SessionIdx, idx: CallIdx) {
        let (transfers, mut lent) = self.transfers();
        transfers.end(&mut lent, session, idx);
    }

    /// Does the work that is due for large messages. `blame`: missing packets count as lost.
    pub(crate) fn check_transfers(&mut self, blame: bool) {
        let mut next = Nanos::MAX;
        for index in self.transfers.indexes() {
            let (transfers, mut lent) = self.transfers();
            if blame {
                transfers.check(&mut lent, index);
            }
            next = next.min(self.transfers.due_of(index));
        }
        self.context.agenda.set_transfers(next);
    }

    /// Sends the packets in the wheel that are due (rule S8).
    pub(crate) fn release_paced(&mut self) {
        while let Some(entry) = self.pacer.pop_due(self.context.moment.now()) {
            // The packet may no longer be needed.
            let Some(session) = self.sessions.find(entry.session) else {
                continue;
            };
            let line = self.sessions.at_mut(session);
            let Some(idx) = self.calls.in_slot(line.slot_at(entry.req), entry.req) else {
                continue;
            };
            match self.calls.transfer_of(idx) {
                Some(transfer) => {
                    let (transfers, mut lent) = self.transfers();
                    transfers.on_place(&mut lent, transfer, entry.at);
                }
                None => self.calls.on_place(idx, entry.at, line, &mut self.context),
            }
        }
    }

    /// Sets the bypasses from now on.
    pub(crate) fn set_bypasses(&mut self, bypasses: Bypasses) {
        self.context.config.bypasses = bypasses;
        self.pacer.set_bypasses(bypasses);
        self.sessions.set_common(bypasses.common);
        for session in self.sessions.indexes() {
            let line = self.sessions.at_mut(session);
            self.pacer.on_rate(line, &self.context);
        }
    }

    /// Handles a CR, which reports how much of a request has arrived.
    #[inline(never)]
    pub(crate) fn on_credit_return(&mut self, session: SessionIdx, header: &Header, bytes: &[u8]) {
        let line = self.sessions.at_mut(session);
        let (pacer, context) = (&mut self.pacer, &mut self.context);
        if let Some(idx) = self.calls.on_credit_return(header, line, pacer, context) {
            let bits = bitmap_of(header, bytes);
            let (transfers, mut lent) = self.transfers();
            transfers.on_arrivals(&mut lent, session, idx, header, bits);
        }
    }

    /// Cancels a call; its completion follows.
    ///
    /// # Errors
    /// If it has already completed, or belongs to another endpoint.
    pub(crate) fn cancel(&mut self, id: CallId) -> Result<(), HandleError> {
        self.sessions.check(id.session())?;
        let idx = self.calls.find(id).ok_or(HandleError::Ended)?;
        self.abort(idx, RpcError::Cancelled(Ran::Unknown));
        Ok(())
    }

    /// Completes a call before the server has answered (rule S6).
    fn abort(&mut self, idx: CallIdx, error: RpcError) {
        let session = self.calls.session_of(idx);
        self.end_transfer(session, idx);
        let line = self.sessions.at_mut(session);
        self.calls.abort(idx, error, line, &mut self.context);
    }

    /// Ends every call of a session that closes: first the calls in slots, slot by slot, then the
    /// backlog in the order in which its calls were issued.
    pub(crate) fn end_calls(&mut self, session: SessionIdx, reason: CloseReason) {
        let error = match reason {
            CloseReason::PeerFailed => RpcError::PeerFailed(Ran::Unknown),
            other => RpcError::SessionClosed(other, Ran::Unknown),
        };
        for at in self.sessions.at(session).slots().iter() {
            if let Some(idx) = self.calls.call_at(at) {
                self.end_transfer(session, idx);
                let line = self.sessions.at(session);
                let context = &mut self.context;
                self.calls.end_with_session(idx, error, line, context);
            }
        }
        self.calls.close_slots(self.sessions.at(session).slots());
        while let Some(idx) = self.calls.first_waiting(session) {
            let line = self.sessions.at_mut(session);
            self.calls.unlink(idx, line);
            let context = &mut self.context;
            self.calls.end_with_session(idx, error, line, context);
        }
    }

    /// Does the work that is due for one entry of the table of calls; returns when a scan must
    /// visit it again.
    pub(crate) fn check_call(&mut self, idx: CallIdx, blame: bool) -> Nanos {
        let now = self.context.moment.now();
        let (sessions, context) = (&mut self.sessions, &mut self.context);
        match self.calls.find_due(idx, blame, sessions, context) {
            Overdue::Not(due) => due,
            Overdue::Deadline => {
                self.abort(idx, RpcError::DeadlinePassed(Ran::Unknown));
                now
            }
            Overdue::InParts(deadline) => match self.inquirer().look_at_progress(idx) {
                Progress::LookAt(due) => deadline.min(due),
                Progress::Failed(session) => {
                    self.close(session, CloseReason::PeerFailed, true);
                    Nanos::MAX
                }
            },
            Overdue::Account => {
                let session = sessions.handle(self.calls.session_of(idx));
                if self.inquirer().on_overdue(session) {
                    self.close(session, CloseReason::PeerFailed, true);
                    return Nanos::MAX;
                }
                self.ask_again(idx)
            }
            Overdue::Answer => self.ask_again(idx),
        }
    }

    /// Sends a packet that asks for the call's answer; the next scan visits the call again.
    fn ask_again(&mut self, idx: CallIdx) -> Nanos {
        let line = self.sessions.at_mut(self.calls.session_of(idx));
        let (pacer, context) = (&mut self.pacer, &mut self.context);
        self.calls.ask_again(idx, line, pacer, context);
        context.moment.now()
    }
}
