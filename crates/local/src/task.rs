//! The tasks of a `Local`: places for futures that are polled, each with its waker for ever, and
//! which request a handler's future was made for.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Waker;

use dunlin_core::Ticket;

use crate::ready::{Remote, TaskWaker};

/// A future that was spawned.
pub(super) type Spawned = Pin<Box<dyn Future<Output = ()>>>;

/// The task that `block_on` runs.
pub(super) const MAIN: u32 = 0;

/// See the file.
pub(super) struct Task {
    pub(super) waker: Waker,
    pub(super) place: Origin,
    /// The request that its future was made for, if that outlived the first poll.
    ticket: Option<Ticket>,
}

/// Where the future of a task is.
pub(super) enum Origin {
    /// With `block_on`.
    Main,
    Handler {
        served: usize,
        slot: usize,
    },
    Spawned(Option<Spawned>),
}

/// All tasks, by number. None ever goes.
#[derive(Default)]
pub(super) struct TaskTable {
    tasks: Vec<Task>,
    wakers: Vec<Arc<TaskWaker>>,
    /// The task that a request was given to, by the index of its ticket.
    by_ticket: Vec<u32>,
}

impl TaskTable {
    pub(super) fn add(&mut self, place: Origin, remote: &Arc<Remote>) -> u32 {
        let task = u32::try_from(self.tasks.len()).expect("fewer than 2^32 tasks fit in memory");
        let waker = TaskWaker::new(task, remote);
        self.wakers.push(Arc::clone(&waker));
        self.tasks.push(Task {
            waker: waker.into(),
            place,
            ticket: None,
        });
        task
    }

    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }

    #[inline]
    pub(super) fn at(&mut self, task: u32) -> &mut Task {
        &mut self.tasks[task as usize]
    }

    #[inline]
    pub(super) fn find(&mut self, task: u32) -> Option<&mut Task> {
        self.tasks.get_mut(task as usize)
    }

    pub(super) fn wakers(&self) -> &[Arc<TaskWaker>] {
        &self.wakers
    }

    /// Notes which task goes on with a request.
    #[inline]
    pub(super) fn assign(&mut self, ticket: Ticket, task: u32) {
        let index = ticket.index();
        if self.by_ticket.len() <= index {
            self.by_ticket.resize(index + 1, MAIN);
        }
        self.by_ticket[index] = task;
        self.tasks[task as usize].ticket = Some(ticket);
    }

    /// The task whose future was made for this request. `None`: it has another one now.
    pub(super) fn of(&self, ticket: Ticket) -> Option<u32> {
        let task = *self.by_ticket.get(ticket.index())?;
        (self.tasks[task as usize].ticket == Some(ticket)).then_some(task)
    }
}
