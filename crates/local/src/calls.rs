//! The calls of a `Local`, from their issue until their futures take the results. Called by
//! `call.rs`, and by `tasks.rs` when a call ends.
//!
//! An ordinary call has no entry in a table. Its tag names the task that waits for it. When the
//! response comes, it is *offered*: the task is polled immediately, and its future finds the
//! response by the tag and takes it. Every other call is a *stray* and has an entry until it is
//! settled: its future waits in a task other than the one that issued it, or was dropped; or the
//! call failed; or the poll did not take the response.
//!
//! Invariants: no two unsettled calls have the same tag; a result is offered only while its task is
//! polled.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::task::Context;

use dunlin_core::{Cx, Done, RpcError, Tag};
use dunlin_msgbuf::MsgBuf;

use crate::task::MAIN;
use crate::wake::{Current, WakeBy};

/// A tag has the task in its upper bits and a number, from 1 on, in these lower ones. A tag comes
/// again after 2^44 calls; the call that had it before is trusted to have ended by then.
const NUMBER_BITS: u32 = 44;

const LAST_NUMBER: u64 = (1 << NUMBER_BITS) - 1;

/// The task in the tags of calls whose result no future waits for.
const NO_TASK: u32 = (1 << (u64::BITS - NUMBER_BITS)) - 1;

/// The tag of no call.
const NO_TAG: Tag = Tag(0);

/// All calls whose futures have not taken their results yet.
#[derive(Default)]
pub(super) struct Calls {
    offer: Offer,
    /// The number in the last tag.
    number: Cell<u64>,
    /// Calls that have not ended.
    running: Cell<usize>,
    has_strays: Cell<bool>,
    strays: RefCell<HashMap<u64, Stray>>,
}

/// The response for which a task is polled now. All other results are strays.
///
/// The msgbufs are not neighbours: the compiler would move them together with one wide load, and a
/// wide load of bytes that were just written in two pieces stalls.
#[repr(C)]
struct Offer {
    request: Cell<Option<MsgBuf>>,
    /// [`NO_TAG`] once the future has taken the result.
    tag: Cell<Tag>,
    /// Present when `request` is.
    response: Cell<Option<MsgBuf>>,
}

/// The result of a call, and its msgbufs.
pub(super) struct Ended {
    pub(super) request: MsgBuf,
    pub(super) response: MsgBuf,
    pub(super) result: Result<(), RpcError>,
}

/// A call for which the task in its tag does not wait, or no longer waits.
enum Stray {
    /// The call runs, and this future waits for it.
    Awaited(WakeBy),
    /// The call runs, and its future was dropped.
    Abandoned,
    Ended(Ended),
}

impl From<Done> for Ended {
    fn from(done: Done) -> Self {
        Self {
            request: done.request,
            response: done.response,
            result: done.result,
        }
    }
}

impl Default for Offer {
    fn default() -> Self {
        Self {
            request: Cell::default(),
            tag: Cell::new(NO_TAG),
            response: Cell::default(),
        }
    }
}

impl Offer {
    #[inline]
    fn set(&self, done: Done) {
        // There is no old value to drop.
        std::mem::forget(self.request.replace(Some(done.request)));
        std::mem::forget(self.response.replace(Some(done.response)));
        self.tag.set(done.tag);
    }

    /// Takes the msgbufs, if they are there and this call's.
    #[inline]
    fn take(&self, tag: Tag) -> Option<(MsgBuf, MsgBuf)> {
        if self.tag.get() != tag {
            return None;
        }
        self.tag.set(NO_TAG);
        Some((self.request.take()?, self.response.take()?))
    }
}

/// The task in a tag.
#[inline]
const fn task_of(tag: Tag) -> u32 {
    (tag.0 >> NUMBER_BITS) as u32
}

impl Calls {
    /// Calls that have not ended.
    pub(super) fn running(&self) -> usize {
        self.running.get()
    }

    /// A tag for a call that is about to be issued, by a future that is polled with this context.
    /// Without a context, no future waits for the call's end.
    #[inline]
    pub(super) fn tag(&self, current: &Current, context: Option<&Context<'_>>) -> Tag {
        let number = match self.number.get() {
            LAST_NUMBER => 1,
            last => last + 1,
        };
        self.number.set(number);
        let task = match context {
            Some(context) => current.task(context).filter(|task| *task < NO_TASK),
            None => Some(NO_TASK),
        };
        Tag(u64::from(task.unwrap_or(MAIN)) << NUMBER_BITS | number)
    }

    /// Notes that the call with this tag was issued.
    #[inline]
    pub(super) fn begin(&self, tag: Tag, current: &Current, context: Option<&Context<'_>>) {
        self.running.set(self.running.get() + 1);
        if task_of(tag) == MAIN
            && let Some(context) = context
            && current.task(context) != Some(MAIN)
        {
            self.await_elsewhere(tag, current, context);
        }
    }

