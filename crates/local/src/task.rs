//! The tasks of a `Local`: places for futures. Each keeps its waker forever, and the ticket of the
//! request for which a handler's future was made.

use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;

use dunlin_core::Ticket;

use crate::ready::TaskWaker;
use crate::state::{Spawned, State};
use crate::wake::MAIN;

/// A place for a future.
pub(super) struct Task {
    pub(super) waker: Waker,
    pub(super) place: Origin,
    /// The request for which the future was made, if the first poll did not end that request.
    ticket: Option<Ticket>,
}

/// A place for a handler's future.
#[derive(Clone, Copy)]
pub(super) struct HandlerSlot {
    /// The index of the handler in the executor.
    pub(super) served: usize,
    /// The number of the place among those of its handler.
    pub(super) slot: usize,
}

/// Where a task's future is stored.
pub(super) enum Origin {
    /// In `block_on`.
    Main,
    Handler(HandlerSlot),
    Spawned(Spawned),
    /// Nowhere: the task is for spawned futures, and has none.
    Vacant,
}

/// All tasks, by number. Tasks are never removed.
pub(super) struct TaskTable {
    pub(super) state: Rc<State>,
    tasks: Vec<Task>,
    wakers: Vec<Arc<TaskWaker>>,
    /// The task that a request was given to, by the index of its ticket.
    by_ticket: Vec<u32>,
}

impl TaskTable {
    /// The tasks of a `Local` with this state: the one for `block_on`.
    pub(super) fn new(state: Rc<State>) -> Self {
        let mut tasks = Self {
            state,
            tasks: Vec::new(),
            wakers: Vec::new(),
            by_ticket: Vec::new(),
        };
        let main = tasks.add(Origin::Main);
        debug_assert_eq!(main, MAIN);
        tasks
    }

    pub(super) fn add(&mut self, place: Origin) -> u32 {
        let task = u32::try_from(self.tasks.len()).expect("fewer than 2^32 tasks fit in memory");
        let waker = TaskWaker::new(task, &self.state.remote);
        self.wakers.push(Arc::clone(&waker));
        self.tasks.push(Task {
            waker: waker.into(),
            place,
            ticket: None,
        });
        task
    }

    /// The waker of a task.
    #[inline]
    pub(super) fn waker(&self, task: u32) -> &Waker {
        &self.tasks[task as usize].waker
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

    /// Notes which task continues a request.
    #[inline]
    pub(super) fn assign(&mut self, ticket: Ticket, task: u32) {
        let index = ticket.index();
        if self.by_ticket.len() <= index {
            self.by_ticket.resize(index + 1, MAIN);
        }
        self.by_ticket[index] = task;
        self.tasks[task as usize].ticket = Some(ticket);
    }

    /// Notes that a task has a future for another request, which has no ticket.
    #[cold]
    pub(super) fn unassign(&mut self, task: u32) {
        self.tasks[task as usize].ticket = None;
    }

    /// The task whose future was made for this request; `None` if that task has another future now.
    pub(super) fn of(&self, ticket: Ticket) -> Option<u32> {
        let task = *self.by_ticket.get(ticket.index())?;
        (self.tasks[task as usize].ticket == Some(ticket)).then_some(task)
    }
}
