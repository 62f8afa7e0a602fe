//! A call as a future. The first poll issues it, it ends in exactly one way, and dropping it
//! cancels it.

use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use dunlin_core::{CallId, CallOptions, Cx, Nanos, Session, Tag};
use dunlin_msgbuf::MsgBuf;
use dunlin_wire::{Ran, ReqType};

use dunlin_service::Error;

use crate::calls::Ended;
use crate::failed::Failed;
use crate::lent;
use crate::state::State;

const ENDED: &str = "a call that has ended has its msgbufs";
const OVER: &str = "a call was polled after it had ended";

/// Room for a response, in bytes, unless the caller sets another.
const ROOM: usize = 4096;

/// The tag of a [`Call`] before it is issued.
const NEW: Tag = Tag(0);

/// The tag of a call that is over.
const OVER_TAG: Tag = Tag(u64::MAX);

/// A call, issued by its first poll. Awaiting it gives the response or an error, and in both cases
/// the msgbufs. Dropping it cancels the call.
#[must_use = "a call that is not awaited is not made"]
pub struct Call {
    /// `None` once the call is over. Only [`Self::end_early`] drops it and the msgbufs, so that
    /// dropping a call that is over costs nothing.
    state: ManuallyDrop<Option<Rc<State>>>,
    terms: Terms,
}

/// The terms of a call, and its progress.
struct Terms {
    session: Session,
    /// A [`ReqType`], kept in 32 bits because the compiler reads 32 bits of it, and such a read
    /// stalls just after a narrower write.
    req_type: u32,
    /// [`NEW`], the tag of the issued call, or [`OVER_TAG`].
    tag: Tag,
    /// The identifier of the issued call.
    id: Option<CallId>,
    room: usize,
    /// The time from issue to deadline; [`Nanos::MAX`] means no deadline.
    deadline: Nanos,
    /// Present until the call is issued.
    request: ManuallyDrop<Option<MsgBuf>>,
    response: ManuallyDrop<Option<MsgBuf>>,
}

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
            terms: Terms {
                session,
                req_type: req_type.0.into(),
                tag: NEW,
                id: None,
                room: ROOM,
                deadline: Nanos::MAX,
                request: ManuallyDrop::new(Some(request)),
                response: ManuallyDrop::new(None),
            },
        }
    }

    /// Ends the call with [`RpcError::DeadlinePassed`](dunlin_core::RpcError) if no response has
    /// come this long after it was issued.
    #[inline]
    pub fn deadline(mut self, span: Duration) -> Self {
        self.terms.deadline = span.into();
        self
    }

    /// Sets all options.
    #[inline]
    pub fn options(mut self, options: CallOptions) -> Self {
        let CallOptions { deadline } = options;
        self.terms.deadline = deadline.unwrap_or(Nanos::MAX);
        self
    }

    /// Makes room for a response of this length; without this, it is 4096 bytes.
    #[inline]
    pub fn room(mut self, bytes: usize) -> Self {
        self.terms.room = bytes;
        self
    }

    /// Uses this msgbuf for the response, instead of one from the pool.
    #[inline]
    pub fn response(mut self, buf: MsgBuf) -> Self {
        drop(self.terms.response.replace(buf));
        self
    }

    /// Issues the call without waiting for its result.
    pub(super) fn notify(mut self) -> Result<(), Failed> {
        if self.issue(None) {
            self.terms.tag = OVER_TAG;
            drop(self.state.take());
            return Ok(());
        }
        Err(self.refused())
    }

    /// Issues the call for the future that is polled with `context`. Without a context, no future
    /// waits for its end. Returns false if the endpoint refuses the call; the msgbufs are then back
    /// in their fields.
    #[inline]
    fn issue(&mut self, context: Option<&Context<'_>>) -> bool {
        let (state, terms) = (self.state.as_deref().expect(OVER), &mut self.terms);
        let issued = state.with(|cx| terms.issue(cx, state, context));
        issued == Some(true)
    }

    /// The failure after [`Self::issue`] has returned false. `State` keeps the reason, because a
    /// result that could hold an error would be moved in pieces even on success.
    #[inline(always)]
    fn refused(&mut self) -> Failed {
        let state = self.state.take().expect(OVER);
        let Terms {
            request,
            response,
            tag,
            ..
        } = &mut self.terms;
        *tag = OVER_TAG;
        Failed {
            request: request.take().expect("a refused call gives it back"),
            response: response.take(),
            error: state.refused.take().unwrap_or(Error::gone(Ran::No)),
        }
    }

    /// The result of a call that has ended, if the result is not offered to the task now.
    #[cold]
    #[inline(never)]
    fn end(&mut self, ended: Ended) -> Result<Reply, Failed> {
        self.terms.tag = OVER_TAG;
        drop(self.state.take());
        match ended.result {
            Ok(()) => Ok(Reply::new(ended.request, ended.response)),
            Err(error) => Err(Failed {
                request: ended.request,
                response: Some(ended.response),
                error: Error::Rpc(error),
            }),
        }
    }

    /// Gives up a call whose future is dropped before the call has ended, or before the future has
    /// seen the end.
    #[cold]
    #[inline(never)]
    fn end_early(&mut self) {
        let bufs = [self.terms.request.take(), self.terms.response.take()];
        let Some(state) = self.state.take() else {
            return;
        };
        if self.terms.tag == NEW {
            return drop(bufs);
        }
        match state.calls.abandon(self.terms.tag) {
            // If the endpoint or the session is gone, so is the call, and there is nothing to
            // cancel.
            None => {
                let _ = state.with(|cx| self.terms.id.map(|id| cx.cancel(id)));
            }
            Some((request, response)) => {
                state.with(|cx| cx.recycle([request, response]));
            }
        }
    }
}

