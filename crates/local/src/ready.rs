//! The tasks to poll next: a queue of this thread, without atomics, and a queue under a lock for
//! wakers, which may be on any thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Wake, Waker};

/// Tasks that were woken on this thread, each once.
#[derive(Debug, Default)]
pub(super) struct Ready {
    queue: Vec<u32>,
    queued: Vec<bool>,
}

/// Tasks that were woken through their wakers.
#[derive(Debug, Default)]
pub(super) struct Remote {
    any: AtomicBool,
    queue: Mutex<Vec<u32>>,
    /// Wakes the endpoint's thread.
    doorbell: OnceLock<Waker>,
}

/// The target of a task's waker.
#[derive(Debug)]
pub(super) struct TaskWaker {
    task: u32,
    /// True while the task waits in `Remote::queue`.
    queued: AtomicBool,
    remote: Arc<Remote>,
}

impl Ready {
    pub(super) fn push(&mut self, task: u32) {
        let index = task as usize;
        if self.queued.len() <= index {
            self.queued.resize(index + 1, false);
        }
        if !std::mem::replace(&mut self.queued[index], true) {
            self.queue.push(task);
        }
    }

    /// Takes the tasks that are ready now, and leaves the empty `queue` in exchange. A task that is
    /// woken during a poll waits for the next round, so futures do not starve the network.
    pub(super) fn take(&mut self, queue: &mut Vec<u32>) {
        debug_assert!(queue.is_empty());
        std::mem::swap(&mut self.queue, queue);
    }

    /// Notes that the task is about to be polled. From now on it can be queued again.
    pub(super) fn forget(&mut self, task: u32) {
        self.queued[task as usize] = false;
    }
}

impl Remote {
    /// True if [`Self::drain`] would find something.
    pub(super) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Sets the waker of the endpoint's thread, which a task's waker calls too.
    pub(super) fn set_doorbell(&self, waker: Waker) {
        let _ = self.doorbell.set(waker);
    }

    /// Moves the tasks that are here to the thread's own queue.
    pub(super) fn drain(&self, wakers: &[Arc<TaskWaker>], ready: &mut Ready) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        self.any.store(false, Ordering::Relaxed);
        for task in queue.drain(..) {
            // Acquires the writes that the waking thread made before it woke the task.
            wakers[task as usize].queued.swap(false, Ordering::AcqRel);
            ready.push(task);
        }
    }
}

impl TaskWaker {
    pub(super) fn new(task: u32, remote: &Arc<Remote>) -> Arc<Self> {
        Arc::new(Self {
            task,
            queued: AtomicBool::new(false),
            remote: Arc::clone(remote),
        })
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.queued.swap(true, Ordering::AcqRel) {
            return;
        }
        let remote = &self.remote;
        let mut queue = remote.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.push(self.task);
        remote.any.store(true, Ordering::Relaxed);
        drop(queue);
        // This comes last, because the thread that it wakes checks `any`.
        if let Some(doorbell) = remote.doorbell.get() {
            doorbell.wake_by_ref();
        }
    }
}
