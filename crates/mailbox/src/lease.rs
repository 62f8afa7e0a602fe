//! A lease lets a worker, such as a task of a runtime, handle a call that the owner of a mailbox
//! has taken. The worker may run on another thread than the owner.
//!
//! The worker ends the call ([`Mailbox::end`](crate::Mailbox::end)) and then leaves. If the mailbox
//! reports that the caller has dropped the call, the owner gives the lease up. The second of these
//! two steps frees the slot, on whichever thread it happens; before it, the worker may still use
//! the slot's content. If the caller has not dropped the call, the caller frees the slot.
//!
//! Invariant: each call has a lease of its own, so a worker that leaves late never touches the
//! lease of the slot's next call.

use std::task::{Context, Poll, Waker};

use crate::sync::{AtomicU32, Ordering};
use crate::task_waker::Wakeup;

const GIVEN_UP: u32 = 1;
const LEFT: u32 = 2;

/// A taken call that the owner has handed to a worker.
#[derive(Debug, Default)]
pub struct Lease {
    state: AtomicU32,
    /// Wakes the worker's task.
    worker: Wakeup,
}

impl Lease {
    /// The owner's step after [`News::Dropped`](crate::News): wakes the worker. Returns true if the
    /// worker has left, so that the owner must release the slot.
    pub fn give_up(&self) -> bool {
        let has_left = self.state.fetch_or(GIVEN_UP, Ordering::AcqRel) & LEFT != 0;
        if !has_left {
            self.worker.wake();
        }
        has_left
    }

    /// The worker's step after it has ended the call. Returns true if the lease is given up, so
    /// that the worker must release the slot.
    pub fn leave(&self) -> bool {
        self.state.fetch_or(LEFT, Ordering::AcqRel) & GIVEN_UP != 0
    }

    /// Whether the owner has given the lease up, because the caller has dropped the call.
    pub fn is_given_up(&self) -> bool {
        self.state.load(Ordering::Acquire) & GIVEN_UP != 0
    }

    /// Ready once the owner has given the lease up. Until then, this registers the worker's task,
    /// which that event wakes.
    pub fn poll_given_up(&self, context: &Context<'_>) -> Poll<()> {
        self.worker.register(context.waker());
        match self.is_given_up() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    /// Drops the waker of the worker's task, because the waker keeps the memory of that task.
    pub fn forget_task(&self) {
        self.worker.register(Waker::noop());
    }
}

#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod tests;
