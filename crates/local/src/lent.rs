//! The endpoint, lent to the futures that are being polled: all unsafe code of the asynchronous
//! face.
//!
//! A poll has no parameter for a [`Cx`], so the executor leaves a pointer to it here for as long as
//! the poll lasts. Code that uses the pointer takes it out and puts it back afterwards, so only one
//! use happens at a time.
//!
//! Invariant: the pointer is here only during [`Lent::lend`], which borrows its `Cx` and does not
//! use it before the pointer is gone again.

use std::cell::Cell;
use std::ptr::NonNull;

use dunlin_core::Cx;
use dunlin_msgbuf::MsgBuf;

thread_local! {
    /// The place whose [`Lent::lend`] began last on this thread; `None` once any `lend` has ended.
    static HERE: Cell<Option<NonNull<Lent>>> = const { Cell::new(None) };
}

/// The place of the pointer. It is not `Send`, so all of this happens on one thread.
#[derive(Default)]
pub(super) struct Lent(Cell<Option<NonNull<Cx<'static>>>>);

/// A loan. Dropping this ends it, even if a poll panics.
struct Loan<'a>(&'a Lent);

/// Gives msgbufs back to the pool of the endpoint whose futures this thread polls now, which is
/// faster than dropping them. Msgbufs of another pool return to it as if dropped. So do all msgbufs
/// when no future is being polled.
#[inline]
pub(super) fn recycle(bufs: [Option<MsgBuf>; 2]) {
    if let Some(place) = HERE.get() {
        // SAFETY: `lend` borrows the place until it takes the pointer out of `HERE`.
        let place = unsafe { place.as_ref() };
        place.with(|cx| cx.recycle(bufs.into_iter().flatten()));
    }
}

/// The pointer, taken out of its place. Dropping this puts the pointer back, even if a poll panics.
struct PutBack<'a> {
    place: &'a Lent,
    content: Option<NonNull<Cx<'static>>>,
}

impl Lent {
    /// Runs `run`, during which [`Self::with`] finds this `cx`.
    #[inline(always)]
    pub(super) fn lend<R>(&self, cx: &mut Cx<'_>, run: impl FnOnce() -> R) -> R {
        debug_assert!(
            !self.is_there(),
            "the endpoint is lent already: a future must not poll another future of its thread"
        );
        self.0.set(Some(NonNull::from(cx).cast()));
        HERE.set(Some(NonNull::from(self)));
        let loan = Loan(self);
        let result = run();
        drop(loan);
        result
    }

    /// Whether [`Self::with`] would run its argument.
    #[inline]
    pub(super) fn is_there(&self) -> bool {
        self.0.get().is_some()
    }

    /// Calls `run` with the lent `Cx`. Returns `None` if no `Cx` is lent, or if it is in use
    /// further up the stack.
    #[inline(always)]
    pub(super) fn with<R>(&self, run: impl FnOnce(&mut Cx<'_>) -> R) -> Option<R> {
        let mut pointer = self.0.take()?;
        let put_back = PutBack {
            place: self,
            content: Some(pointer),
        };
        // SAFETY: by the invariant of the file the `Cx` is alive, and borrowed by a `lend` further
        // up the stack, which does not use it now; nor does another call of this function, because
        // the place is empty until `put_back` is dropped. `run` must accept a `Cx` of any
        // lifetimes, so it can neither keep a reference out of the `Cx` nor put one of its own into
        // it.
        let result = run(unsafe { pointer.as_mut() });
        drop(put_back);
        Some(result)
    }
}

impl Drop for PutBack<'_> {
    #[inline]
    fn drop(&mut self) {
        self.place.0.set(self.content);
    }
}

impl Drop for Loan<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.0.set(None);
        HERE.set(None);
    }
}
