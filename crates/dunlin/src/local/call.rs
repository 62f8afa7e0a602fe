//! A call as a future. It is issued when it is polled first, ends in exactly one way, and is
//! cancelled by dropping it.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use dunlin_core::{CallId, CallOptions, Cx, Done, RpcError, Session, Tag};
use dunlin_msgbuf::MsgBuf;
use dunlin_wire::ReqType;

use dunlin_service::Error;

use super::failed::Failed;
use super::state::{State, WakeBy};

/// Room for a response, in bytes, if the caller does not say otherwise.
const ROOM: usize = 4096;

/// A call that has been made and perhaps issued. Awaiting it gives the response, or an error, and
/// in both cases the msgbufs. Dropping it cancels the call.
#[must_use = "a call that is not awaited is not made"]
pub struct Call {
    state: Rc<State>,
    session: Session,
    req_type: ReqType,
    stage: Stage,
    room: usize,
    options: CallOptions,
    /// Until it is issued.
    request: Option<MsgBuf>,
    response: Option<MsgBuf>,
}

#[derive(Clone, Copy)]
enum Stage {
    New,
    /// Issued; its place in [`Calls`].
    Issued(usize),
    Over,
}

/// A response, with both msgbufs of its call. They go back to the pool when this is dropped.
pub struct Reply {
    state: Rc<State>,
    bufs: Option<[MsgBuf; 2]>,
}

/// All calls that were issued and whose futures have not heard of their end.
#[derive(Default)]
pub(super) struct Calls {
    entries: Vec<Entry>,
    free: Vec<usize>,
}

/// A call. The msgbufs lie beside the rest, so that they are moved once on their way in and once
/// on their way out.
#[derive(Default)]
struct Entry {
    progress: Progress,
    /// When it is `Done`.
    bufs: Option<[MsgBuf; 2]>,
}

#[derive(Default)]
enum Progress {
    #[default]
    Free,
    Waiting(CallId, WakeBy),
    Done(Result<(), RpcError>),
    /// The future was dropped; the msgbufs go to the pool.
    Abandoned,
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
            state,
            session,
            req_type,
            stage: Stage::New,
            room: ROOM,
            options: CallOptions::default(),
            request: Some(request),
            response: None,
        }
    }

    /// Ends the call with [`RpcError::DeadlinePassed`](dunlin_core::RpcError) if no response has
    /// come this long after it was issued.
    #[inline]
    pub fn deadline(mut self, span: Duration) -> Self {
        self.options.deadline = Some(span.into());
        self
    }

    /// Sets all options.
    #[inline]
    pub fn options(mut self, options: CallOptions) -> Self {
        self.options = options;
        self
    }

    /// Makes room for a response of so many bytes; 4096 without this.
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

    /// Issues the call for a future that polls with `context`; without one, nobody waits for its
    /// end.
    #[inline]
    pub(super) fn issue(&mut self, context: Option<&Context<'_>>) -> Result<(), Failed> {
        let state = Rc::clone(&self.state);
        let issued = state.with(|cx| self.issue_on(&state, cx, context));
        match issued.unwrap_or(Err(Error::GONE)) {
            Ok(slot) => {
                self.stage = match context {
                    Some(_) => Stage::Issued(slot),
                    None => Stage::Over,
                };
                Ok(())
            }
            Err(error) => {
                self.stage = Stage::Over;
                Err(Failed {
                    error,
                    request: self.request.take().expect("a refused call gives it back"),
                    response: self.response.take(),
                })
            }
        }
    }

    #[inline]
    fn issue_on(
        &mut self,
        state: &State,
        cx: &mut Cx<'_>,
        context: Option<&Context<'_>>,
    ) -> Result<usize, Error> {
        let response = match self.response.take() {
            Some(response) => response,
            None => cx.buf(self.room)?,
        };
        let request = self.request.take().expect("a new call has its request");
        let mut calls = state.calls.borrow_mut();
        let slot = calls.reserve();
        let tag = Tag(slot as u64);
        let called = cx.call_with(
            self.session,
            self.req_type,
            request,
            response,
            tag,
            self.options,
        );
        match called {
            Ok(id) => {
                calls.entries[slot].progress = context.map_or(Progress::Abandoned, |context| {
                    let mut whom = WakeBy::Nobody;
                    whom.note(state, context);
                    Progress::Waiting(id, whom)
                });
                Ok(slot)
            }
            Err(refused) => {
                calls.free.push(slot);
                self.request = Some(refused.request);
                self.response = Some(refused.response);
                Err(Error::Refused(refused.kind))
            }
        }
    }
}