    /// The request and the response of a call, if this task is polled for it.
    #[inline]
    pub(super) fn take(&self, tag: Tag) -> Option<(MsgBuf, MsgBuf)> {
        self.offer.take(tag)
    }

    /// The result of a call that is not offered, if it has ended. Otherwise the future that is
    /// polled with this context waits for it.
    #[cold]
    #[inline(never)]
    pub(super) fn poll(&self, tag: Tag, current: &Current, context: &Context<'_>) -> Option<Ended> {
        if !self.has_strays.get() && current.task(context) == Some(task_of(tag)) {
            return None;
        }
        let ended = matches!(self.strays.borrow().get(&tag.0), Some(Stray::Ended(_)));
        if ended && let Some(Stray::Ended(ended)) = self.settle(tag) {
            return Some(ended);
        }
        self.await_elsewhere(tag, current, context);
        None
    }

    /// Notes which future waits for a call, because the tag does not name it.
    #[cold]
    fn await_elsewhere(&self, tag: Tag, current: &Current, context: &Context<'_>) {
        let mut future = match self.settle(tag) {
            Some(Stray::Awaited(future)) => future,
            _ => WakeBy::None,
        };
        // No cell is borrowed here, because this clones and drops wakers, which are foreign code.
        future.note(current, context);
        self.insert(tag, Stray::Awaited(future));
    }

    /// Takes the result of a call that has ended. Returns the task to poll for it, unless that is
    /// `MAIN`. If a future outside the executor waits for the call, calls `wake` with it.
    #[inline]
    pub(super) fn end(
        &self,
        done: Done,
        cx: &mut Cx<'_>,
        wake: impl FnOnce(WakeBy),
    ) -> Option<u32> {
        let Some(running) = self.running.get().checked_sub(1) else {
            return Self::end_unknown(done, cx);
        };
        self.running.set(running);
        let task = task_of(done.tag);
        let is_ordinary = task != MAIN && task != NO_TASK && done.result.is_ok();
        if !is_ordinary || self.has_strays.get() {
            return self.end_stray(done, cx, wake);
        }
        self.offer.set(done);
        Some(task)
    }

    /// Ends a call that was issued through the endpoint itself, not through a `Local`.
    #[cold]
    fn end_unknown(done: Done, cx: &mut Cx<'_>) -> Option<u32> {
        cx.recycle([done.request, done.response]);
        None
    }

    #[cold]
    #[inline(never)]
    fn end_stray(&self, done: Done, cx: &mut Cx<'_>, wake: impl FnOnce(WakeBy)) -> Option<u32> {
        let (tag, task) = (done.tag, task_of(done.tag));
        let settled = self.settle(tag);
        if task == NO_TASK || matches!(settled, Some(Stray::Abandoned)) {
            cx.recycle([done.request, done.response]);
            return None;
        }
        self.insert(tag, Stray::Ended(done.into()));
        match settled {
            Some(Stray::Awaited(future)) => wake(future),
            _ if task == MAIN => wake(WakeBy::Task(MAIN)),
            _ => return Some(task),
        }
        None
    }

    /// Ends the offer: its task has been polled. A result that was not taken stays for later.
    #[inline]
    pub(super) fn end_offer(&self) {
        if self.offer.tag.get() != NO_TAG {
            self.keep_offer();
        }
    }

    #[cold]
    #[inline(never)]
    fn keep_offer(&self) {
        let tag = self.offer.tag.get();
        if let Some((request, response)) = self.offer.take(tag) {
            let ended = Ended {
                request,
                response,
                result: Ok(()),
            };
            self.insert(tag, Stray::Ended(ended));
        }
    }

    /// Gives up a call whose future is dropped. Returns its msgbufs, if it has ended.
    #[cold]
    pub(super) fn abandon(&self, tag: Tag) -> Option<(MsgBuf, MsgBuf)> {
        let offered = self.offer.take(tag);
        if offered.is_some() {
            return offered;
        }
        if let Some(Stray::Ended(ended)) = self.settle(tag) {
            return Some((ended.request, ended.response));
        }
        self.insert(tag, Stray::Abandoned);
        None
    }

    fn insert(&self, tag: Tag, stray: Stray) {
        self.has_strays.set(true);
        self.strays.borrow_mut().insert(tag.0, stray);
    }

    fn settle(&self, tag: Tag) -> Option<Stray> {
        let mut strays = self.strays.borrow_mut();
        let stray = strays.remove(&tag.0);
        self.has_strays.set(!strays.is_empty());
        stray
    }
}
