//! The endpoint, lent to the futures that are being polled: all unsafe code of the asynchronous
//! face.
//!
//! A poll has no parameter for a [`Cx`], so the executor leaves a pointer to it here for as long as
//! the poll lasts. Code that uses the pointer takes it out and puts it back afterwards, so only one
//! use happens at a time.
//!
//! Invariants: the pointer is here only during [`Lent::lend`], which borrows its `Cx` and does not
//! use it before the pointer is gone again. A pointer to a request is here only during
//! [`Lent::lend_with`], which borrows the request.

use std::cell::Cell;
use std::ptr::NonNull;

use dunlin_core::{Cx, Request};
use dunlin_msgbuf::MsgBuf;

thread_local! {
    /// The place of the endpoint that runs on this thread now: the one whose [`Lent::run`] began
    /// last and has not ended.
    static HERE: Cell<Option<NonNull<Lent>>> = const { Cell::new(None) };
}

/// The place of the pointers. It is not `Send`, so all of this happens on one thread.
#[derive(Default)]
pub(super) struct Lent {
    cx: Cell<Option<NonNull<Cx<'static>>>>,
    arrived: Cell<Option<NonNull<Request<'static>>>>,
}

/// A loan. Dropping this ends it, even if a poll panics.
struct Loan<'a>(&'a Lent);

/// The arrival of a request. Dropping this ends it, even if the first poll panics.
struct RequestLoan<'a>(&'a Lent);

/// The end of [`Lent::run`]: the endpoint that ran before it, which runs again. Dropping this notes
/// that, even if something panics.
struct Before(Option<NonNull<Lent>>);

/// Gives msgbufs back to the pool of the endpoint whose futures this thread polls now, which is
/// faster than dropping them. Msgbufs of another pool return to it as if dropped. So do all msgbufs
/// when no future is being polled.
#[inline]
pub(super) fn recycle(bufs: [Option<MsgBuf>; 2]) {
    if let Some(place) = HERE.get() {
        // SAFETY: `run` borrows the place until it takes the pointer out of `HERE`.
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
    /// Calls `run`, in which the endpoint of this place runs, so that [`recycle`] finds the place.
    #[inline(always)]
    pub(super) fn run<R>(&self, run: impl FnOnce() -> R) -> R {
        let _before = Before(HERE.replace(Some(NonNull::from(self))));
        run()
    }

    /// Runs `run`, during which [`Self::with`] finds this `cx`.
    #[inline(always)]
    pub(super) fn lend<R>(&self, cx: &mut Cx<'_>, run: impl FnOnce() -> R) -> R {
        debug_assert!(
            !self.is_there(),
            "the endpoint is lent already: a future must not poll another future of its thread"
        );
        self.cx.set(Some(NonNull::from(cx).cast()));
        let loan = Loan(self);
        let result = run();
        drop(loan);
        result
    }

    /// Like [`Self::lend`], and [`Self::arrived`] finds this request.
    #[inline(always)]
    pub(super) fn lend_with<R>(
        &self,
        cx: &mut Cx<'_>,
        request: Option<&Request<'_>>,
        run: impl FnOnce() -> R,
    ) -> R {
        let request = request.map(|request| NonNull::from(request).cast());
        self.arrived.set(request);
        let arrival = RequestLoan(self);
        let result = self.lend(cx, run);
        drop(arrival);
        result
    }

    /// Calls `run` with the request that has arrived, if its future is polled for the first time.
    #[inline(always)]
    pub(super) fn arrived<R>(&self, run: impl FnOnce(&Request<'_>) -> R) -> Option<R> {
        let request = self.arrived.get()?;
        // SAFETY: by the invariant of the file, a `lend_with` further up the stack borrows the
        // request. `run` must accept a request of any lifetime, so it keeps no reference.
        Some(run(unsafe { request.as_ref() }))
    }

    /// Whether [`Self::arrived`] would run its argument.
    pub(super) fn has_arrived(&self) -> bool {
        self.arrived.get().is_some()
    }

    /// Whether [`Self::with`] would run its argument.
    #[inline]
    pub(super) fn is_there(&self) -> bool {
        self.cx.get().is_some()
    }

    /// Calls `run` with the lent `Cx`. Returns `None` if no `Cx` is lent, or if it is in use
    /// further up the stack.
    #[inline(always)]
    pub(super) fn with<R>(&self, run: impl FnOnce(&mut Cx<'_>) -> R) -> Option<R> {
        let mut pointer = self.cx.take()?;
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
        self.place.cx.set(self.content);
    }
}

impl Drop for Loan<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.cx.set(None);
    }
}

impl Drop for RequestLoan<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.arrived.set(None);
    }
}

impl Drop for Before {
    #[inline]
    fn drop(&mut self) {
        HERE.set(self.0);
    }
}