impl Future for Call {
    type Output = Result<Reply, Failed>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        match this.stage {
            Stage::New => match this.issue(Some(context)) {
                Ok(()) => Poll::Pending,
                Err(failed) => Poll::Ready(Err(failed)),
            },
            Stage::Issued(slot) => {
                let state = &this.state;
                let mut calls = state.calls.borrow_mut();
                if let Progress::Waiting(_, whom) = &mut calls.entries[slot].progress {
                    whom.note(state, context);
                    return Poll::Pending;
                }
                this.stage = Stage::Over;
                let (result, bufs) = calls.take(slot);
                drop(calls);
                Poll::Ready(this.output(result, bufs))
            }
            Stage::Over => panic!("a call was polled after it had ended"),
        }
    }
}

impl Call {
    #[inline]
    fn output(&self, result: Result<(), RpcError>, bufs: [MsgBuf; 2]) -> Result<Reply, Failed> {
        match result {
            Ok(()) => Ok(Reply {
                state: Rc::clone(&self.state),
                bufs: Some(bufs),
            }),
            Err(error) => {
                let [request, response] = bufs;
                Err(Failed {
                    error: Error::Rpc(error),
                    request,
                    response: Some(response),
                })
            }
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Stage::Issued(slot) = self.stage {
            let state = &self.state;
            let abandoned = state.calls.borrow_mut().abandon(slot);
            match abandoned {
                Abandoned::Running(id) => {
                    // If the endpoint is gone, so is the call.
                    self.state.with(|cx| cx.cancel(id));
                }
                Abandoned::Ended(bufs) => {
                    self.state.with(|cx| cx.recycle(bufs));
                }
            }
        }
    }
}

impl Reply {
    /// The response.
    #[inline]
    pub fn data(&self) -> &[u8] {
        self.bufs
            .as_ref()
            .map_or(&[], |[_, response]| response.data())
    }

    /// The request and the response, to use them again.
    #[inline]
    pub fn into_bufs(mut self) -> [MsgBuf; 2] {
        self.bufs
            .take()
            .expect("a reply has its msgbufs until it is dropped")
    }

    /// The response's msgbuf. The request's goes back to the pool.
    pub fn into_response(mut self) -> MsgBuf {
        let [request, response] = self.bufs.take().expect("as above");
        self.state.with(|cx| cx.recycle([request]));
        response
    }
}

impl AsRef<[u8]> for Reply {
    fn as_ref(&self) -> &[u8] {
        self.data()
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if let Some(bufs) = self.bufs.take() {
            self.state.with(|cx| cx.recycle(bufs));
        }
    }
}

enum Abandoned {
    Running(CallId),
    Ended([MsgBuf; 2]),
}

impl Calls {
    /// Calls that have not ended.
    pub(super) fn pending(&self) -> usize {
        let goes_on =
            |entry: &&Entry| matches!(entry.progress, Progress::Waiting(..) | Progress::Abandoned);
        self.entries.iter().filter(goes_on).count()
    }

    #[inline]
    fn reserve(&mut self) -> usize {
        if let Some(slot) = self.free.pop() {
            return slot;
        }
        self.entries.push(Entry::default());
        // Freeing must never allocate.
        self.free.reserve(self.entries.capacity());
        self.entries.len() - 1
    }

    /// A call has ended; says who waits for that.
    #[inline]
    pub(super) fn end(&mut self, done: Done, cx: &mut Cx<'_>) -> WakeBy {
        let slot = usize::try_from(done.tag.0).expect("tags are places");
        let entry = &mut self.entries[slot];
        if let Progress::Waiting(_, whom) = &mut entry.progress {
            let whom = std::mem::take(whom);
            entry.bufs = Some([done.request, done.response]);
            entry.progress = Progress::Done(done.result);
            return whom;
        }
        entry.progress = Progress::Free;
        self.free.push(slot);
        cx.recycle([done.request, done.response]);
        WakeBy::Nobody
    }

    /// The end of a call, which must have come.
    #[inline]
    fn take(&mut self, slot: usize) -> (Result<(), RpcError>, [MsgBuf; 2]) {
        self.free.push(slot);
        let entry = &mut self.entries[slot];
        let bufs = entry
            .bufs
            .take()
            .expect("a call that has ended has its msgbufs");
        match std::mem::take(&mut entry.progress) {
            Progress::Done(result) => (result, bufs),
            _ => unreachable!("a call that does not wait has ended"),
        }
    }

    fn abandon(&mut self, slot: usize) -> Abandoned {
        if let Progress::Waiting(id, _) = self.entries[slot].progress {
            self.entries[slot].progress = Progress::Abandoned;
            return Abandoned::Running(id);
        }
        let (_, bufs) = self.take(slot);
        Abandoned::Ended(bufs)
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
