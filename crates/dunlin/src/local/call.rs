//! A call as a future. It is issued when it is polled first, ends in exactly one way, and is
//! cancelled by dropping it.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use dunlin_core::{CallId, CallOptions, Cx, Done, Session, Tag};
use dunlin_msgbuf::MsgBuf;
use dunlin_wire::ReqType;

use dunlin_service::Error;

use super::failed::Failed;
use super::port::{self, Port};
use super::state::{State, WakeBy};

/// Room for a response, in bytes, if the caller does not say otherwise.
const ROOM: usize = 4096;

/// A call that has been made and perhaps issued. Awaiting it gives the response, or an error, and
/// in both cases the msgbufs. Dropping it cancels the call.
#[must_use = "a call that is not awaited is not made"]
pub struct Call {
    port: Rc<dyn Port>,
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
    port: Rc<dyn Port>,
    bufs: Option<[MsgBuf; 2]>,
}

/// All calls that were issued and whose futures have not heard of their end.
#[derive(Default)]
pub(super) struct Calls {
    entries: Vec<Entry>,
    free: Vec<usize>,
}

enum Entry {
    Free,
    Waiting(CallId, WakeBy),
    Done(Done),
    /// The future was dropped; the msgbufs go to the pool.
    Abandoned,
}

impl Call {
    pub(super) fn new(
        port: Rc<dyn Port>,
        session: Session,
        req_type: ReqType,
        request: MsgBuf,
    ) -> Self {
        Self {
            port,
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
    pub fn deadline(mut self, span: Duration) -> Self {
        self.options.deadline = Some(span.into());
        self
    }

    /// Sets all options.
    pub fn options(mut self, options: CallOptions) -> Self {
        self.options = options;
        self
    }

    /// Makes room for a response of so many bytes; 4096 without this.
    pub fn room(mut self, bytes: usize) -> Self {
        self.room = bytes;
        self
    }

    /// Takes this msgbuf for the response, instead of one from the pool.
    pub fn response(mut self, buf: MsgBuf) -> Self {
        self.response = Some(buf);
        self
    }

    /// Issues the call for a future that polls with `context`; without one, nobody waits for its
    /// end.
    pub(super) fn issue(&mut self, context: Option<&Context<'_>>) -> Result<(), Failed> {
        let port = Rc::clone(&self.port);
        let issued = port::with(&*port, |cx| self.issue_on(port.state(), cx, context));
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
                calls.entries[slot] = context.map_or(Entry::Abandoned, |context| {
                    let mut whom = WakeBy::Nobody;
                    whom.note(state, context);
                    Entry::Waiting(id, whom)
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

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        match this.stage {
            Stage::New => match this.issue(Some(context)) {
                Ok(()) => Poll::Pending,
                Err(failed) => Poll::Ready(Err(failed)),
            },
            Stage::Issued(slot) => {
                let state = this.port.state();
                let mut calls = state.calls.borrow_mut();
                let Entry::Waiting(_, whom) = &mut calls.entries[slot] else {
                    this.stage = Stage::Over;
                    let done = calls.take(slot);
                    drop(calls);
                    return Poll::Ready(this.output(done));
                };
                whom.note(state, context);
                Poll::Pending
            }
            Stage::Over => panic!("a call was polled after it had ended"),
        }
    }
}

impl Call {
    #[inline]
    fn output(&self, done: Done) -> Result<Reply, Failed> {
        match done.result {
            Ok(()) => Ok(Reply {
                port: Rc::clone(&self.port),
                bufs: Some([done.request, done.response]),
            }),
            Err(error) => Err(Failed {
                error: Error::Rpc(error),
                request: done.request,
                response: Some(done.response),
            }),
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Stage::Issued(slot) = self.stage {
            let state = self.port.state();
            let abandoned = state.calls.borrow_mut().abandon(slot);
            match abandoned {
                Abandoned::Running(id) => {
                    // If the endpoint is gone, so is the call.
                    port::with(&*self.port, |cx| cx.cancel(id));
                }
                Abandoned::Ended(done) => {
                    port::with(&*self.port, |cx| cx.recycle([done.request, done.response]));
                }
            }
        }
    }
}

impl Reply {
    /// The response.
    pub fn data(&self) -> &[u8] {
        self.bufs
            .as_ref()
            .map_or(&[], |[_, response]| response.data())
    }

    /// The request and the response, to use them again.
    pub fn into_bufs(mut self) -> [MsgBuf; 2] {
        self.bufs
            .take()
            .expect("a reply has its msgbufs until it is dropped")
    }

    /// The response's msgbuf. The request's goes back to the pool.
    pub fn into_response(mut self) -> MsgBuf {
        let [request, response] = self.bufs.take().expect("as above");
        port::with(&*self.port, |cx| cx.recycle([request]));
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
            port::with(&*self.port, |cx| cx.recycle(bufs));
        }
    }
}

enum Abandoned {
    Running(CallId),
    Ended(Done),
}

impl Calls {
    /// Calls that have not ended.
    pub(super) fn pending(&self) -> usize {
        let pending = |entry: &&Entry| matches!(entry, Entry::Waiting(..) | Entry::Abandoned);
        self.entries.iter().filter(pending).count()
    }

    fn reserve(&mut self) -> usize {
        if let Some(slot) = self.free.pop() {
            return slot;
        }
        self.entries.push(Entry::Free);
        // Freeing must never allocate.
        self.free.reserve(self.entries.capacity());
        self.entries.len() - 1
    }

    /// A call has ended; says who waits for that.
    pub(super) fn end(&mut self, done: Done, cx: &mut Cx<'_>) -> WakeBy {
        let slot = usize::try_from(done.tag.0).expect("tags are places");
        match std::mem::replace(&mut self.entries[slot], Entry::Free) {
            Entry::Waiting(_, whom) => {
                self.entries[slot] = Entry::Done(done);
                whom
            }
            _ => {
                cx.recycle([done.request, done.response]);
                self.free.push(slot);
                WakeBy::Nobody
            }
        }
    }

    /// The end of a call, which must have come.
    #[inline]
    fn take(&mut self, slot: usize) -> Done {
        self.free.push(slot);
        match std::mem::replace(&mut self.entries[slot], Entry::Free) {
            Entry::Done(done) => done,
            _ => unreachable!("a call that does not wait has ended"),
        }
    }

    fn abandon(&mut self, slot: usize) -> Abandoned {
        match std::mem::replace(&mut self.entries[slot], Entry::Abandoned) {
            Entry::Waiting(id, _) => Abandoned::Running(id),
            Entry::Done(done) => {
                self.entries[slot] = Entry::Free;
                self.free.push(slot);
                Abandoned::Ended(done)
            }
            Entry::Free | Entry::Abandoned => unreachable!("an issued call waits or has ended"),
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
