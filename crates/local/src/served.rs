//! The handlers of one request type, with the places of their futures that are free now. If a
//! request's future ends with its first poll, the next request's future takes the same place, and
//! no table records the request.

use std::sync::Arc;
use std::task::Context;

use crate::ready::Remote;
use crate::request::Parts;
use crate::spawn::Handlers;
use crate::task::{HandlerSlot, Origin, TaskTable};

/// The handlers of one type.
pub(super) struct Served {
    handlers: Box<dyn Handlers>,
    /// The index of this in the executor.
    index: usize,
    /// The place for the next request.
    next: Vacant,
    /// Further places without a future.
    vacant: Vec<Vacant>,
    /// The number of all places.
    places: usize,
}

/// A place without a future, and its task.
#[derive(Clone, Copy)]
struct Vacant {
    slot: usize,
    task: u32,
}

impl Served {
    pub(super) fn new(
        handlers: impl Handlers + 'static,
        index: usize,
        tasks: &mut TaskTable,
        remote: &Arc<Remote>,
    ) -> Self {
        let mut served = Self {
            handlers: Box::new(handlers),
            index,
            next: Vacant { slot: 0, task: 0 },
            vacant: Vec::new(),
            places: 0,
        };
        served.next = served.add_place(tasks, remote);
        served
    }

    /// The task of the next request's future.
    #[inline]
    pub(super) const fn next_task(&self) -> u32 {
        self.next.task
    }

    /// Notes that the next place has a future now.
    pub(super) fn occupy(&mut self, tasks: &mut TaskTable, remote: &Arc<Remote>) {
        self.next = match self.vacant.pop() {
            Some(vacant) => vacant,
            None => self.add_place(tasks, remote),
        };
    }

    #[cold]
    fn add_place(&mut self, tasks: &mut TaskTable, remote: &Arc<Remote>) -> Vacant {
        let slot = self.places;
        self.places += 1;
        self.handlers.add_place();
        let origin = Origin::Handler(HandlerSlot {
            served: self.index,
            slot,
        });
        let task = tasks.add(origin, remote);
        // Freeing must never allocate.
        self.vacant.reserve(self.places);
        Vacant { slot, task }
    }

    /// Makes the future of a request in the next place, and polls it. Returns whether it is over.
    #[inline(always)]
    pub(super) fn begin(&mut self, arrived: Box<Parts>, context: &mut Context<'_>) -> bool {
        self.handlers.run(self.next.slot, Some(arrived), context)
    }

    /// Drops the future in the next place, because its first poll has panicked.
    pub(super) fn remove_next(&mut self) {
        self.handlers.remove(self.next.slot);
    }

    /// Polls the future in a place, if there is one.
    #[inline(always)]
    pub(super) fn poll(&mut self, slot: usize, task: u32, context: &mut Context<'_>) {
        if self.handlers.run(slot, None, context) {
            self.vacant.push(Vacant { slot, task });
        }
    }

    /// Drops the future in a place, if there is one, and frees the place. `has_panicked`: a poll
    /// has panicked. The place had a future then, even if the poll has dropped it since.
    pub(super) fn remove(&mut self, slot: usize, task: u32, has_panicked: bool) {
        if has_panicked || self.handlers.has(slot) {
            // This comes first, because dropping the future may panic.
            self.vacant.push(Vacant { slot, task });
            self.handlers.remove(slot);
        }
    }
}
