//! A call as a future. The first poll issues it, it ends in exactly one way, and dropping it
//! cancels it.

use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use dunlin_core::{CallId, CallOptions, Nanos, Session, Tag};
use dunlin_msgbuf::MsgBuf;
use dunlin_wire::{Ran, ReqType};

use dunlin_service::Error;

use crate::calls::{Calls, Look, NO_TASK};
use crate::failed::Failed;
use crate::lent;
use crate::state::State;

const ENDED: &str = "a call that has ended has its msgbufs";
const OVER: &str = "a call was polled after it had ended";

/// Room for a response, in bytes, unless the caller sets another.
const ROOM: u32 = 4096;

/// A call, issued by its first poll. Awaiting it gives the response or an error, and in both cases
/// the msgbufs. Dropping it cancels the call.
///
/// This struct is six words: a call moves into the future that awaits it. Two of the words have
/// another meaning before the call is issued than afterwards.
#[must_use = "a call that is not awaited is not made"]
pub struct Call {
    /// `None` once the call is over. Only [`Self::end_early`] drops it and the msgbufs, so that
    /// dropping a call that is over costs nothing.
    state: ManuallyDrop<Option<Rc<State>>>,
    /// Present until the call is issued.
    request: ManuallyDrop<Option<MsgBuf>>,
    /// If it is `None` when the call is issued, the pool provides one.
    response: ManuallyDrop<Option<MsgBuf>>,
    session: Session,
    /// First the terms of the call: the request's type in the lower half, and the bytes for the
    /// response in the upper one. Once the call is issued: its entry ([`CallId::entry`]).
    entry: u64,
    /// First the time from issue to deadline in nanoseconds, or [`Nanos::MAX`] for no deadline.
    /// Once the call is issued: its tag.
    tag: u64,
}

const _: () = assert!(size_of::<Call>() == 48);

/// A response, with both msgbufs of its call. They go back to the pool when this is dropped.
///
/// This struct has two words: the compiler keeps them in registers, and moves anything longer
/// through memory with wide loads, which stall just after narrower stores.
#[repr(C)]
pub struct Reply {
    /// Both are present until they are taken out together.
    request: Option<MsgBuf>,
    response: Option<MsgBuf>,
}

impl Call {
    #[inline]
    pub(super) fn new(
        state: Rc<State>,
        session: Session,
        req_type: ReqType,
        request: MsgBuf,
    ) -> Self {
        Self {
            state: ManuallyDrop::new(Some(state)),
            request: ManuallyDrop::new(Some(request)),
            response: ManuallyDrop::new(None),
            session,
            entry: terms(req_type, ROOM),
            tag: Nanos::MAX.0,
        }
    }

    /// Ends the call with [`RpcError::DeadlinePassed`](dunlin_core::RpcError) if no response has
    /// come this long after it was issued.
    #[inline]
    pub fn deadline(self, span: Duration) -> Self {
        self.until(span.into())
    }

    /// Sets all options.
    #[inline]
    pub fn options(self, options: CallOptions) -> Self {
        let CallOptions { deadline } = options;
        self.until(deadline.unwrap_or(Nanos::MAX))
    }

    /// Makes room for a response of this length; without this, it is 4096 bytes.
    #[inline]
    pub fn room(mut self, bytes: usize) -> Self {
        // No msgbuf is that long.
        let room = u32::try_from(bytes).unwrap_or(u32::MAX);
        if !self.is_issued() {
            self.entry = terms(terms_of(self.entry).0, room);
        }
        self
    }

    #[inline]
    fn until(mut self, deadline: Nanos) -> Self {
        if !self.is_issued() {
            self.tag = deadline.0;
        }
        self
    }

    /// A call that is issued has its terms no longer, and changing them has no effect.
    #[inline]
    fn is_issued(&self) -> bool {
        self.request.is_none()
    }

    /// Uses this msgbuf for the response, instead of one from the pool.
    #[inline]
    pub fn response(mut self, buf: MsgBuf) -> Self {
        if !self.is_issued() {
            drop(self.response.replace(buf));
        }
        self
    }

    /// Issues the call without waiting for its result.
    pub(super) fn notify(mut self) -> Result<(), Failed> {
        let calls = &self.state.as_deref().expect(OVER).calls;
        if !self.issue(calls.tag(NO_TASK)) {
            return Err(self.failed());
        }
        drop(self.state.take());
        Ok(())
    }

    /// Issues the call for the future that is polled with `context`. Returns false if the endpoint
    /// refuses the call; [`Self::failed`] then has the reason.
    #[inline]
    fn begin(&mut self, context: &Context<'_>) -> bool {
        let state = self.state.as_deref().expect(OVER);
        match Calls::nameable(&state.current, context) {
            Some(task) => self.issue(state.calls.tag(task)),
            None => self.issue_elsewhere(context),
        }
    }

    /// Issues the call for a future that no tag can name.
    #[cold]
    #[inline(never)]
    fn issue_elsewhere(&mut self, context: &Context<'_>) -> bool {
        let state = self.state.as_deref().expect(OVER);
        let tag = state.calls.tag_elsewhere(&state.current, context);
        let issued = self.issue(tag);
        if !issued && let Some(state) = self.state.as_deref() {
            state.calls.forget(tag);
        }
        issued
    }

    /// Issues the call with this tag.
    #[inline(always)]
    fn issue(&mut self, tag: Tag) -> bool {
        let state = self.state.as_deref().expect(OVER);
        match state.lent.is_there() {
            true => self.issue_lent::<true>(tag),
            false => self.issue_outside(tag),
        }
    }

