//! All futures of a `Local`, and how the executor polls one: it lends the endpoint to the future,
//! notes the number of its task, by which events wake it, and catches its panics.
//!
//! Budget of a call or a request, in nanoseconds at 2.1 GHz, on top of what the poll API takes:
//!
//! | step | ns |
//! |---|---|
//! | find the task, lend the endpoint, call through the future's vtable | 10 |
//! | the future's own state: msgbufs into it and out of it | 15 |
//! | request: its copy, its box, its place | 15 |
//! | call: its response, offered and taken | 5 |

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use dunlin_core::{Cx, Ticket};
use dunlin_wire::ReqType;

use crate::caller::Caller;
use crate::request::OwnedRequest;
use crate::spawn::Handlers;
use crate::state::State;
use crate::task::{MAIN, Origin, Spawned, Task, TaskTable};

/// The futures of a `Local`, in their tasks.
#[derive(Default)]
pub(super) struct Executor {
    served: Vec<Served>,
    /// Indices into `served`, by request type.
    by_type: Vec<u32>,
    tasks: TaskTable,
    /// Tasks for spawned futures that are free now.
    vacant: Vec<u32>,
    /// Kept between rounds so that its memory is reused.
    queue: Vec<u32>,
}

/// The handlers of a request type, and the tasks of their places.
struct Served {
    handlers: Box<dyn Handlers>,
    tasks: Vec<u32>,
    vacant: Vec<usize>,
}

impl Executor {
    /// The task of `block_on` is the first.
    pub(super) fn set_up(&mut self, state: &State) {
        let main = self.tasks.add(Origin::Main, &state.remote);
        debug_assert_eq!(main, MAIN);
    }

    pub(super) fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// Registers the handlers of a type.
    pub(super) fn serve(&mut self, req_type: ReqType, handlers: Box<dyn Handlers>) {
        let place = u32::try_from(self.served.len()).expect("request types are 16 bits");
        self.served.push(Served {
            handlers,
            tasks: Vec::new(),
            vacant: Vec::new(),
        });
        let index = usize::from(req_type.0);
        if self.by_type.len() <= index {
            self.by_type.resize(index + 1, u32::MAX);
        }
        self.by_type[index] = place;
    }

    /// Makes the future of a request, and polls it; returns its task if it goes on. While the
    /// `Local` is being dropped, it serves no requests.
    #[inline]
    pub(super) fn begin(
        &mut self,
        request: OwnedRequest,
        state: &Rc<State>,
        cx: &mut Cx<'_>,
    ) -> Option<u32> {
        let index = *self.by_type.get(usize::from(request.req_type().0))?;
        let served = self.served.get_mut(index as usize)?;
        let Some(&slot) = served.vacant.last() else {
            self.add_place(index as usize, state);
            return self.begin(request, state, cx);
        };
        let task = served.tasks[slot];
        let Task { waker, .. } = self.tasks.at(task);
        let caller = Caller::new(Rc::clone(state));
        let handlers = &mut served.handlers;
        let polled = guarded(state, cx, task, waker, |context| {
            handlers.begin(slot, request, caller, context)
        });
        match polled {
            Some(Poll::Ready(())) => None,
            Some(Poll::Pending) => {
                served.vacant.pop();
                Some(task)
            }
            None => {
                let _ = guarded(state, cx, task, waker, |_| handlers.remove(slot));
                None
            }
        }
    }

    /// Notes that a task continues a request, until the client gives the request up.
    pub(super) fn assign(&mut self, ticket: Ticket, task: u32) {
        self.tasks.assign(ticket, task);
    }

    #[cold]
    fn add_place(&mut self, index: usize, state: &State) {
        let served = &mut self.served[index];
        let slot = served.tasks.len();
        let place = Origin::Handler {
            served: index,
            slot,
        };
        served.tasks.push(self.tasks.add(place, &state.remote));
        served.vacant.push(slot);
        // Freeing must never allocate.
        served.vacant.reserve(served.tasks.capacity());
    }

    /// Takes a spawned future over, and polls it for the first time.
    pub(super) fn adopt(&mut self, future: Spawned, state: &State, cx: &mut Cx<'_>) {
        let task = match self.vacant.pop() {
            Some(task) => task,
            None => {
                self.vacant.reserve(self.tasks.len() + 1);
                self.tasks.add(Origin::Spawned(None), &state.remote)
            }
        };
        self.tasks.at(task).place = Origin::Spawned(Some(future));
        self.poll(task, state, cx);
    }

