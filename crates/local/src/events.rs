//! Sessions that open and close, for futures. Each [`Events`] has a queue of its own, which is
//! bounded, because peers may open and close sessions faster than a future reads.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::Poll;

use dunlin_core::SessionEvent;

use crate::state::State;
use crate::wake::WakeBy;

/// Events that a queue holds; the oldest make room for new ones.
const MAX_EVENTS: usize = 1024;

/// The queues of all [`Events`] of an endpoint.
#[derive(Default)]
pub(super) struct Watchers(RefCell<Vec<Rc<Queue>>>);

#[derive(Default)]
struct Queue {
    events: RefCell<VecDeque<SessionEvent>>,
    missed: Cell<u64>,
    future: RefCell<WakeBy>,
}

/// The sessions of an endpoint that open and close; made by [`Caller::events`](crate::Caller).
pub struct Events {
    state: Rc<State>,
    queue: Rc<Queue>,
}

impl Watchers {
    /// Passes an event on; calls `wake` with the futures that wait for one.
    pub(super) fn on_event(&self, event: SessionEvent, wake: impl Fn(WakeBy)) {
        self.each(|queue| {
            queue.push(event);
            wake(queue.future.take());
        });
    }

    /// Calls `wake` with all futures that wait, because there will be no more events.
    pub(super) fn end(&self, wake: impl Fn(WakeBy)) {
        self.each(|queue| wake(queue.future.take()));
    }

    fn each(&self, visit: impl Fn(&Queue)) {
        self.0.borrow().iter().for_each(|queue| visit(queue));
    }

    fn forget(&self, gone: &Rc<Queue>) {
        let mut all = self.0.borrow_mut();
        let at = all.iter().position(|queue| Rc::ptr_eq(queue, gone));
        if let Some(at) = at {
            all.remove(at);
        }
    }
}

impl Queue {
    fn push(&self, event: SessionEvent) {
        let mut events = self.events.borrow_mut();
        if events.len() == MAX_EVENTS {
            events.pop_front();
            self.missed.set(self.missed.get() + 1);
        }
        events.push_back(event);
    }
}

impl Events {
    pub(super) fn new(state: Rc<State>) -> Self {
        let queue = Rc::<Queue>::default();
        state.watchers.0.borrow_mut().push(Rc::clone(&queue));
        Self { state, queue }
    }

    /// The next event; `None`: the endpoint is gone.
    pub async fn next(&mut self) -> Option<SessionEvent> {
        std::future::poll_fn(|context| {
            let event = self.queue.events.borrow_mut().pop_front();
            if event.is_some() || self.state.with(|_| ()).is_none() {
                return Poll::Ready(event);
            }
            let mut future = self.queue.future.borrow_mut();
            future.note(&self.state.current, context);
            Poll::Pending
        })
        .await
    }

    /// The number of events that were lost because more than 1024 waited.
    pub fn missed(&self) -> u64 {
        self.queue.missed.get()
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.state.watchers.forget(&self.queue);
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events")
            .field("waiting", &self.queue.events.borrow().len())
            .finish_non_exhaustive()
    }
}
