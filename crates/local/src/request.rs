//! The request that an asynchronous handler gets. It owns a copy of the bytes that the client sent,
//! so the handler may keep it.

use std::hint::cold_path;
use std::rc::Rc;

use dunlin_core::{Cx, Nanos, Refuse, Request, Session, Ticket};
use dunlin_msgbuf::{AllocError, MsgBuf};
use dunlin_service::Error;
use dunlin_service::spans::RequestSpan;
use dunlin_wire::{ErrorCode, ReqType};

use crate::state::State;

const HERE: &str = "only functions that consume a request take its parts";

/// A request that its handler owns. It is answered once; if it is dropped without an answer, the
/// client gets [`ErrorCode::HANDLER_FAILED`].
///
/// This struct is one word: a request moves into its handler's future, and moving several words
/// that were just written stalls the processor.
#[must_use = "dropping it answers the client with an error"]
pub struct OwnedRequest(Option<Box<Parts>>);

/// A msgbuf of up to this capacity stays with the memory of its request, so that most requests are
/// copied without asking the pool.
const KEPT: usize = 4096;

/// A request. When it is over, `State` keeps its memory for another one.
pub(super) struct Parts {
    state: Option<Rc<State>>,
    /// The request's bytes. After the request is over: a msgbuf for the next one, or `None`.
    body: Option<MsgBuf>,
    session: Session,
    req_type: ReqType,
    /// By this number, `State` knows the request's ticket.
    number: u32,
    span: RequestSpan,
}

impl Parts {
    /// The request with a copy of its bytes. `None` if there is no memory.
    ///
    /// Most requests get the memory of the request before; another function does the rest.
    #[inline(always)]
    pub(super) fn of(
        state: &Rc<State>,
        request: &Request<'_>,
        cx: &mut Cx<'_>,
    ) -> Option<Box<Self>> {
        let Some(mut parts) = state.last_request.take() else {
            return Self::anew(state, request, cx);
        };
        if parts.begin(state, request, cx).is_err() {
            cold_path();
            state.last_request.set(Some(parts));
            return None;
        }
        Some(parts)
    }

    /// Like [`Self::of`], in other memory.
    #[cold]
    #[inline(never)]
    fn anew(state: &Rc<State>, request: &Request<'_>, cx: &mut Cx<'_>) -> Option<Box<Self>> {
        let mut parts = match state.used_request() {
            Some(parts) => parts,
            None => Self::allocate(state, request, cx),
        };
        if parts.begin(state, request, cx).is_err() {
            // The memory has a number, so it is not freed.
            state.keep_request(parts);
            return None;
        }
        Some(parts)
    }

    fn allocate(state: &State, request: &Request<'_>, cx: &Cx<'_>) -> Box<Self> {
        Box::new(Self {
            state: None,
            body: None,
            session: request.session(),
            req_type: request.req_type(),
            number: state.tickets.add(request.ticket(cx)),
            span: RequestSpan::default(),
        })
    }

    /// Begins another request.
    ///
    /// # Errors
    /// If there is no memory for its bytes.
    #[inline(always)]
    fn begin(
        &mut self,
        state: &Rc<State>,
        request: &Request<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<(), AllocError> {
        let copied = self.body.as_mut().map(|body| body.fill(request.data()));
        if copied != Some(Ok(())) {
            self.copy(request.data(), cx)?;
        }
        self.session = request.session();
        self.req_type = request.req_type();
        state.tickets.begin(self.number);
        // There is no old value to drop.
        std::mem::forget(self.state.replace(Rc::clone(state)));
        Ok(())
    }

    /// Copies the bytes of a request into another msgbuf.
    #[inline(never)]
    fn copy(&mut self, bytes: &[u8], cx: &mut Cx<'_>) -> Result<(), AllocError> {
        cx.recycle(self.body.take());
        self.body = Some(cx.copy(bytes)?);
        Ok(())
    }

    /// Keeps the memory for another request.
    #[inline(always)]
    fn keep(mut self: Box<Self>) -> Option<Rc<State>> {
        let state = self.state.take()?;
        self.span = RequestSpan::default();
        if let Some(body) = &self.body
            && body.capacity() > KEPT
        {
            self.body = None;
        }
        state.keep_request(self);
        Some(state)
    }
}

impl OwnedRequest {
    /// A request that has arrived.
    #[inline]
    pub(super) const fn of(parts: Box<Parts>) -> Self {
        Self(Some(parts))
    }