    /// Polls the future of a task that is not `MAIN`, if there is one.
    #[inline]
    pub(super) fn poll(&mut self, task: u32, state: &State, cx: &mut Cx<'_>) {
        let Some(Task { waker, place, .. }) = self.tasks.find(task) else {
            return;
        };
        let served = &mut self.served;
        let polled = guarded(state, cx, task, waker, |context| match place {
            Origin::Spawned(future) => poll_spawned(future, context),
            Origin::Handler {
                served: index,
                slot,
            } => served[*index].handlers.poll(*slot, context),
            Origin::Main => Poll::Pending,
        });
        match polled {
            Some(Poll::Pending) => {}
            Some(Poll::Ready(())) => self.vacate(task),
            // Dropping the future drops all that it holds, such as a request without an answer.
            None => self.remove(task, state, cx),
        }
    }

    /// Drops the future of a handler whose client no longer waits, and with it the calls and
    /// requests that the future holds. If the task has a future for a newer request by now, that
    /// future stays.
    pub(super) fn give_up(&mut self, ticket: Ticket, state: &State, cx: &mut Cx<'_>) {
        if let Some(task) = self.tasks.of(ticket) {
            self.remove(task, state, cx);
        }
    }

    /// Drops a task's future, if it has one.
    #[cold]
    fn remove(&mut self, task: u32, state: &State, cx: &mut Cx<'_>) {
        let Task { waker, place, .. } = self.tasks.at(task);
        let served = &mut self.served;
        let removed = guarded(state, cx, task, waker, |_| match place {
            Origin::Spawned(future) => future.take().is_some(),
            Origin::Handler {
                served: index,
                slot,
            } => served[*index].handlers.remove(*slot),
            Origin::Main => false,
        });
        // A future that panics while it is dropped is gone as well.
        if removed != Some(false) {
            self.vacate(task);
        }
    }

    /// Notes that the future of a task is gone.
    #[inline]
    fn vacate(&mut self, task: u32) {
        match self.tasks.at(task).place {
            Origin::Spawned(_) => self.vacant.push(task),
            Origin::Handler { served, slot } => self.served[served].vacant.push(slot),
            Origin::Main => {}
        }
    }

    /// Polls the tasks that were woken. Returns true if the task of `block_on` is one of them.
    pub(super) fn poll_ready(&mut self, state: &State, cx: &mut Cx<'_>) -> bool {
        let mut queue = std::mem::take(&mut self.queue);
        {
            let mut ready = state.ready.borrow_mut();
            if state.remote.any() {
                state.remote.drain(self.tasks.wakers(), &mut ready);
            }
            ready.take(&mut queue);
        }
        let mut is_main_ready = false;
        for &task in &queue {
            state.ready.borrow_mut().forget(task);
            match task {
                MAIN => is_main_ready = true,
                _ => self.poll(task, state, cx),
            }
        }
        queue.clear();
        self.queue = queue;
        is_main_ready
    }

    /// Polls the future of `block_on`. Its panics go to the caller of `block_on`.
    pub(super) fn poll_main(
        &mut self,
        state: &State,
        cx: &mut Cx<'_>,
        main: impl FnOnce(&mut Context<'_>),
    ) {
        let waker = &self.tasks.at(MAIN).waker;
        state.current.set(MAIN, waker);
        let context = &mut Context::from_waker(waker);
        state.lent.lend(cx, || main(context));
    }
}

/// Polls, or drops, a task's future. Returns `None` if the future panicked; the panic is counted.
#[inline]
fn guarded<R>(
    state: &State,
    cx: &mut Cx<'_>,
    task: u32,
    waker: &Waker,
    run: impl FnOnce(&mut Context<'_>) -> R,
) -> Option<R> {
    state.current.set(task, waker);
    let mut context = Context::from_waker(waker);
    let caught = state
        .lent
        .lend(cx, || catch_unwind(AssertUnwindSafe(|| run(&mut context))));
    if caught.is_err() {
        state.panics.set(state.panics.get() + 1);
    }
    caught.ok()
}

/// Polls a spawned future, and drops it when it is ready.
#[inline]
fn poll_spawned(future: &mut Option<Spawned>, context: &mut Context<'_>) -> Poll<()> {
    let Some(running) = future else {
        return Poll::Pending;
    };
    if running.as_mut().poll(context).is_pending() {
        return Poll::Pending;
    }
    *future = None;
    Poll::Ready(())
}
