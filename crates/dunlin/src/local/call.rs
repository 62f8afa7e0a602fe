//! A call as a future. It is issued when it is polled first, ends in exactly one way, and is
//! cancelled by dropping it.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use dunlin_core::{CallId, CallOptions, Cx, Done, Session, Tag};
use dunlin_msgbuf::MsgBuf;
use dunlin_wire::ReqType;

use super::error::{Error, Failed};
use super::port::{self, Port};
use super::state::WakeBy;

/// Room for a response, in bytes, if the caller does not say otherwise.
const ROOM: usize = 4096;

/// A call that has been made and perhaps issued. Awaiting it gives the response, or an error, and
/// in both cases the msgbufs. Dropping it cancels the call.
#[must_use = "a call that is not awaited is not made"]
pub struct Call {
    port: Rc<dyn Port>,
    stage: Stage,
}

enum Stage {
    New(New),
    /// Issued; its place in [`Calls`].
    Issued(usize),
    Over,
}

/// A call before it is issued.
struct New {
    session: Session,
    req_type: ReqType,
    request: MsgBuf,
    response: Option<MsgBuf>,
    room: usize,
    options: CallOptions,
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
        let new = New {
            session,
            req_type,
            request,
            response: None,
            room: ROOM,
            options: CallOptions::default(),
        };
        Self {
            port,
            stage: Stage::New(new),
        }
    }

    /// Ends the call with [`RpcError::DeadlinePassed`](dunlin_core::RpcError) if no response has
    /// come this long after it was issued.
    pub fn deadline(self, span: Duration) -> Self {
        self.change(|new| new.options.deadline = Some(span.into()))
    }

    /// Makes room for a response of so many bytes; 4096 without this.
    pub fn room(self, bytes: usize) -> Self {
        self.change(|new| new.room = bytes)
    }

    /// Takes this msgbuf for the response, instead of one from the pool.
    pub fn response(self, buf: MsgBuf) -> Self {
        self.change(|new| new.response = Some(buf))
    }

    fn change(mut self, change: impl FnOnce(&mut New)) -> Self {
        if let Stage::New(new) = &mut self.stage {
            change(new);
        }
        self
    }

    fn issue(&mut self, new: New, context: &Context<'_>) -> Result<(), Failed> {
        let state = self.port.state();
        let mut whom = WakeBy::Nobody;
        whom.note(state, context);
        let mut new = Some(new);
        let issued = port::with(&*self.port, |cx| {
            new.take().map(|new| issue(new, whom, state, cx))
        });
        match (issued, new) {
            (Some(Some(slot)), _) => {
                self.stage = Stage::Issued(slot?);
                Ok(())
            }
            (_, Some(new)) => Err(new.failed(Error::GONE)),
            (_, None) => unreachable!("what was taken was issued"),
        }
    }
}

impl New {
    fn failed(self, error: Error) -> Failed {
        Failed {
            error,
            request: self.request,
            response: self.response,
        }
    }
}

fn issue(
    mut new: New,
    whom: WakeBy,
    state: &super::state::State,
    cx: &mut Cx<'_>,
) -> Result<usize, Failed> {
    let response = match new.response.take() {
        Some(response) => response,
        None => match cx.buf(new.room) {
            Ok(response) => response,
            Err(error) => return Err(new.failed(error.into())),
        },
    };
    let mut calls = state.calls.borrow_mut();
    let slot = calls.reserve();
    let tag = Tag(slot as u64);
    let New {
        session,
        req_type,
        request,
        options,
        ..
    } = new;
    match cx.call_with(session, req_type, request, response, tag, options) {
        Ok(id) => {
            calls.entries[slot] = Entry::Waiting(id, whom);
            Ok(slot)
        }
        Err(refused) => {
            calls.free.push(slot);
            Err(Failed {
                error: Error::Refused(refused.kind),
                request: refused.request,
                response: Some(refused.response),
            })
        }
    }
}

impl Future for Call {
    type Output = Result<Reply, Failed>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        match std::mem::replace(&mut this.stage, Stage::Over) {
            Stage::New(new) => match this.issue(new, context) {
                Ok(()) => Poll::Pending,
                Err(failed) => Poll::Ready(Err(failed)),
            },
            Stage::Issued(slot) => {
                let state = this.port.state();
                let Some(done) = state.calls.borrow_mut().take(slot) else {
                    state.calls.borrow_mut().note(slot, state, context);
                    this.stage = Stage::Issued(slot);
                    return Poll::Pending;
                };
                Poll::Ready(this.output(done))
            }
            Stage::Over => panic!("a call was polled after it had ended"),
        }
    }
}

impl Call {
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

    fn take(&mut self, slot: usize) -> Option<Done> {
        let entry = &mut self.entries[slot];
        if !matches!(entry, Entry::Done(_)) {
            return None;
        }
        let Entry::Done(done) = std::mem::replace(entry, Entry::Free) else {
            return None;
        };
        self.free.push(slot);
        Some(done)
    }

    fn note(&mut self, slot: usize, state: &super::state::State, context: &Context<'_>) {
        if let Entry::Waiting(_, whom) = &mut self.entries[slot] {
            whom.note(state, context);
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
