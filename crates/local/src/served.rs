//! The places of one request type's futures: those that are free now, and the tasks of all. If the
//! first poll of a request's future ends it, its place stays the next one to use, and no table
//! records the request.

use crate::task::{HandlerSlot, Origin, TaskTable};

/// A place, and its task.
#[derive(Clone, Copy)]
pub(super) struct FuturePlace {
    pub(super) slot: usize,
    pub(super) task: u32,
}

/// The places of one type.
pub(super) struct Places {
    /// The index of the type's handlers in the executor.
    index: usize,
    /// The place for the next request.
    next: FuturePlace,
    /// The place of the waiting future that is polled.
    selected: FuturePlace,
    /// Further places without a future.
    vacant: Vec<FuturePlace>,
    /// The number of all places.
    count: usize,
}

impl Places {
    /// The first place, of the handlers with this index.
    pub(super) fn new(index: usize, tasks: &mut TaskTable) -> Self {
        let none = FuturePlace { slot: 0, task: 0 };
        let mut places = Self {
            index,
            next: none,
            selected: none,
            vacant: Vec::new(),
            count: 0,
        };
        places.next = places.add(tasks);
        places
    }

    /// The place of the next request's future.
    #[inline]
    pub(super) const fn next(&self) -> FuturePlace {
        self.next
    }

    /// The place of the waiting future that is polled.
    #[inline]
    pub(super) const fn selected(&self) -> FuturePlace {
        self.selected
    }

    /// Notes that the future in this place is polled next.
    pub(super) fn select(&mut self, place: FuturePlace) {
        self.selected = place;
    }

    /// The number of all places.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// Notes that the next place has a future now.
    pub(super) fn occupy(&mut self, tasks: &mut TaskTable) {
        self.next = match self.vacant.pop() {
            Some(vacant) => vacant,
            None => self.add(tasks),
        };
    }

    /// Notes that the future in this place is over.
    #[inline]
    pub(super) fn free(&mut self, place: FuturePlace) {
        self.vacant.push(place);
    }

    #[cold]
    fn add(&mut self, tasks: &mut TaskTable) -> FuturePlace {
        let slot = self.count;
        self.count += 1;
        let task = tasks.add(Origin::Handler(HandlerSlot {
            served: self.index,
            slot,
        }));
        // Freeing must never allocate.
        self.vacant.reserve(self.count);
        FuturePlace { slot, task }
    }
}
