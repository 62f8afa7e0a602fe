//! The future that an event wakes. For a waiting future that one of our tasks polls, the number of
//! that task is kept; for any other, its waker. All code that a future can wait for uses this.

use std::cell::Cell;
use std::task::{Context, Waker};

/// The task that `block_on` runs.
pub(super) const MAIN: u32 = 0;

/// The future to wake: one of our own tasks by its number, any other by its waker.
#[derive(Debug, Default)]
pub(super) enum WakeBy {
    #[default]
    None,
    Task(u32),
    Waker(Waker),
}

/// A place to which no waker has a pointer.
static NO_WAKER: u8 = 0;

/// The task that was polled last, and the pointer in its waker. A task keeps one waker forever, so
/// the pair stays valid.
#[derive(Debug)]
pub(super) struct Current {
    task: Cell<u32>,
    /// Before the first poll, the address of `NO_WAKER`. A null pointer would equal the one in
    /// [`Waker::noop`].
    data: Cell<*const ()>,
}

impl Default for Current {
    fn default() -> Self {
        Self {
            task: Cell::default(),
            data: Cell::new((&raw const NO_WAKER).cast()),
        }
    }
}

impl Current {
    /// Notes that this task is polled now, so that the events that it waits for keep its number.
    #[inline]
    pub(super) fn set(&self, task: u32, waker: &Waker) {
        self.task.set(task);
        self.data.set(waker.data());
    }

    /// The task that was polled last.
    pub(super) const fn last(&self) -> u32 {
        self.task.get()
    }

    /// The task that is polled with this context; `None` if it is not one of ours.
    #[inline]
    pub(super) fn task(&self, context: &Context<'_>) -> Option<u32> {
        (self.data.get() == context.waker().data()).then_some(self.task.get())
    }
}

impl WakeBy {
    /// Notes the future that is polled with this context, unless it is noted already.
    #[inline]
    pub(super) fn note(&mut self, current: &Current, context: &Context<'_>) {
        if let Some(task) = current.task(context) {
            *self = Self::Task(task);
            return;
        }
        let waker = context.waker();
        match self {
            Self::Waker(noted) => noted.clone_from(waker),
            _ => *self = Self::Waker(waker.clone()),
        }
    }
}
