//! The future that an event wakes. A waiting future notes the number of its task if a task polls
//! it, and the waker otherwise. Called by everything that futures wait for.

use std::cell::Cell;
use std::task::{Context, Waker};

/// The future to wake: one of our own tasks by its number, any other by its waker.
#[derive(Debug, Default)]
pub(super) enum WakeBy {
    #[default]
    None,
    Task(u32),
    Waker(Waker),
}

/// The task that was polled last, and what its waker points to. A task has one waker for ever, so
/// this never becomes wrong.
#[derive(Debug, Default)]
pub(super) struct Current(Cell<Option<(u32, *const ())>>);

impl Current {
    /// Notes that this task is polled now: the events that it waits for note its number.
    #[inline]
    pub(super) fn set(&self, task: u32, waker: &Waker) {
        self.0.set(Some((task, waker.data())));
    }
}

impl WakeBy {
    /// Notes the future that is polled with this context, if that is not noted already.
    #[inline]
    pub(super) fn note(&mut self, current: &Current, context: &Context<'_>) {
        let waker = context.waker();
        if let Some((task, data)) = current.0.get()
            && data == waker.data()
        {
            *self = Self::Task(task);
            return;
        }
        match self {
            Self::Waker(noted) => noted.clone_from(waker),
            _ => *self = Self::Waker(waker.clone()),
        }
    }
}
