//! A request as its handler sees it: borrowed from the RX frame, answered once, or kept.
//!
//! The types enforce the rules. A [`Request`] cannot outlive its handler, and answering consumes
//! it. A [`DeferredRequest`] can be kept, is not `Clone`, and answers with an error when it is
//! dropped.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::Waker;

use dunlin_wire::{ErrorCode, ReqType};

use crate::handle::{RequestId, RequestIdx, Session, Ticket};
use crate::handler::context::Cx;
use crate::handler::refusal::of_handler;

/// A request whose data lies in the RX frame (zero copy, eRPC §4.2.3).
///
/// If a handler returns without answering the request or keeping it, the client gets
/// [`ErrorCode::HANDLER_FAILED`].
#[derive(Debug)]
pub struct Request<'a> {
    pub(crate) data: &'a [u8],
    pub(crate) inbound: RequestIdx,
    pub(crate) req_type: ReqType,
    pub(crate) session: Session,
}

impl<'a> Request<'a> {
    /// The request's bytes, without any alignment.
    #[inline]
    pub fn data(&self) -> &'a [u8] {
        self.data
    }

    /// The type that the client gave.
    #[inline]
    pub fn req_type(&self) -> ReqType {
        self.req_type
    }

    /// The session of the request. The handler may call the client on it.
    #[inline]
    pub fn session(&self) -> Session {
        self.session
    }

    /// Answers with `len` bytes, which `write` fills. The buffer holds old bytes at first.
    ///
    /// If `len` is more than the session's largest message, the client gets an error
    /// ([`ErrorCode::RESPONSE_TOO_LARGE`]), and `write` does not run. Nor does `write` run if the
    /// client has cancelled the request. `cx` must belong to the endpoint that received the
    /// request. With the `cx` of another endpoint, nothing happens at that endpoint, and the client
    /// gets an error. All of this applies to the other methods too.
    #[inline]
    pub fn reply(self, cx: &mut Cx<'_>, len: usize, write: impl FnOnce(&mut [u8])) {
        self.reply_unanswered(cx, len, write);
    }

    /// Like [`Self::reply`], for a request that may already have been answered. The first answer
    /// stays, and `write` then does not run.
    #[inline(always)]
    pub fn reply_unanswered(&self, cx: &mut Cx<'_>, len: usize, write: impl FnOnce(&mut [u8])) {
        let core = &mut *cx.core;
        // The common path does not compare endpoints, yet it never answers a request of another
        // endpoint. If a handler of another endpoint calls this, the endpoint of `cx` is between
        // two iterations, and has no request that `reply_plain` could answer: requests that wait
        // for slow handlers carry a mark. docs/decisions/handles.md has the exception.
        let plain = core
            .requests
            .reply_plain(self.inbound, len, write, &mut core.context);
        if let Err(write) = plain
            && core.sessions.is_home(self.session)
        {
            core.server().reply_otherwise(self.inbound, len, write);
        }
    }

    /// Answers with a copy of `bytes`.
    #[inline]
    pub fn reply_bytes(self, cx: &mut Cx<'_>, bytes: &[u8]) {
        self.reply(cx, bytes.len(), |out| out.copy_from_slice(bytes));
    }

    /// Answers with the request's own bytes. If the request came in several packets, nothing is
    /// copied: its msgbuf becomes the response when the handler returns.
    pub fn echo(self, cx: &mut Cx<'_>) {
        let core = &mut *cx.core;
        let is_home = core.sessions.is_home(self.session);
        if !(is_home && core.requests.echo_apart(self.inbound)) {
            let data = self.data;
            self.reply_bytes(cx, data);
        }
    }

    /// Answers with an error code. The client gets codes of the application
    /// ([`ErrorCode::application`]) unchanged, [`ErrorCode::OVERLOADED`] as [`ErrorCode::REFUSED`],
    /// and other codes of the protocol as [`ErrorCode::HANDLER_FAILED`], because they would prove
    /// that no handler ran.
    pub fn reject(self, cx: &mut Cx<'_>, code: ErrorCode) {
        if cx.core.sessions.is_home(self.session) {
            cx.core.server().reject(self.inbound, of_handler(code));
        }
    }

    /// A handle of the request. Use it to answer ([`Cx::reply`]), or [keep] the request if you do
    /// not answer now.
    ///
    /// [keep]: Self::keep
    #[inline]
    pub fn ticket(&self, cx: &Cx<'_>) -> Ticket {
        let home = cx.core.sessions.is_home(self.session);
        let id = match home {
            true => cx.core.requests.id(self.inbound),
            false => RequestId::NONE,
        };
        cx.ticket(id)
    }

    /// Like [`Self::defer`], without a guard; see [`Ticket`]. Only this endpoint accepts the
    /// ticket. If the request was already answered by its ticket, nothing happens.
    #[inline]
    pub fn keep(self, cx: &mut Cx<'_>) -> Ticket {
        let home = cx.core.sessions.is_home(self.session);
        let id = match home {
            true => cx.core.server().detach(self.inbound),
            false => RequestId::NONE,
        };
        cx.ticket(id)
    }

    /// Like [`Self::keep`], for a request that may already have been answered by its ticket. `None`
    /// if it was, or if it belongs to another endpoint.
    #[inline]
    pub fn keep_unanswered(&self, cx: &mut Cx<'_>) -> Option<Ticket> {
        let (core, inbound) = (&mut *cx.core, self.inbound);
        if !core.requests.is_dispatched(inbound) || !core.sessions.is_home(self.session) {
            return None;
        }
        let id = core.server().detach(inbound);
        Some(cx.ticket(id))
    }

    /// Keeps the request to be answered later, for example when nested calls have completed. Copy
    /// its data first if you need it (`cx.copy(req.data())`).
    pub fn defer(self, cx: &mut Cx<'_>) -> DeferredRequest {
        cx.defer(self.inbound, self.session)
    }
}

