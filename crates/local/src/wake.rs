//! The future that an event wakes. A waiting future leaves its task's number if a task of ours
//! polls it, and its waker otherwise. Everything that a future can wait for calls this.

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

/// The task that was polled last, and the pointer in its waker. A task keeps one waker for ever, so
/// the pair stays right.
#[derive(Debug, Default)]
pub(super) struct Current(Cell<Option<(u32, *const ())>>);

impl Current {
    /// Notes that this task is polled now, so that the events that it waits for keep its number.
    #[inline]
    pub(super) fn set(&self, task: u32, waker: &Waker) {
        self.0.set(Some((task, waker.data())));
    }
}

impl WakeBy {
    /// Notes the future that is polled with this context, unless it is noted already.
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