    /// Issues the call at the endpoint that is lent. Inlined, like a call of the poll API: a shared
    /// function would take 26 instructions more. `WITHIN`, which is true while a future is polled,
    /// changes no behaviour. It only makes two copies of this code, so that the compiler inlines
    /// both.
    #[inline(always)]
    fn issue_lent<const WITHIN: bool>(&mut self, tag: Tag) -> bool {
        let state = self.state.as_deref().expect(OVER);
        // The terms are read together, before the first write to the state: after each, the
        // compiler would have to assume that they have changed.
        let request = self.request.take().expect("a new call has its request");
        let (response, session) = (self.response.take(), self.session);
        let (terms, deadline) = (self.entry, Nanos(self.tag));
        let issued = state.lent.with(|cx| {
            let (req_type, room) = terms_of(terms);
            let response = match response {
                Some(response) => response,
                None => match cx.buf(room as usize) {
                    Ok(response) => response,
                    Err(error) => return state.calls.fail(request, None, error.into()),
                },
            };
            let options = CallOptions {
                deadline: (deadline != Nanos::MAX).then_some(deadline),
            };
            match cx.call_with(session, req_type, request, response, tag, options) {
                Ok(id) => {
                    (self.entry, self.tag) = (id.entry(), tag.0);
                    state.calls.begin();
                    true
                }
                Err(refused) => {
                    let error = Error::Refused(refused.kind);
                    state
                        .calls
                        .fail(refused.request, Some(refused.response), error)
                }
            }
        });
        issued == Some(true)
    }

    /// Issues the call while no future is polled by the endpoint.
    #[cold]
    #[inline(never)]
    fn issue_outside(&mut self, tag: Tag) -> bool {
        let state = Rc::clone(self.state.as_ref().expect(OVER));
        let mut issued = false;
        if !state.lend_port(&mut || issued = self.issue_lent::<false>(tag)) {
            let request = self.request.take().expect("a new call has its request");
            let (response, error) = (self.response.take(), Error::gone(Ran::No));
            state.calls.fail(request, response, error);
        }
        issued
    }

    /// The failure of the call. Inlined: if another function wrote the result, even a response
    /// would have to pass through memory.
    #[inline(always)]
    fn failed(&mut self) -> Failed {
        let state = self.state.take().expect(OVER);
        state.calls.take_failed().expect("a failed call is kept")
    }

    /// Notes that the call is over. An assignment, unlike `take`, stores `None` last, so that the
    /// compiler knows it when the future that awaited the call drops it.
    #[inline(always)]
    fn release(&mut self) {
        *self.state = None;
    }

    /// Gives up a call whose future is dropped before the call has ended, or before the future has
    /// seen the end.
    #[cold]
    #[inline(never)]
    fn end_early(&mut self) {
        let bufs = [self.request.take(), self.response.take()];
        let Some(state) = self.state.take() else {
            return;
        };
        if let [Some(_), _] = bufs {
            return drop(bufs);
        }
        match state.calls.abandon(Tag(self.tag)) {
            // If the endpoint or the session is gone, so is the call, and there is nothing to
            // cancel.
            None => {
                let _ = state.with(|cx| cx.cancel(CallId::of(self.session, self.entry)));
            }
            Some((request, response)) => {
                state.with(|cx| cx.recycle([request, response]));
            }
        }
    }
}

/// The terms of a call, in one word.
#[inline]
const fn terms(req_type: ReqType, room: u32) -> u64 {
    (room as u64) << 32 | req_type.0 as u64
}

/// The request's type and the bytes for the response.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "each is a part of the word"
)]
const fn terms_of(terms: u64) -> (ReqType, u32) {
    (ReqType(terms as u16), (terms >> 32) as u32)
}

impl Future for Call {
    type Output = Result<Reply, Failed>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.request.is_some() {
            return match this.begin(context) {
                true => Poll::Pending,
                false => Poll::Ready(Err(this.failed())),
            };
        }
        let state = this.state.as_deref().expect(OVER);
        if let Some((request, response)) = state.calls.take(Tag(this.tag)) {
            this.release();
            return Poll::Ready(Ok(Reply::new(request, response)));
        }
        match state.calls.look(Tag(this.tag), &state.current, context) {
            Look::Waits => Poll::Pending,
            Look::Ended(request, response) => {
                this.release();
                Poll::Ready(Ok(Reply::new(request, response)))
            }
            Look::Failed => Poll::Ready(Err(this.failed())),
        }
    }
}

impl Drop for Call {
    #[inline]
    fn drop(&mut self) {
        if self.state.is_some() {
            self.end_early();
        }
    }
}

impl Reply {
    #[inline]
    const fn new(request: MsgBuf, response: MsgBuf) -> Self {
        Self {
            request: Some(request),
            response: Some(response),
        }
    }

    /// The response.
    #[inline]
    pub fn data(&self) -> &[u8] {
        self.response.as_ref().map_or(&[], MsgBuf::data)
    }

    /// The request and the response, to use them again.
    #[inline]
    pub fn into_bufs(mut self) -> (MsgBuf, MsgBuf) {
        let (request, response) = (self.request.take(), self.response.take());
        // Every field has been taken, so nothing leaks; dropping would only cost time.
        std::mem::forget(self);
        (request.expect(ENDED), response.expect(ENDED))
    }

    /// The response's msgbuf. The request's msgbuf returns to the pool.
    pub fn into_response(mut self) -> MsgBuf {
        self.response.take().expect(ENDED)
    }
}

impl AsRef<[u8]> for Reply {
    fn as_ref(&self) -> &[u8] {
        self.data()
    }
}

impl Drop for Reply {
    #[inline]
    fn drop(&mut self) {
        lent::recycle([self.request.take(), self.response.take()]);
    }
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reply")
            .field("bytes", &self.data().len())
            .finish_non_exhaustive()
    }
}