/// A request that outlives its handler.
#[derive(Debug)]
#[must_use = "dropping it answers the client with an error"]
pub struct DeferredRequest {
    pub(crate) id: RequestId,
    pub(crate) session: Session,
    /// The list to which a drop without an answer adds the request; `None` after the answer.
    pub(crate) dropped: Option<Arc<DroppedList>>,
}

impl DeferredRequest {
    /// Answers with `len` bytes, which `write` fills; see [`Request::reply`].
    ///
    /// If the session has closed meanwhile, nothing is sent. `cx` must belong to the endpoint that
    /// received the request; with the `cx` of another endpoint, the client gets an error.
    pub fn reply(mut self, cx: &mut Cx<'_>, len: usize, write: impl FnOnce(&mut [u8])) {
        if let Some(idx) = self.find(cx) {
            cx.core.server().reply_otherwise(idx, len, write);
            // This comes after `write`: if `write` panics, dropping the handle answers the request.
            self.dropped = None;
        }
    }

    /// Answers with a copy of `bytes`.
    pub fn reply_bytes(self, cx: &mut Cx<'_>, bytes: &[u8]) {
        self.reply(cx, bytes.len(), |out| out.copy_from_slice(bytes));
    }

    /// Answers with an error code; see [`Request::reject`].
    pub fn reject(mut self, cx: &mut Cx<'_>, code: ErrorCode) {
        if let Some(idx) = self.find(cx) {
            cx.core.server().reject(idx, of_handler(code));
            self.dropped = None;
        }
    }

    /// The request that waits for this answer. `None` with another endpoint's `cx`: then dropping
    /// the handle answers the request, at the right endpoint.
    fn find(&self, cx: &Cx<'_>) -> Option<RequestIdx> {
        let home = self
            .dropped
            .as_ref()
            .is_some_and(|list| Arc::ptr_eq(list, cx.dropped));
        if home {
            cx.core.requests.find(self.id)
        } else {
            None
        }
    }

    /// Whether an answer would be lost, because the client has cancelled the request or its session
    /// has closed.
    pub fn is_cancelled(&self, cx: &Cx<'_>) -> bool {
        match self.find(cx) {
            Some(idx) => cx.core.requests.is_unwanted(idx),
            None => true,
        }
    }

    /// The session on which the request came.
    pub fn session(&self) -> Session {
        self.session
    }
}

impl Drop for DeferredRequest {
    fn drop(&mut self) {
        if let Some(dropped) = self.dropped.take() {
            dropped.push(self.id);
        }
    }
}

/// Deferred requests that threads have dropped without an answer.
#[derive(Debug, Default)]
pub(crate) struct DroppedList {
    any: AtomicBool,
    list: Mutex<Vec<RequestId>>,
    /// Wakes the endpoint's thread, which may sleep. Endpoints in the simulator have no waker.
    waker: OnceLock<Waker>,
}

impl DroppedList {
    fn push(&self, id: RequestId) {
        self.list
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(id);
        self.any.store(true, Ordering::Release);
        // This comes last, because the thread that it wakes looks at `any`.
        if let Some(waker) = self.waker.get() {
            waker.wake_by_ref();
        }
    }

    /// Sets the waker that each later [`Self::push`] uses. Only the first call has an effect.
    pub(crate) fn set_waker(&self, waker: Waker) {
        let _ = self.waker.set(waker);
    }

    /// True if [`Self::pop`] would find something.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    pub(crate) fn pop(&self) -> Option<RequestId> {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let id = list.pop();
        if list.is_empty() {
            self.any.store(false, Ordering::Release);
        }
        id
    }
}
