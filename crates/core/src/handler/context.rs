//! [`Cx`], through which handlers and continuations act. It borrows the protocol, with its queue
//! towards the transport, directly, so a refused call returns its msgbufs immediately.
//!
//! Services use no other outside resources (no clock, no randomness, no threads of their own), so
//! the simulator can run them.

use std::sync::Arc;

use dunlin_msgbuf::{AllocError, MsgBuf};
use dunlin_wire::{ErrorCode, ReqType};

use crate::call::{CallOptions, Tag};
use crate::context::peers::Peer;
use crate::error::{CallError, CloseReason, HandleError};
use crate::handle::{CallId, RequestId, RequestIdx, Session, Ticket, TimerToken};
use crate::handler::refusal::of_handler;
use crate::handler::request::{DeferredRequest, DroppedList};
use crate::protocol::Core;
use crate::rng::Rng;
use crate::session::lifecycle::SessionInfo;
use crate::time::Nanos;

/// The part of an endpoint that handlers may use.
#[derive(Debug)]
pub struct Cx<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) dropped: &'a Arc<DroppedList>,
}

impl Cx<'_> {
    /// The time of this iteration of the event loop.
    #[inline]
    pub fn now(&self) -> Nanos {
        self.core.context.moment.now()
    }

    /// The endpoint's random numbers. They are not for secrets.
    pub fn rng(&mut self) -> &mut Rng {
        &mut self.core.context.rng
    }

    /// Calls the endpoint's timer function with `token` at `at` or soon after.
    pub fn timer(&mut self, at: Nanos, token: TimerToken) {
        self.core.context.agenda.set_timer(at, token);
    }

    /// A msgbuf of `len` bytes, whose content is arbitrary.
    ///
    /// # Errors
    /// If the pool's memory is used up.
    #[inline]
    pub fn buf(&mut self, len: usize) -> Result<MsgBuf, AllocError> {
        self.core.context.pool.alloc(len)
    }

    /// A msgbuf with a copy of `bytes`.
    ///
    /// # Errors
    /// If the pool's memory is used up.
    #[inline]
    pub fn copy(&mut self, bytes: &[u8]) -> Result<MsgBuf, AllocError> {
        let mut buf = self.core.context.pool.alloc(bytes.len())?;
        buf.data_mut().copy_from_slice(bytes);
        Ok(buf)
    }

    /// Gives msgbufs back to the pool, faster than dropping them.
    #[inline]
    pub fn recycle(&mut self, bufs: impl IntoIterator<Item = MsgBuf>) {
        for buf in bufs {
            self.core.context.pool.recycle(buf);
        }
    }

    /// Starts to load the state of a session that a call will soon use. This pays off with
    /// thousands of sessions: a call on a session that is not in the cache takes some hundred
    /// nanoseconds longer. Prefetch one or a few calls ahead. A session that has ended or belongs
    /// to another endpoint does no harm (HERD §4.1.1, G-Opt §3).
    #[inline]
    pub fn prefetch(&self, session: Session) {
        self.core.prefetch_session(session.index(), false);
    }

    /// Issues a request. `response` must have room for the response. Both msgbufs come back with
    /// the completion.
    ///
    /// # Errors
    /// If the session is gone or belongs to another endpoint, its backlog is full, or the request
    /// is too large. The error contains the msgbufs.
    #[inline(always)]
    pub fn call(
        &mut self,
        session: Session,
        req_type: ReqType,
        request: MsgBuf,
        response: MsgBuf,
        tag: Tag,
    ) -> Result<CallId, CallError> {
        self.core.call(
            session,
            req_type,
            request,
            response,
            tag,
            CallOptions::default(),
        )
    }

    /// Issues a request with options; see [`Self::call`].
    ///
    /// # Errors
    /// As for [`Self::call`].
    #[inline(always)]
    pub fn call_with(
        &mut self,
        session: Session,
        req_type: ReqType,
        request: MsgBuf,
        response: MsgBuf,
        tag: Tag,
        options: CallOptions,
    ) -> Result<CallId, CallError> {
        self.core
            .call(session, req_type, request, response, tag, options)
    }

    /// Cancels a call. Its completion, with `Cancelled`, does not wait for the server.
    ///
    /// # Errors
    /// If the call has completed, or belongs to another endpoint.
    pub fn cancel(&mut self, call: CallId) -> Result<(), HandleError> {
        self.core.cancel(call)
    }

    /// Whether a call that was cancelled, or whose deadline has passed, still has its slot, because
    /// the server has not answered (rule S6). Always false after the session's end, and for a call
    /// of another endpoint.
    pub fn is_unanswered(&self, call: CallId) -> bool {
        self.core.sessions.is_home(call.session()) && self.core.calls.is_unanswered(call)
    }

    /// Sets the longest time after which this endpoint asks again for a late answer, in place of
    /// [`Config::probe_max`](crate::Config::probe_max) or an earlier value; returns the old value.
    /// Calls that are under way follow it too. A client whose server shuts down asks more often,
    /// because the server waits for its last answer to arrive.
    pub fn ask_within(&mut self, span: Nanos) -> Nanos {
        let now = self.core.context.moment.now();
        self.core.context.agenda.hasten_scan(now);
        std::mem::replace(&mut self.core.context.config.probe_max, span)
    }

    /// Ends a session. Its calls complete with an error, and its peer learns that the session has
    /// ended.
    ///
    /// # Errors
    /// If the session has already ended, or belongs to another endpoint.
    pub fn disconnect(&mut self, session: Session) -> Result<(), HandleError> {
        self.core.sessions.check(session)?;
        self.core.close(session, CloseReason::Disconnected, true);
        Ok(())
    }

    /// The state of a session.
    ///
    /// # Errors
    /// If the session has ended, or belongs to another endpoint.
    pub fn session_info(&self, session: Session) -> Result<SessionInfo, HandleError> {
        self.core.session_info(session)
    }

    /// The other end of a session, if the session is open and the control plane has named it.
    pub fn peer(&self, session: Session) -> Option<Peer> {
        let line = self.core.sessions.find_line(session)?;
        let open = line.is_open().then(|| line.terms().peer)?;
        self.core.context.peers.find(open)
    }

    /// Answers a kept request with `len` bytes, which `write` fills; see
    /// [`Request::reply`](crate::Request::reply). If `write` panics, the request stays unanswered.
    ///
    /// # Errors
    /// If the request was already answered, or belongs to another endpoint; then `write` does not
    /// run. It is no error if the client has cancelled the request, or its session has closed.
    #[inline(always)]
    pub fn reply(
        &mut self,
        ticket: Ticket,
        len: usize,
        write: impl FnOnce(&mut [u8]),
    ) -> Result<(), HandleError> {
        let id = self.core.sessions.request_of(ticket)?;
        let Core {
            requests, context, ..
        } = &mut *self.core;
        if let Err(write) = requests.reply_named(id, len, write, context) {
            let inbound = requests.find(id).ok_or(HandleError::Ended)?;
            self.core.server().reply_otherwise(inbound, len, write);
        }
        Ok(())
    }

    /// Answers a kept request with an error code; see [`Request::reject`](crate::Request::reject).
    ///
    /// # Errors
    /// As for [`Self::reply`].
    pub fn reject(&mut self, ticket: Ticket, code: ErrorCode) -> Result<(), HandleError> {
        let inbound = self.kept(ticket)?;
        self.core.server().reject(inbound, of_handler(code));
        Ok(())
    }

    /// Abandons a kept request: the client gets an error. If the client was still waiting, the
    /// request counts as unanswered.
    ///
    /// # Errors
    /// As for [`Self::reply`].
    pub fn abandon(&mut self, ticket: Ticket) -> Result<(), HandleError> {
        let inbound = self.kept(ticket)?;
        if !self.core.requests.is_unwanted(inbound) {
            self.core.context.stats.on_unanswered();
        }
        self.core
            .server()
            .reject(inbound, ErrorCode::HANDLER_FAILED);
        Ok(())
    }

    /// Whether an answer to a kept request would be lost, because its client has cancelled it, its
    /// session has closed, or it was answered.
    ///
    /// # Errors
    /// If the ticket belongs to another endpoint.
    pub fn is_cancelled(&self, ticket: Ticket) -> Result<bool, HandleError> {
        match self.kept(ticket) {
            Ok(inbound) => Ok(self.core.requests.is_unwanted(inbound)),
            Err(HandleError::Ended) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// The ticket of a request.
    #[inline]
    pub(crate) fn ticket(&self, id: RequestId) -> Ticket {
        self.core.sessions.ticket(id)
    }

    /// The unanswered request that a ticket names.
    #[inline]
    pub(crate) fn kept(&self, ticket: Ticket) -> Result<RequestIdx, HandleError> {
        let id = self.core.sessions.request_of(ticket)?;
        self.core.requests.find(id).ok_or(HandleError::Ended)
    }

    /// Keeps a request if it came to this endpoint on `session`. Otherwise, the returned handle
    /// names no request.
    pub(crate) fn defer(&mut self, inbound: RequestIdx, session: Session) -> DeferredRequest {
        let home = self.core.sessions.is_home(session);
        // The loop looks for dropped handles only if there are handles.
        self.core.context.agenda.call_attention();
        DeferredRequest {
            id: match home {
                true => self.core.server().detach(inbound),
                false => RequestId::NONE,
            },
            session,
            dropped: home.then(|| Arc::clone(self.dropped)),
        }
    }
}