    /// The state of this request's endpoint.
    #[inline]
    pub(super) fn shared_state(&self) -> Rc<State> {
        Rc::clone(self.parts().state.as_ref().expect(HERE))
    }

    /// Begins the span of a request of this method.
    #[inline]
    pub(super) fn begin_span(&mut self, method: &'static str) -> RequestSpan {
        let session = self.session();
        let peer = || self.state().with(|cx| cx.peer(session)).flatten();
        let span = RequestSpan::begin(method, self.req_type(), self.data(), peer);
        self.parts_mut().span = span.clone();
        span
    }

    /// The request's bytes.
    #[inline]
    pub fn data(&self) -> &[u8] {
        self.parts().body.as_ref().map_or(&[], MsgBuf::data)
    }

    /// The request type that the client gave.
    #[inline]
    pub fn req_type(&self) -> ReqType {
        self.parts().req_type
    }

    /// The session on which the request came. The handler may call back on it.
    #[inline]
    pub fn session(&self) -> Session {
        self.parts().session
    }

    /// Copies the request's bytes into a msgbuf, to pass them on.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn to_buf(&self) -> Result<MsgBuf, Error> {
        let copied = self.state().with(|cx| cx.copy(self.data()));
        Ok(copied.ok_or(Error::Unavailable)??)
    }

    /// Takes the msgbuf with the request's bytes, to pass it on without a copy. After that the
    /// request has no bytes.
    ///
    /// # Errors
    /// If it was taken before.
    pub fn take_buf(&mut self) -> Result<MsgBuf, Error> {
        self.parts_mut().body.take().ok_or(Error::Unavailable)
    }

    /// Whether the client has cancelled the request, or its session has closed. An answer would
    /// then be dropped.
    pub fn is_cancelled(&self) -> bool {
        let (state, number) = (self.state(), self.parts().number);
        let asked = state.with(|cx| cx.is_cancelled(state.ticket(number, cx)));
        asked != Some(Ok(false))
    }

    /// Answers with a copy of `bytes`.
    ///
    /// # Errors
    /// If the endpoint is gone. A client that has gone is not an error.
    #[inline]
    pub fn reply(self, bytes: impl AsRef<[u8]>) -> Result<(), Error> {
        let bytes = bytes.as_ref();
        self.reply_with(bytes.len(), |out| out.copy_from_slice(bytes))
    }

    /// Answers with `len` bytes, which `write` fills; `write` must not use the endpoint itself.
    ///
    /// # Errors
    /// If the endpoint is gone.
    // This is inlined like the reply of the poll API, with the code that writes the response.
    #[inline(always)]
    pub fn reply_with(self, len: usize, write: impl FnOnce(&mut [u8])) -> Result<(), Error> {
        let replied = match self.state().lent.is_there() {
            true => self.reply_lent::<true, _>(len, write),
            false => self.reply_outside(len, write),
        };
        match replied {
            true => Ok(()),
            false => Err(Error::Unavailable),
        }
    }

    /// Answers through the lent endpoint; returns false if none is lent. `WITHIN`, which is true
    /// while a future is polled, changes no behaviour. It only makes two copies of this code, so
    /// that the compiler inlines both.
    #[inline(always)]
    fn reply_lent<const WITHIN: bool, W>(self, len: usize, write: W) -> bool
    where
        W: FnOnce(&mut [u8]),
    {
        let (parts, state) = (self.parts(), self.state());
        let number = parts.number;
        let replied = state.lent.with(|cx| {
            if !state.tickets.is_first(number) {
                // The client may have gone. If `write` panics, dropping this request answers it.
                let _ = cx.reply(state.tickets.get(number), len, write);
                return;
            }
            let reply = |request: &Request<'_>| request.reply_unanswered(cx, len, write);
            state.lent.arrived(reply);
            state.tickets.end_first();
        });
        if replied.is_none() {
            return false;
        }
        parts.span.on_response();
        self.end();
        true
    }