impl Terms {
    /// Not inlined, so that all callers share this one function; everything that it calls is
    /// inlined into it.
    #[inline(never)]
    fn issue(&mut self, cx: &mut Cx<'_>, state: &State, context: Option<&Context<'_>>) -> bool {
        let response = match self.response.take() {
            Some(response) => response,
            None => match cx.buf(self.room) {
                Ok(response) => response,
                Err(error) => return state.refuse(error.into()),
            },
        };
        let request = self.request.take().expect("a new call has its request");
        let tag = state.calls.tag(&state.current, context);
        let options = CallOptions {
            deadline: (self.deadline != Nanos::MAX).then_some(self.deadline),
        };
        match cx.call_with(
            self.session,
            self.req_type(),
            request,
            response,
            tag,
            options,
        ) {
            Ok(id) => {
                state.calls.begin(tag, &state.current, context);
                (self.tag, self.id) = (tag, Some(id));
                true
            }
            Err(refused) => {
                *self.request = Some(refused.request);
                *self.response = Some(refused.response);
                state.refuse(Error::Refused(refused.kind))
            }
        }
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "it was one")]
    const fn req_type(&self) -> ReqType {
        ReqType(self.req_type as u16)
    }
}

impl Future for Call {
    type Output = Result<Reply, Failed>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.terms.tag == NEW {
            return match this.issue(Some(context)) {
                true => Poll::Pending,
                false => Poll::Ready(Err(this.refused())),
            };
        }
        let state = this.state.as_deref().expect(OVER);
        if let Some((request, response)) = state.calls.take(this.terms.tag) {
            this.terms.tag = OVER_TAG;
            drop(this.state.take());
            return Poll::Ready(Ok(Reply::new(request, response)));
        }
        match state.calls.poll(this.terms.tag, &state.current, context) {
            Some(ended) => Poll::Ready(this.end(ended)),
            None => Poll::Pending,
        }
    }
}

impl Drop for Call {
    #[inline]
    fn drop(&mut self) {
        if self.terms.tag != OVER_TAG {
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
