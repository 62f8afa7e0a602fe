//! The calls of a `Local` whose futures have not taken their results yet. Called by `call.rs`, and
//! by `tasks.rs` when a call ends.

use std::task::Context;

use dunlin_core::{CallId, Cx, Done, RpcError};
use dunlin_msgbuf::MsgBuf;

use crate::wake::{Current, WakeBy};

/// All calls whose futures have not taken their results yet.
#[derive(Default)]
pub(super) struct Calls {
    issued: Vec<Issued>,
    free: Vec<u32>,
}

/// A call.
///
/// The msgbufs are not neighbours: the compiler would move them together with one wide load, and a
/// wide load of bytes that were just written in two pieces stalls.
#[derive(Default)]
#[repr(C)]
struct Issued {
    /// Present once the call is `Answered` or `Failed`.
    request: Option<MsgBuf>,
    stage: Stage,
    /// The future to wake at the end of the call, while the call is `Waiting`.
    future: WakeBy,
    /// Present when `request` is.
    response: Option<MsgBuf>,
}

#[derive(Clone, Copy, Default)]
pub(super) enum Stage {
    #[default]
    Free,
    Waiting(CallId),
    Answered,
    Failed(RpcError),
    /// The future was dropped; the msgbufs go to the pool.
    Abandoned,
}

/// A call whose future was dropped.
pub(super) enum Abandoned {
    Running(CallId),
    Ended([Option<MsgBuf>; 2]),
}

impl Stage {
    #[inline]
    pub(super) const fn has_ended(self) -> bool {
        matches!(self, Self::Answered | Self::Failed(_))
    }
}

impl Issued {
    /// Takes the error by reference and is not inlined, so that a successful result is not moved.
    #[cold]
    #[inline(never)]
    const fn fail(&mut self, error: &RpcError) {
        self.stage = Stage::Failed(*error);
    }

    #[inline]
    fn begin(&mut self, id: CallId, current: &Current, context: Option<&Context<'_>>) {
        self.stage = Stage::Abandoned;
        if let Some(context) = context {
            self.stage = Stage::Waiting(id);
            self.future.note(current, context);
        }
    }
}

impl Calls {
    /// Calls that have not ended.
    pub(super) fn pending(&self) -> usize {
        let goes_on = |call: &&Issued| matches!(call.stage, Stage::Waiting(_) | Stage::Abandoned);
        self.issued.iter().filter(goes_on).count()
    }

    /// Returns a place for a call that is about to be issued.
    #[inline]
    pub(super) fn reserve(&mut self) -> u32 {
        match self.free.pop() {
            Some(slot) => slot,
            None => self.grow(),
        }
    }

    /// Takes back a reserved place whose call was refused.
    #[inline]
    pub(super) fn give_back(&mut self, slot: u32) {
        self.free.push(slot);
    }

    /// Records that the call in a reserved place was issued; without a context, no future waits for
    /// its end.
    #[inline]
    pub(super) fn begin(
        &mut self,
        slot: u32,
        id: CallId,
        current: &Current,
        context: Option<&Context<'_>>,
    ) {
        self.issued[slot as usize].begin(id, current, context);
    }

    #[inline]
    pub(super) fn stage(&self, slot: u32) -> Stage {
        self.issued[slot as usize].stage
    }

    /// Notes the future that waits for a call.
    #[inline]
    pub(super) fn note(&mut self, slot: u32, current: &Current, context: &Context<'_>) {
        self.issued[slot as usize].future.note(current, context);
    }

    #[cold]
    fn grow(&mut self) -> u32 {
        let slot = u32::try_from(self.issued.len()).expect("fewer than 2^32 fit in memory");
        self.issued.push(Issued::default());
        // Freeing must never allocate.
        self.free.reserve(self.issued.capacity());
        slot
    }

    /// Records that a call has ended; returns the future to wake for it.
    #[inline]
    pub(super) fn end(&mut self, done: Done, cx: &mut Cx<'_>) -> WakeBy {
        let call = usize::try_from(done.tag.0).ok();
        let call = call.and_then(|slot| self.issued.get_mut(slot));
        let call = call.expect("tags are places");
        if !matches!(call.stage, Stage::Waiting(_)) {
            self.end_abandoned(done, cx);
            return WakeBy::None;
        }
        call.stage = Stage::Answered;
        if let Err(error) = &done.result {
            call.fail(error);
        }
        put(&mut call.request, done.request);
        put(&mut call.response, done.response);
        std::mem::take(&mut call.future)
    }

    #[cold]
    #[inline(never)]
    fn end_abandoned(&mut self, done: Done, cx: &mut Cx<'_>) {
        let slot = u32::try_from(done.tag.0).expect("tags are places");
        self.issued[slot as usize].stage = Stage::Free;
        self.free.push(slot);
        cx.recycle([done.request, done.response]);
    }

    /// Frees the place of a call that has ended, and returns its msgbufs.
    #[inline]
    pub(super) fn take(&mut self, slot: u32) -> (Option<MsgBuf>, Option<MsgBuf>) {
        self.free.push(slot);
        let call = &mut self.issued[slot as usize];
        call.stage = Stage::Free;
        (call.request.take(), call.response.take())
    }

    /// Gives up a call whose future is dropped.
    pub(super) fn abandon(&mut self, slot: u32) -> Abandoned {
        let call = &mut self.issued[slot as usize];
        if let Stage::Waiting(id) = call.stage {
            call.stage = Stage::Abandoned;
            call.future = WakeBy::None;
            return Abandoned::Running(id);
        }
        let (request, response) = self.take(slot);
        Abandoned::Ended([request, response])
    }
}

/// Fills an empty place. The compiler then knows that there is no old value to drop.
#[inline]
fn put(place: &mut Option<MsgBuf>, buf: MsgBuf) {
    debug_assert!(place.is_none(), "a call that waits has no msgbufs here");
    std::mem::forget(place.replace(buf));
}