    /// Answers while no future is polled. Returns false if the endpoint is gone or in use.
    #[cold]
    #[inline(never)]
    fn reply_outside(self, len: usize, write: impl FnOnce(&mut [u8])) -> bool {
        let state = Rc::clone(self.parts().state.as_ref().expect(HERE));
        let (mut this, mut replied) = (Some((self, write)), false);
        state.lend_port(&mut || {
            if let Some((this, write)) = this.take() {
                replied = this.reply_lent::<false, _>(len, write);
            }
        });
        replied
    }

    /// Answers with the bytes of a msgbuf, such as the one that [`Self::take_buf`] returned, and
    /// gives the msgbuf back to the pool.
    ///
    /// # Errors
    /// If the endpoint is gone.
    pub fn reply_from(self, buf: MsgBuf) -> Result<(), Error> {
        let replied = self.reply(buf.data());
        crate::lent::recycle([Some(buf), None]);
        replied
    }

    /// Answers with an error code. Codes of the application ([`ErrorCode::application`]) reach the
    /// client as they are, [`ErrorCode::OVERLOADED`] as [`ErrorCode::REFUSED`], and other codes of
    /// the protocol as [`ErrorCode::HANDLER_FAILED`].
    ///
    /// # Errors
    /// If the endpoint is gone.
    pub fn reject(self, code: ErrorCode) -> Result<(), Error> {
        self.parts().span.on_reject(code);
        self.end_by(|cx, ticket| {
            let _ = cx.reject(ticket, code);
        })
    }
}

impl OwnedRequest {
    /// The time now, on the endpoint's clock.
    pub(crate) fn now(&self) -> Nanos {
        self.state().with(|cx| cx.now()).unwrap_or(Nanos::MAX)
    }

    /// Takes the request out of here; `None` if it was taken before.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Self> {
        self.0.take().map(|parts| Self(Some(parts)))
    }

    /// Answers with `code` as it is, because no handler has run.
    pub(crate) fn refuse(self, code: ErrorCode) -> Result<(), Error> {
        self.parts().span.on_refuse(code);
        self.end_by(|cx, ticket| ticket.refuse(cx, code))
    }

    /// Ends the request without a response.
    fn end_by(self, end: impl FnOnce(&mut Cx<'_>, Ticket)) -> Result<(), Error> {
        let (state, number) = (self.state(), self.parts().number);
        let ended = state.with(|cx| {
            let ticket = state.ticket(number, cx);
            end(cx, ticket);
        });
        if ended.is_none() {
            // If the endpoint is in use, dropping this request answers it later.
            return Err(Error::Unavailable);
        }
        self.end();
        Ok(())
    }

    #[inline]
    fn parts(&self) -> &Parts {
        self.0.as_deref().expect(HERE)
    }

    #[inline]
    fn parts_mut(&mut self) -> &mut Parts {
        self.0.as_deref_mut().expect(HERE)
    }

    #[inline]
    fn state(&self) -> &State {
        self.parts().state.as_deref().expect(HERE)
    }

    /// Ends a request that is answered.
    #[inline(always)]
    fn end(mut self) {
        if let Some(parts) = self.0.take() {
            parts.keep();
        }
        // The request's parts have been taken, so nothing leaks; dropping would only cost time.
        std::mem::forget(self);
    }

    /// Answers with an error, if there was no answer yet.
    #[cold]
    #[inline(never)]
    fn abandon(mut parts: Box<Parts>) {
        let (number, span) = (parts.number, std::mem::take(&mut parts.span));
        let Some(state) = parts.keep() else { return };
        let done = state.with(|cx| {
            let ticket = state.ticket(number, cx);
            state.end_dropped(ticket, &span, cx);
        });
        if done.is_none() {
            // The endpoint is in use; the request is given back afterwards.
            state.abandon(number);
        }
    }
}

impl Drop for OwnedRequest {
    #[inline]
    fn drop(&mut self) {
        if let Some(parts) = self.0.take() {
            Self::abandon(parts);
        }
    }
}

impl std::fmt::Debug for OwnedRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnedRequest")
            .field("req_type", &self.req_type())
            .field("session", &self.session())
            .field("bytes", &self.data().len())
            .finish_non_exhaustive()
    }
}
