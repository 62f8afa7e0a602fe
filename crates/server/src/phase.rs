//! The phase that all threads of a server share: they serve, then drain until a deadline, then end.
//! They never return to an earlier phase.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

const SERVING: u8 = 0;
const DRAINING: u8 = 1;
const ENDED: u8 = 2;

#[derive(Debug, Default)]
pub(crate) struct Phase {
    phase: AtomicU8,
    /// The deadline of the drain.
    until: OnceLock<Instant>,
    /// Wakers of threads, and of their futures, that wait for the end of `SERVING`.
    waiting: Mutex<Vec<Waker>>,
}

impl Phase {
    pub(crate) fn is_serving(&self) -> bool {
        self.phase.load(Ordering::Acquire) == SERVING
    }

    /// Whether the drain's deadline has passed, or the threads end.
    pub(crate) fn is_over(&self) -> bool {
        let is_late = || {
            self.until
                .get()
                .is_some_and(|until| *until <= Instant::now())
        };
        self.phase.load(Ordering::Acquire) == ENDED || is_late()
    }

    /// Begins the drain.
    pub(crate) fn drain(&self, until: Instant) {
        let is_first = self.until.set(until);
        debug_assert!(is_first.is_ok(), "a server is drained once");
        self.enter(DRAINING);
    }

    /// Ends the threads now.
    pub(crate) fn end(&self) {
        self.enter(ENDED);
    }

    /// Wakes this waker when the threads no longer serve.
    pub(crate) fn wake_after(&self, waker: Waker) {
        self.lock().push(waker);
        if !self.is_serving() {
            self.wake();
        }
    }

    /// Completes when the threads no longer serve.
    pub(crate) async fn served(&self) {
        let mut is_registered = false;
        std::future::poll_fn(|context: &mut Context<'_>| {
            if !self.is_serving() {
                return Poll::Ready(());
            }
            if !std::mem::replace(&mut is_registered, true) {
                self.wake_after(context.waker().clone());
            }
            match self.is_serving() {
                true => Poll::Pending,
                false => Poll::Ready(()),
            }
        })
        .await;
    }

    fn enter(&self, phase: u8) {
        self.phase.store(phase, Ordering::Release);
        self.wake();
    }

    fn wake(&self) {
        // Not under the lock, because a waker runs foreign code.
        let waiting = std::mem::take(&mut *self.lock());
        waiting.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Waker>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
