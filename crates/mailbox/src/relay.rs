//! Tasks whose calls have ended, and which are woken together. A task of a runtime costs a system
//! call if another thread wakes it, and next to nothing if the runtime's own thread does. So the
//! owner of a mailbox wakes one task of a burst, and that task wakes the others when it looks at
//! its call.
//!
//! Invariant: each waker in the list is woken by a task that polls, or by the owner, which looks
//! again until the list is empty. No thread waits for the list: a task that finds it locked passes
//! it over, and the owner then wakes its task itself.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

use crate::sync::{AtomicBool, AtomicU32, Mutex, Ordering};

#[derive(Debug, Default)]
pub(super) struct Relay {
    /// The length of the list, for tasks that only check whether the list is empty.
    len: AtomicU32,
    /// No task was woken since the list was empty. Only the owner uses it.
    is_new: AtomicBool,
    wakers: Mutex<VecDeque<Waker>>,
}

impl Relay {
    /// Adds the waker of a task.
    pub(super) fn add(&self, waker: Waker) {
        let Ok(mut wakers) = self.wakers.try_lock() else {
            return wake(waker);
        };
        if wakers.is_empty() {
            self.is_new.store(true, Ordering::Relaxed);
        }
        wakers.push_back(waker);
        self.set_len(&wakers);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len.load(Ordering::Relaxed) == 0
    }

    pub(super) fn is_new(&self) -> bool {
        self.is_new.load(Ordering::Relaxed)
    }

    /// Wakes the first task, which will wake the others.
    pub(super) fn wake_first(&self) {
        self.is_new.store(false, Ordering::Relaxed);
        if let Some(waker) = self.next() {
            wake(waker);
        }
    }

    /// Wakes every task, unless another thread is about to.
    #[inline]
    pub(super) fn wake_all(&self) {
        while !self.is_empty()
            && let Some(waker) = self.next()
        {
            wake(waker);
        }
    }

    /// The lock is free again before the task is woken, because a waker is code of the program.
    fn next(&self) -> Option<Waker> {
        let mut wakers = self.wakers.try_lock().ok()?;
        let waker = wakers.pop_front();
        self.set_len(&wakers);
        waker
    }

    fn set_len(&self, wakers: &VecDeque<Waker>) {
        let len = u32::try_from(wakers.len()).unwrap_or(u32::MAX);
        self.len.store(len, Ordering::Relaxed);
    }
}

/// Wakes a task. A waker is code of the program, and its panic must affect only its own task.
pub(super) fn wake(waker: Waker) {
    let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
}
