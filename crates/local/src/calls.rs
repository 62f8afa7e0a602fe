//! The calls of a `Local`, from their issue until their futures take the results. Called by
//! `call.rs`, and by `tasks.rs` when a call ends.
//!
//! An ordinary call has no entry in a table. Its tag names the task that waits for it. When the
//! response comes, it is *offered*: the task is polled at once, and its future finds the response
//! by the tag and takes it. A call becomes a *stray* if its future waits in a task other than the
//! one that issued it, or is dropped; if the call fails; or if the poll does not take the response.
//! A stray has an entry in the table until it is settled.
//!
//! Invariants: no two unsettled calls have the same tag; a result is offered only while its task is
//! polled.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::task::Context;

use dunlin_core::{Cx, Done, RpcError, Tag};
use dunlin_msgbuf::MsgBuf;
use dunlin_service::Error;

use crate::failed::Failed;
use crate::task::MAIN;
use crate::wake::{Current, WakeBy};

/// A tag has the task in these lower bits, and the number of the call in the upper ones. The same
/// number returns after 2^44 calls, by which time the earlier call is assumed to have ended.
const TASK_BITS: u32 = 20;

/// The task in the tags of calls whose result no future waits for.
pub(super) const NO_TASK: u32 = (1 << TASK_BITS) - 1;

/// Tags name only tasks below this one.
const FIRST_UNNAMED: u32 = NO_TASK - 1;

/// The tag of no call.
pub(super) const NO_TAG: Tag = Tag(FIRST_UNNAMED as u64);

/// All calls whose futures have not taken their results yet.
#[derive(Default)]
pub(super) struct Calls {
    offer: Offer,
    /// How many calls were issued; also the number of the next call.
    begun: Cell<u64>,
    /// How many of the issued calls have ended.
    ended: Cell<u64>,
    /// The last call that failed, until its future takes it.
    failed: Cell<Option<Failed>>,
    has_strays: Cell<bool>,
    strays: RefCell<HashMap<u64, Stray>>,
}

/// The response for which a task is polled now. All other results are strays.
///
/// The tag lies between the two msgbufs. If they were neighbours, the compiler would move both with
/// one wide load, which stalls because their bytes were just written in two pieces.
#[repr(C)]
struct Offer {
    request: Cell<Option<MsgBuf>>,
    /// [`NO_TAG`] once the future has taken the result.
    tag: Cell<Tag>,
    /// Present when `request` is.
    response: Cell<Option<MsgBuf>>,
}

/// The result of a call, and its msgbufs.
struct Ended {
    request: MsgBuf,
    response: MsgBuf,
    result: Result<(), RpcError>,
}

/// The state of a call whose response was not offered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Look {
    Waits,
    /// Its response is offered now.
    Offered,
    /// [`Calls::take_failed`] gives the reason.
    Failed,
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
    fn set(&self, tag: Tag, request: MsgBuf, response: MsgBuf) {
        // There is no old value to drop.
        std::mem::forget(self.request.replace(Some(request)));
        std::mem::forget(self.response.replace(Some(response)));
        self.tag.set(tag);
    }

    /// Takes the msgbufs, if this call's response is offered.
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
#[expect(
    clippy::cast_possible_truncation,
    reason = "the task is in the lower bits"
)]
const fn task_of(tag: Tag) -> u32 {
    tag.0 as u32 & NO_TASK
}

impl Calls {
    /// Calls that have not ended.
    pub(super) fn running(&self) -> u64 {
        self.begun.get() - self.ended.get()
    }

    /// The task to name in the tag of a call whose future is polled with this context; `None` if no
    /// tag can name it.
    #[inline]
    pub(super) fn nameable(current: &Current, context: &Context<'_>) -> Option<u32> {
        current.task(context).filter(|task| *task < FIRST_UNNAMED)
    }

    /// A tag for a call that is about to be issued, with the task that waits for its end.
    #[inline]
    pub(super) fn tag(&self, task: u32) -> Tag {
        Tag(self.begun.get() << TASK_BITS | u64::from(task))
    }

    /// Notes that a call was issued.
    #[inline]
    pub(super) fn begin(&self) {
        self.begun.set(self.begun.get() + 1);
    }

