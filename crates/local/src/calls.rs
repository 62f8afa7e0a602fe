//! The calls of a `Local`, from their issue until their futures take the results. Called by
//! `call.rs`, and by `tasks.rs` when a call ends.
//!
//! An ordinary call has no entry in a table. Its tag names the task that waits for it. When the
//! response comes, it is *offered*: the task is polled at once, and its future finds the response
//! by the tag and takes it. Each other call is a *stray*, which has an entry in a table until it is
//! settled (`strays.rs`). A call is a stray from the start if no tag can name the task that polls
//! its future: this is a task of another executor, of `FuturesUnordered`, or of `block_on`. A call
//! becomes a stray if its future waits in a task other than the one that issued it, or is dropped;
//! if the call fails; or if the poll does not take the response.
//!
//! Invariants: no two unsettled calls have the same tag; a result is offered only while its task is
//! polled.

use std::cell::{Cell, RefCell};
use std::mem::MaybeUninit;
use std::task::Context;

use dunlin_core::{Cx, Done, Tag};
use dunlin_msgbuf::MsgBuf;
use dunlin_service::Error;

use crate::failed::Failed;
use crate::strays::{Ended, Named, Numbered, Stray};
use crate::wake::{Current, MAIN, WakeBy};

/// A tag has the task in these lower bits, then a bit that is set in all our tags, and the number
/// of the call in the upper bits. The same number returns after 2^43 calls, by which time the
/// earlier call is assumed to have ended. The tag of a call that was a stray from the start has the
/// number of its entry instead.
const TASK_BITS: u32 = 20;

/// The bit that is set in all our tags. The program may issue calls through the endpoint itself.
const OURS: u32 = 1 << TASK_BITS;

/// The lowest bit of the number in a tag.
const NUMBER_AT: u32 = TASK_BITS + 1;

/// The task in the tags of calls whose result no future waits for.
pub(super) const NO_TASK: u32 = (1 << TASK_BITS) - 1;

/// The task in the tags of calls that are strays from the start.
const ELSEWHERE: u32 = NO_TASK - 1;

/// Tags name only tasks between `MAIN` and this one.
const FIRST_UNNAMED: u32 = ELSEWHERE - 1;

/// The tag of no call.
const NO_TAG: Tag = Tag(FIRST_UNNAMED as u64);

/// All calls whose futures have not taken their results yet.
pub(super) struct Calls {
    offer: Offer,
    /// How many calls were issued; also the number of the next call.
    begun: Cell<u64>,
    /// The last call that failed, until its future takes it.
    failed: Cell<Option<Failed>>,
    /// Strays whose tags have the task `ELSEWHERE`.
    numbered: RefCell<Numbered>,
    /// Calls whose tags name tasks below this one are no strays: `FIRST_UNNAMED`, or 0 while
    /// `named` has entries.
    unlisted: Cell<u32>,
    /// All other strays.
    named: RefCell<Named>,
}

/// The response for which a task is polled now. All other results are strays.
struct Offer {
    /// [`NO_TAG`] once the future has taken the result.
    tag: Cell<Tag>,
    /// Present until then.
    bufs: Cell<Option<Bufs>>,
}

/// The msgbufs of a call that has its response. One word shows whether both are there.
///
/// If the two were neighbours, the compiler would move both with one wide load, which stalls
/// because their bytes were just written in two pieces.
#[repr(C)]
struct Bufs {
    request: MsgBuf,
    between: MaybeUninit<usize>,
    response: MsgBuf,
}

/// The state of a call whose response was not offered.
pub(super) enum Look {
    Waits,
    /// The call has its response; these are the request and the response.
    Ended(MsgBuf, MsgBuf),
    /// [`Calls::take_failed`] gives the reason.
    Failed,
}

impl Default for Calls {
    fn default() -> Self {
        Self {
            offer: Offer::default(),
            begun: Cell::default(),
            failed: Cell::default(),
            numbered: RefCell::default(),
            unlisted: Cell::new(FIRST_UNNAMED),
            named: RefCell::default(),
        }
    }
}

impl Default for Offer {
    fn default() -> Self {
        Self {
            tag: Cell::new(NO_TAG),
            bufs: Cell::default(),
        }
    }
}

impl Offer {
    #[inline]
    fn set(&self, tag: Tag, request: MsgBuf, response: MsgBuf) {
        // There is no old value to drop.
        std::mem::forget(self.bufs.replace(Some(Bufs {
            request,
            between: MaybeUninit::uninit(),
            response,
        })));
        self.tag.set(tag);
    }

    /// Takes the msgbufs, if this call's response is offered.
    #[inline]
    fn take(&self, tag: Tag) -> Option<(MsgBuf, MsgBuf)> {
        if self.tag.get() != tag {
            return None;
        }
        self.tag.set(NO_TAG);
        let Bufs {
            request, response, ..
        } = self.bufs.take()?;
        Some((request, response))
    }
}

/// The entry in the tag of a call that was a stray from the start.
const fn entry_of(tag: Tag) -> Option<usize> {
    match task_of(tag) == ELSEWHERE {
        true => Some((tag.0 >> NUMBER_AT) as usize),
        false => None,
    }
}

/// The task in a tag; a larger number than any task's if the tag is not ours.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the task is in the lower bits"
)]
const fn task_of(tag: Tag) -> u32 {
    (tag.0 as u32 & (NO_TASK | OURS)).wrapping_sub(OURS)
}

/// Our tag with this number and task.
#[inline]
const fn tag_of(number: u64, task: u32) -> Tag {
    Tag(number << NUMBER_AT | (OURS | task) as u64)
}

