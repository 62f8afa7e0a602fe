//! The futures of handlers. Each request type has places for them, which are used again and again,
//! so a request allocates nothing. A future is made in its place and polled there; if the first
//! poll ends it, the place stays free, and no table records the request.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Waker};

use dunlin_core::{Cx, Refuse, Request};
use dunlin_service::Error;
use dunlin_wire::ErrorCode;

use crate::caller::Caller;
use crate::request::OwnedRequest;
use crate::state::State;
use crate::task::{Origin, TaskTable};

/// The futures of the handlers of one type. Polling an empty place is never ready.
pub(super) trait Handlers {
    /// Makes the future of a request, and polls it for the first time. If the future is not ready,
    /// its task polls it from then on. A panic propagates to the endpoint, after the future was
    /// dropped.
    fn begin(
        &mut self,
        request: Request<'_>,
        tasks: &mut TaskTable,
        state: &Rc<State>,
        cx: &mut Cx<'_>,
    );

    /// Polls the future in this place. If it is ready, the place is empty from here on.
    fn poll(&mut self, slot: usize, context: &mut Context<'_>);

    /// Drops the future in this place. Nothing happens if the place is empty.
    fn remove(&mut self, slot: usize);
}

/// A handler and its futures.
pub(super) struct Serving<H, F> {
    handler: H,
    /// The index of this in the executor.
    index: usize,
    places: Vec<TaskCell<F>>,
    /// The places without a future.
    vacant: Vec<usize>,
}

/// The place of a future, with its task and the waker of the task.
struct TaskCell<F> {
    future: Pin<Box<Option<F>>>,
    waker: Waker,
    task: u32,
}

/// The first poll of a request's future. Dropping this drops the future, because it has panicked.
struct FirstPoll<'a, 'b, F> {
    request: &'a Request<'a>,
    place: &'a mut TaskCell<F>,
    state: &'a State,
    cx: &'a mut Cx<'b>,
}

impl<H, F> Serving<H, F> {
    pub(super) const fn new(handler: H, index: usize) -> Self {
        Self {
            handler,
            index,
            places: Vec::new(),
            vacant: Vec::new(),
        }
    }

    #[cold]
    fn add_place(&mut self, tasks: &mut TaskTable, state: &State) {
        let slot = self.places.len();
        let origin = Origin::Handler {
            served: self.index,
            slot,
        };
        let task = tasks.add(origin, &state.remote);
        self.places.push(TaskCell {
            future: Box::pin(None),
            waker: tasks.at(task).waker.clone(),
            task,
        });
        self.vacant.push(slot);
        // Freeing must never allocate.
        self.vacant.reserve(self.places.capacity());
    }
}

impl<H, F> Handlers for Serving<H, F>
where
    H: FnMut(OwnedRequest, Caller) -> F,
    F: Future<Output = Result<(), Error>>,
{
    fn begin(
        &mut self,
        request: Request<'_>,
        tasks: &mut TaskTable,
        state: &Rc<State>,
        cx: &mut Cx<'_>,
    ) {
        let Some(&slot) = self.vacant.last() else {
            self.add_place(tasks, state);
            return self.begin(request, tasks, state, cx);
        };
        let place = &mut self.places[slot];
        let Ok(owned) = OwnedRequest::new(state, &request, cx) else {
            return request.refuse(cx, ErrorCode::OVERLOADED);
        };
        let (handler, task) = (&mut self.handler, place.task);
        let first = FirstPoll {
            request: &request,
            place,
            state,
            cx,
        };
        let is_over = first.run(|| handler(owned, Caller::new(Rc::clone(state))));
        let kept = request.keep_unanswered(cx);
        if is_over {
            return;
        }
        self.vacant.pop();
        if let Some(ticket) = kept {
            tasks.assign(ticket, task);
        }
    }

    fn poll(&mut self, slot: usize, context: &mut Context<'_>) {
        let Some(place) = self.places.get_mut(slot) else {
            return;
        };
        if is_ready(place.future.as_mut(), context) {
            // This comes first, because dropping the future may panic.
            self.vacant.push(slot);
            place.future.set(None);
        }
    }

    fn remove(&mut self, slot: usize) {
        let Some(place) = self.places.get_mut(slot) else {
            return;
        };
        if place.future.is_some() {
            // This comes first, because dropping the future may panic.
            self.vacant.push(slot);
            place.future.set(None);
        }
    }
}

/// Polls the future in a place, if there is one.
#[inline]
fn is_ready<F: Future>(place: Pin<&mut Option<F>>, context: &mut Context<'_>) -> bool {
    let future = place.as_pin_mut();
    future.is_some_and(|future| future.poll(context).is_ready())
}

impl<F: Future> FirstPoll<'_, '_, F> {
    /// Makes the future and polls it. Returns whether it is over.
    #[inline]
    fn run(mut self, make: impl FnOnce() -> F) -> bool {
        let Self {
            place, state, cx, ..
        } = &mut self;
        let TaskCell {
            future,
            waker,
            task,
        } = &mut **place;
        // The future is looked up once, because the compiler would load the place again after each
        // call.
        let mut future = future.as_mut();
        let is_over = state.poll(*task, waker, cx, |context| {
            future.set(Some(make()));
            let is_over = is_ready(future.as_mut(), context);
            if is_over {
                future.set(None);
            }
            is_over
        });
        // It has not panicked.
        std::mem::forget(self);
        is_over
    }
}

impl<F> Drop for FirstPoll<'_, '_, F> {
    /// Inlined, so that the fields need not be in memory while the future is polled.
    #[inline(always)]
    fn drop(&mut self) {
        after_panic(self.request, self.place, self.state, self.cx);
    }
}

/// Drops the future whose first poll has panicked. If other code has the request now, that code
/// may still answer it.
#[cold]
#[inline(never)]
fn after_panic<F>(request: &Request<'_>, place: &mut TaskCell<F>, state: &State, cx: &mut Cx<'_>) {
    let future = &mut place.future;
    state.on_panic();
    state.contain(|| state.poll(place.task, &place.waker, cx, |_| future.set(None)));
    request.keep_unanswered(cx);
}