    /// The request and the response of a call, if this task is polled for it.
    #[inline]
    pub(super) fn take(&self, tag: Tag) -> Option<(MsgBuf, MsgBuf)> {
        self.offer.take(tag)
    }

    /// Looks for a call that is not offered. If it has not ended, the future that is polled with
    /// this context waits for it.
    #[cold]
    #[inline(never)]
    pub(super) fn look(&self, tag: Tag, current: &Current, context: &Context<'_>) -> Look {
        if !self.has_strays.get() && current.task(context) == Some(task_of(tag)) {
            return Look::Waits;
        }
        let ended = matches!(self.strays.borrow().get(&tag.0), Some(Stray::Ended(_)));
        if ended && let Some(Stray::Ended(ended)) = self.settle(tag) {
            return self.give(tag, ended);
        }
        self.await_elsewhere(tag, current, context);
        Look::Waits
    }

    /// Gives the result of a call to its future.
    fn give(&self, tag: Tag, ended: Ended) -> Look {
        let (request, response) = (ended.request, ended.response);
        match ended.result {
            Ok(()) => {
                self.set_offer_aside();
                self.offer.set(tag, request, response);
                Look::Offered
            }
            Err(error) => {
                self.fail(request, Some(response), Error::Rpc(error));
                Look::Failed
            }
        }
    }

    /// Keeps a failed call until its future takes it ([`Self::take_failed`]). If functions returned
    /// the error in a result instead, that result would be moved in pieces even on success. Returns
    /// false.
    #[cold]
    #[inline(never)]
    pub(super) fn fail(&self, request: MsgBuf, response: Option<MsgBuf>, error: Error) -> bool {
        self.failed.set(Some(Failed {
            request,
            response,
            error,
        }));
        false
    }

    /// The last call that failed.
    #[inline(always)]
    pub(super) fn take_failed(&self) -> Option<Failed> {
        self.failed.take()
    }

    /// Notes which future waits for a call, because the tag does not name it.
    #[cold]
    #[inline(never)]
    pub(super) fn await_elsewhere(&self, tag: Tag, current: &Current, context: &Context<'_>) {
        let mut future = match self.settle(tag) {
            Some(Stray::Awaited(future)) => future,
            _ => WakeBy::None,
        };
        // No cell is borrowed here, because this clones and drops wakers, which are foreign code.
        future.note(current, context);
        self.insert(tag, Stray::Awaited(future));
    }

    /// Takes the result of a call that has ended. Returns the task to poll for it, after which
    /// [`Self::end_offer`] must be called. If a future elsewhere waits for the call, calls `wake`
    /// with it.
    #[inline]
    pub(super) fn end(
        &self,
        done: Done,
        cx: &mut Cx<'_>,
        wake: impl FnOnce(WakeBy),
    ) -> Option<u32> {
        let ended = self.ended.get();
        if ended == self.begun.get() {
            return Self::end_unknown(done, cx);
        }
        self.ended.set(ended + 1);
        if done.result.is_err() || self.has_strays.get() {
            return self.end_stray(done, cx, wake);
        }
        let task = task_of(done.tag);
        self.offer.set(done.tag, done.request, done.response);
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

    /// Ends the offer: its task has been polled.
    #[inline]
    pub(super) fn end_offer(&self, cx: &mut Cx<'_>, wake: impl FnOnce(WakeBy)) {
        if self.offer.tag.get() != NO_TAG {
            self.keep_offer(cx, wake);
        }
    }

    /// Keeps a result that the poll did not take, if a future waits for it; otherwise recycles its
    /// msgbufs.
    #[cold]
    #[inline(never)]
    fn keep_offer(&self, cx: &mut Cx<'_>, wake: impl FnOnce(WakeBy)) {
        let tag = self.offer.tag.get();
        let task = task_of(tag);
        if task == NO_TASK {
            let unwanted = self.offer.take(tag);
            return cx.recycle(unwanted.into_iter().flat_map(|(a, b)| [a, b]));
        }
        self.set_offer_aside();
        if task == MAIN {
            wake(WakeBy::Task(MAIN));
        }
    }

    /// If a response is offered, makes its call a stray, which keeps the response.
    fn set_offer_aside(&self) {
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
