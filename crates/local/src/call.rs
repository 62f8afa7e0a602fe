//! A call as a future. The first poll issues it, it ends in exactly one way, and dropping it
//! cancels it.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use dunlin_core::{CallOptions, Cx, Nanos, Session, Tag};
use dunlin_msgbuf::MsgBuf;
use dunlin_wire::ReqType;

use dunlin_service::Error;

use crate::calls::{Abandoned, Stage};
use crate::failed::Failed;
use crate::state::State;

const ENDED: &str = "a call that has ended has its msgbufs";
const OVER: &str = "a call was polled after it had ended";

/// Room for a response, in bytes, if the caller does not say otherwise.
const ROOM: usize = 4096;

/// The place of a [`Call`] before it is issued.
const NEW: u32 = u32::MAX;

/// A call, issued by its first poll. Awaiting it gives the response or an error, and in both cases
/// the msgbufs. Dropping it cancels the call.
#[must_use = "a call that is not awaited is not made"]
pub struct Call {
    /// `None` once the call is over.
    state: Option<Rc<State>>,
    session: Session,
    /// A [`ReqType`], kept in 32 bits because the compiler reads 32 bits of it: such a read stalls
    /// just after a narrower write.
    req_type: u32,
    /// Its place in `Calls` once it is issued, or [`NEW`].
    slot: u32,
    room: usize,
    /// The time from issue to deadline; [`Nanos::MAX`] is no deadline.
    deadline: Nanos,
    /// Present until the call is issued.
    request: Option<MsgBuf>,
    response: Option<MsgBuf>,
}

/// A response, with both msgbufs of its call. They go back to the pool when this is dropped.
#[repr(C)]
pub struct Reply {
    /// All fields are present until they are taken out together. As in `Calls`, the two msgbufs are
    /// not neighbours.
    request: Option<MsgBuf>,
    state: Option<Rc<State>>,
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
            state: Some(state),
            session,
            req_type: req_type.0.into(),
            slot: NEW,
            room: ROOM,
            deadline: Nanos::MAX,
            request: Some(request),
            response: None,
        }
    }

    /// Ends the call with [`RpcError::DeadlinePassed`](dunlin_core::RpcError) if no response has
    /// come this long after it was issued.
    #[inline]
    pub fn deadline(mut self, span: Duration) -> Self {
        self.deadline = span.into();
        self
    }

    /// Sets all options.
    #[inline]
    pub fn options(mut self, options: CallOptions) -> Self {
        let CallOptions { deadline } = options;
        self.deadline = deadline.unwrap_or(Nanos::MAX);
        self
    }

    /// Makes room for a response of this length; 4096 bytes without this.
    #[inline]
    pub fn room(mut self, bytes: usize) -> Self {
        self.room = bytes;
        self
    }

    /// Takes this msgbuf for the response, instead of one from the pool.
    #[inline]
    pub fn response(mut self, buf: MsgBuf) -> Self {
        self.response = Some(buf);
        self
    }

    /// Issues the call without waiting for its result.
    pub(super) fn notify(mut self) -> Result<(), Failed> {
        if self.issue(None) {
            self.state = None;
            return Ok(());
        }
        Err(self.refused())
    }

    /// Issues the call for a future that is polled with `context`; without a context, no future
    /// waits for its end. Returns false if the endpoint refuses the call; the msgbufs are then back
    /// in their fields.
    #[inline]
    fn issue(&mut self, context: Option<&Context<'_>>) -> bool {
        let state = self.state.take().expect(OVER);
        let issued = state.with(|cx| self.issue_on(cx, &state, context));
        self.state = Some(state);
        issued == Some(true)
    }

    /// Not inlined: all callers share this one function, and everything below it is inlined into
    /// it.
    #[inline(never)]
    fn issue_on(&mut self, cx: &mut Cx<'_>, state: &State, context: Option<&Context<'_>>) -> bool {
        let response = match self.response.take() {
            Some(response) => response,
            None => match cx.buf(self.room) {
                Ok(response) => response,
                Err(error) => return state.refuse(error.into()),
            },
        };
        let request = self.request.take().expect("a new call has its request");
        let mut calls = state.calls.borrow_mut();
        let slot = calls.reserve();
        let (req_type, tag) = (self.req_type(), Tag(slot.into()));
        let options = CallOptions {
            deadline: (self.deadline != Nanos::MAX).then_some(self.deadline),
        };
        match cx.call_with(self.session, req_type, request, response, tag, options) {
            Ok(id) => {
                calls.begin(slot, id, &state.current, context);
                self.slot = slot;
                true
            }
            Err(refused) => {
                calls.give_back(slot);
                self.request = Some(refused.request);
                self.response = Some(refused.response);
                state.refuse(Error::Refused(refused.kind))
            }
        }
    }

    /// The failure after [`Self::issue`] has returned false. `State` keeps the reason, because a
    /// result that could hold an error would be moved in pieces even on success.
    #[inline(always)]
    fn refused(&mut self) -> Failed {
        let state = self.state.take().expect(OVER);
        Failed {
            request: self.request.take().expect("a refused call gives it back"),
            unused: 0,
            response: self.response.take(),
            error: state.refused.take().unwrap_or(Error::GONE),
        }
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "it was one")]
    const fn req_type(&self) -> ReqType {
        ReqType(self.req_type as u16)
    }

    /// Gives up a call whose future is dropped before the call has ended, or before the future has
    /// seen the end.
    #[cold]
    #[inline(never)]
    fn cancel(state: &State, slot: u32) {
        let abandoned = state.calls.borrow_mut().abandon(slot);
        match abandoned {
            Abandoned::Running(id) => {
                // If the endpoint is gone, so is the call, and there is nothing to cancel.
                state.with(|cx| cx.cancel(id));
            }
            Abandoned::Ended(bufs) => {
                state.with(|cx| cx.recycle(bufs.into_iter().flatten()));
            }
        }
    }
}