impl Calls {
    /// The task to name in the tag of a call whose future is polled with this context; `None` if no
    /// tag can name it.
    #[inline]
    pub(super) fn nameable(current: &Current, context: &Context<'_>) -> Option<u32> {
        let task = current.task(context)?;
        // One comparison, because 0 becomes the largest number.
        (task.wrapping_sub(MAIN + 1) < FIRST_UNNAMED - (MAIN + 1)).then_some(task)
    }

    /// A tag for a call that is about to be issued, with the task that waits for its end.
    #[inline]
    pub(super) fn tag(&self, task: u32) -> Tag {
        tag_of(self.begun.get(), task)
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

    /// A tag for a call that is about to be issued, for which the future that is polled with this
    /// context waits. No tag can name its task. If the call is not issued, [`Self::forget`] must be
    /// called.
    pub(super) fn tag_elsewhere(&self, current: &Current, context: &Context<'_>) -> Tag {
        // No cell is borrowed here, because this clones a waker, which is foreign code.
        let mut future = WakeBy::None;
        future.note(current, context);
        let mut numbered = self.numbered.borrow_mut();
        let entry = numbered.reserve();
        numbered.put(entry, Stray::Awaited(future));
        tag_of(entry as u64, ELSEWHERE)
    }

    /// Forgets a call that was not issued.
    pub(super) fn forget(&self, tag: Tag) {
        let settled = self.take_stray(tag);
        self.release(tag);
        drop(settled);
    }

    /// Looks for a call that is not offered. If it has not ended, the future that is polled with
    /// this context waits for it.
    #[cold]
    #[inline(never)]
    pub(super) fn look(&self, tag: Tag, current: &Current, context: &Context<'_>) -> Look {
        let task = task_of(tag);
        if task < self.unlisted.get() && current.task(context) == Some(task) {
            return Look::Waits;
        }
        let mut future = match self.take_stray(tag) {
            Some(Stray::Ended(ended)) => {
                self.release(tag);
                return self.give(ended);
            }
            Some(Stray::Awaited(future)) => future,
            Some(Stray::Abandoned) | None => WakeBy::None,
        };
        // No cell is borrowed here, because this clones and drops wakers, which are foreign code.
        future.note(current, context);
        self.put_stray(tag, Stray::Awaited(future));
        Look::Waits
    }

    /// Gives the result of a call to its future.
    fn give(&self, ended: Ended) -> Look {
        let (request, response) = (ended.request, ended.response);
        match ended.result {
            Ok(()) => Look::Ended(request, response),
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

    /// The task to poll for a call that has ended, if its response can be offered to that task.
    #[inline]
    pub(super) fn waiting(&self, done: &Done) -> Option<u32> {
        let task = task_of(done.tag);
        (done.result.is_ok() && task < self.unlisted.get()).then_some(task)
    }

    /// Offers a response to the task that is polled next; [`Self::end_offer`] must be called after
    /// that poll.
    #[inline]
    pub(super) fn offer(&self, done: Done) {
        self.offer.set(done.tag, done.request, done.response);
    }

    /// Takes the result of a call that has ended and is not offered. Returns the task to poll, if
    /// it may wait for the call. If a future elsewhere waits for the call, calls `wake` with it.
    pub(super) fn end_stray(
        &self,
        done: Done,
        cx: &mut Cx<'_>,
        wake: impl FnOnce(WakeBy),
    ) -> Option<u32> {
        let (tag, task) = (done.tag, task_of(done.tag));
        if task >= NO_TASK {
            cx.recycle([done.request, done.response]);
            return None;
        }
        match self.put_stray(tag, Stray::Ended(done.into())) {
            Some(Stray::Awaited(future)) => wake(future),
            Some(Stray::Abandoned) => {
                if let Some(Stray::Ended(ended)) = self.take_stray(tag) {
                    cx.recycle([ended.request, ended.response]);
                }
                self.release(tag);
            }
            _ => return Some(task),
        }
        None
    }

    /// Ends the offer: its task has been polled.
    #[inline]
    pub(super) fn end_offer(&self) {
        if self.offer.tag.get() != NO_TAG {
            self.keep_offer();
        }
    }

    /// Keeps a result that the poll did not take: the call is a stray from here on.
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
            self.put_stray(tag, Stray::Ended(ended));
        }
    }

    /// Gives up a call whose future is dropped. Returns its msgbufs, if it has ended.
    #[cold]
    pub(super) fn abandon(&self, tag: Tag) -> Option<(MsgBuf, MsgBuf)> {
        let offered = self.offer.take(tag);
        if offered.is_some() {
            return offered;
        }
        match self.take_stray(tag) {
            Some(Stray::Ended(ended)) => {
                self.release(tag);
                Some((ended.request, ended.response))
            }
            _ => {
                self.put_stray(tag, Stray::Abandoned);
                None
            }
        }
    }

    /// Notes the state of a stray; returns the state before.
    fn put_stray(&self, tag: Tag, stray: Stray) -> Option<Stray> {
        match entry_of(tag) {
            Some(entry) => self.numbered.borrow_mut().put(entry, stray),
            None => {
                self.unlisted.set(0);
                self.named.borrow_mut().put(tag, stray)
            }
        }
    }

    /// Takes the state of a stray. The entry of a numbered one remains its own.
    fn take_stray(&self, tag: Tag) -> Option<Stray> {
        if let Some(entry) = entry_of(tag) {
            return self.numbered.borrow_mut().take(entry);
        }
        if self.unlisted.get() != 0 {
            return None;
        }
        let mut named = self.named.borrow_mut();
        let stray = named.take(tag);
        if named.is_empty() {
            self.unlisted.set(FIRST_UNNAMED);
        }
        stray
    }

    /// Frees the entry of a call that is settled.
    fn release(&self, tag: Tag) {
        if let Some(entry) = entry_of(tag) {
            self.numbered.borrow_mut().release(entry);
        }
    }
}
