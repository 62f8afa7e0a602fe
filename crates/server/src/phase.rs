//! The phase in which all threads of a server are: they serve, then drain until some time, then
//! end. It never goes back.

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
    /// Until when the drain may last.
    until: OnceLock<Instant>,
    /// Threads, and futures of theirs, that wait for the end of `SERVING`.
    waiting: Mutex<Vec<Waker>>,
}

impl Phase {
    pub(crate) fn is_serving(&self) -> bool {
        self.phase.load(Ordering::Acquire) == SERVING
    }

    /// Whether no time is left for the drain.
    pub(crate) fn is_over(&self) -> bool {
        let is_late = || {
            self.until
                .get()
                .is_some_and(|until| *until <= Instant::now())
        };
        self.phase.load(Ordering::Acquire) == ENDED || is_late()
    }

    /// The drain begins.
    pub(crate) fn drain(&self, until: Instant) {
        let is_first = self.until.set(until);
        debug_assert!(is_first.is_ok(), "a server is drained once");
        self.enter(DRAINING);
    }

    /// The threads end now.
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

    /// Ready when the threads no longer serve.
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
        // Outside the lock: a waker may do anything.
        let waiting = std::mem::take(&mut *self.lock());
        waiting.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Waker>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