impl Future for Call {
    type Output = Result<Reply, Failed>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.slot == NEW {
            return match this.issue(Some(context)) {
                true => Poll::Pending,
                false => Poll::Ready(Err(this.refused())),
            };
        }
        let state = this.state.as_deref().expect(OVER);
        let mut calls = state.calls.borrow_mut();
        let stage = calls.stage(this.slot);
        if !stage.has_ended() {
            calls.note(this.slot, &state.current, context);
            return Poll::Pending;
        }
        let (request, response) = calls.take(this.slot);
        drop(calls);
        let state = this.state.take();
        Poll::Ready(match stage {
            Stage::Failed(error) => Err(Failed {
                request: request.expect(ENDED),
                response,
                unused: 0,
                error: Error::Rpc(error),
            }),
            _ => Ok(Reply {
                request,
                response,
                state,
            }),
        })
    }
}

impl Drop for Call {
    #[inline]
    fn drop(&mut self) {
        if let Some(state) = &self.state
            && self.slot != NEW
        {
            Self::cancel(state, self.slot);
        }
    }
}

impl Reply {
    /// The response.
    #[inline]
    pub fn data(&self) -> &[u8] {
        self.response.as_ref().map_or(&[], MsgBuf::data)
    }

    /// The request and the response, to use them again.
    #[inline]
    pub fn into_bufs(mut self) -> (MsgBuf, MsgBuf) {
        let (request, response) = (self.request.take(), self.response.take());
        drop(self.state.take());
        // Every field has been taken, so nothing leaks; dropping would only cost time.
        std::mem::forget(self);
        (request.expect(ENDED), response.expect(ENDED))
    }

    /// The response's msgbuf. The request's goes back to the pool.
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
        let bufs = [self.request.take(), self.response.take()];
        if let Some(state) = self.state.take() {
            state.with(|cx| cx.recycle(bufs.into_iter().flatten()));
        }
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
