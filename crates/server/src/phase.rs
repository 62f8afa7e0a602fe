//! The phase that all threads of a server share: they serve, go on serving while the server is
//! about to leave, drain until a deadline, and end. They never return to an earlier phase.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

const SERVING: u8 = 0;
const LEAVING: u8 = 1;
const DRAINING: u8 = 2;
const ENDED: u8 = 3;

#[derive(Debug, Default)]
pub(crate) struct Phase {
    phase: AtomicU8,
    /// The deadline of the drain.
    until: OnceLock<Instant>,
    /// Wakers of threads, and of their futures, that wait until the threads no longer serve.
    waiting: Mutex<Vec<Waker>>,
}

impl Phase {
    pub(crate) fn is_serving(&self) -> bool {
        self.now() <= LEAVING
    }

    /// Whether the server is about to leave, drains or has ended. Its health is then not serving.
    pub(crate) fn is_leaving(&self) -> bool {
        self.now() != SERVING
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.now() == ENDED
    }

    /// Whether the drain's deadline has passed, or the threads end.
    pub(crate) fn is_over(&self) -> bool {
        let is_late = || {
            self.until
                .get()
                .is_some_and(|until| *until <= Instant::now())
        };
        self.has_ended() || is_late()
    }

    /// Begins the delay before the drain.
    pub(crate) fn leave(&self) {
        self.phase.store(LEAVING, Ordering::Release);
    }

    /// Begins the drain. Without a deadline, it lasts until the last session has ended.
    pub(crate) fn drain(&self, until: Option<Instant>) {
        let is_first = until.is_none_or(|until| self.until.set(until).is_ok());
        debug_assert!(is_first, "a server is drained once");
        self.enter(DRAINING);
    }

    /// Ends the threads now.
    pub(crate) fn end(&self) {
        self.enter(ENDED);
    }

    /// Wakes this waker once, when the threads no longer serve.
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

    fn now(&self) -> u8 {
        self.phase.load(Ordering::Acquire)
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
