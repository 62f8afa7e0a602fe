//! How a batch tells a mark that its turn has come, without a word in the mark itself.
//!
//! Invariant: a look-up that a batch polls for the first time reaches its first mark without a
//! permit, and each later poll brings one permit, which the next mark takes. So in a batch a mark
//! needs no byte that says whether it has switched. The permit travels with the waker of the
//! batch, which wakes nothing. If the compiler has inlined the look-up into the batch, it knows at
//! each mark whether there is a permit, and neither the permit nor the waker exists any more.
//!
//! `lanes.rs` gives permits, `prefetch.rs` takes them.

use core::mem::ManuallyDrop;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, RawWaker, RawWakerVTable, Waker};

/// The permit for one mark. It is atomic only because a waker is `Sync`.
pub(crate) struct Permit(AtomicBool);

/// The functions of a batch's waker; their address identifies such a waker.
static BATCH: RawWakerVTable = RawWakerVTable::new(clone, ignore, ignore, ignore);

impl Permit {
    #[inline(always)]
    pub(crate) const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Grants or withdraws the permit.
    #[inline(always)]
    pub(crate) fn set(&self, granted: bool) {
        self.0.store(granted, Ordering::Relaxed);
    }

    /// Runs `body` with a context that brings the permit to marks.
    #[inline(always)]
    pub(crate) fn with_context<R>(&self, body: impl FnOnce(&mut Context<'_>) -> R) -> R {
        // SAFETY: the functions of `BATCH` ignore the address. `take` reads through it, and gets it
        // only from this waker, because a clone has another one. Nothing outlives this function
        // with a reference to the waker, which in turn does not outlive `self`. The permit is
        // atomic, so threads may share the waker.
        let waker = ManuallyDrop::new(unsafe { Waker::new((&raw const self.0).cast(), &BATCH) });
        body(&mut Context::from_waker(&waker))
    }
}

/// Takes the permit and returns whether there was one; `None` if no batch polls this look-up.
#[inline(always)]
pub(crate) fn take(cx: &Context<'_>) -> Option<bool> {
    let waker = cx.waker();
    if !ptr::eq(waker.vtable(), &BATCH) {
        return None;
    }
    // SAFETY: `BATCH` is private, so this waker comes from `with_context`, whose permit lives as
    // long as the waker.
    let permit = unsafe { &*waker.data().cast::<AtomicBool>() };
    let granted = permit.load(Ordering::Relaxed);
    permit.store(false, Ordering::Relaxed);
    Some(granted)
}

/// Clones to the no-op waker, so a clone may outlive the batch.
fn clone(_: *const ()) -> RawWaker {
    let noop = Waker::noop();
    RawWaker::new(noop.data(), noop.vtable())
}

fn ignore(_: *const ()) {}

#[cfg(test)]
mod tests;
