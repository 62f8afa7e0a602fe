//! The futures of handlers. Each request type has places for them, which are used again and again,
//! so a request allocates nothing. A future is made in its place and polled there.
//!
//! All polls of a handler's future, the first and the later ones, are one call in one function,
//! because only then does the compiler inline the future. Everything else that an ordinary request
//! needs is inlined there too, so that only this function saves registers.

use std::pin::Pin;
use std::rc::Rc;
use std::task::Context;

use dunlin_core::{Cx, Refuse, Request};
use dunlin_service::Error;
use dunlin_wire::ErrorCode;

use crate::caller::Caller;
use crate::request::{OwnedRequest, Parts};
use crate::served::{FuturePlace, Places};
use crate::state::State;
use crate::task::TaskTable;

/// The futures of the handlers of one type.
pub(super) trait Handlers {
    /// Makes the future of a request that has arrived, and polls it; if it is not ready, its task
    /// polls it from then on. Without a request, polls the future in the place that
    /// [`Self::select`] has named.
    ///
    /// A panic of the future propagates, after the future was dropped.
    fn run(
        &mut self,
        arrived: Option<&Request<'_>>,
        state: &Rc<State>,
        tasks: &mut TaskTable,
        cx: &mut Cx<'_>,
    );

    /// Names the place of the future to poll.
    fn select(&mut self, place: FuturePlace);

    /// Drops the future in this place, if there is one, and frees the place.
    fn remove(&mut self, place: FuturePlace);
}

/// A handler and its futures.
pub(super) struct Serving<H, F> {
    handler: H,
    places: Places,
    /// The futures, by the numbers of their places.
    futures: Vec<Pin<Box<Option<F>>>>,
}

/// A poll in progress. Dropping this drops the future, because it has panicked. It has few fields,
/// because all of them occupy registers while the future is polled; `State` knows the others.
struct Polling<'a, H, F> {
    serving: &'a mut Serving<H, F>,
    tasks: &'a mut TaskTable,
}

impl<H, F> Serving<H, F> {
    pub(super) fn new(handler: H, places: Places) -> Self {
        Self {
            handler,
            futures: vec![Box::pin(None)],
            places,
        }
    }

    /// The place of the future to poll. `is_new`: its request has just arrived.
    #[inline(always)]
    fn place(&self, is_new: bool) -> FuturePlace {
        match is_new {
            true => self.places.next(),
            false => self.places.selected(),
        }
    }

    /// Keeps a request that is not answered, and its future, which waits, in its place. If the
    /// future is over, other code may have the request.
    #[inline(never)]
    fn keep(&mut self, is_over: bool, tasks: &mut TaskTable) {
        let ticket = tasks.state.keep_arrived();
        if is_over {
            return;
        }
        let task = self.places.next().task;
        match ticket {
            Some(ticket) => tasks.assign(ticket, task),
            // Otherwise the end of the place's last request would drop this future.
            None => tasks.unassign(task),
        }
        self.places.occupy(tasks);
        if self.futures.len() < self.places.count() {
            self.futures.push(Box::pin(None));
        }
    }

    /// Drops the future whose poll has panicked. If other code has the request now, that code may
    /// still answer it.
    #[cold]
    #[inline(never)]
    fn after_panic(&mut self, tasks: &TaskTable) {
        let state = &*tasks.state;
        let is_new = state.lent.has_arrived();
        let place = self.place(is_new);
        state.on_panic();
        if !is_new {
            // This comes first, because dropping the future may panic.
            self.places.free(place);
        }
        let is_whole = state.contain(|| {
            if let Some(future) = self.futures.get_mut(place.slot) {
                future.set(None);
            }
        });
        if !is_new && !is_whole {
            state.on_panic();
        }
        state.keep_arrived();
        state.calls.end_offer();
    }
}

impl<H, F> Serving<H, F>
where
    H: FnMut(OwnedRequest, Caller) -> F,
    F: Future<Output = Result<(), Error>>,
{
    /// Makes the future of a request in this place, if one has arrived, and polls the place's
    /// future. Returns whether it is over; then, the place is empty. An empty place is never over.
    #[inline(always)]
    fn poll(&mut self, slot: usize, parts: Option<Box<Parts>>, context: &mut Context<'_>) -> bool {
        let Some(place) = self.futures.get_mut(slot) else {
            return false;
        };
        let mut place = place.as_mut();
        if let Some(parts) = parts {
            let request = OwnedRequest::of(parts);
            let caller = Caller::new(request.shared_state());
            place.set(Some((self.handler)(request, caller)));
        }
        let Some(future) = place.as_mut().as_pin_mut() else {
            return false;
        };
        let is_over = future.poll(context).is_ready();
        if is_over {
            place.set(None);
        }
        is_over
    }
}

impl<H, F> Handlers for Serving<H, F>
where
    H: FnMut(OwnedRequest, Caller) -> F,
    F: Future<Output = Result<(), Error>>,
{
    fn run(
        &mut self,
        arrived: Option<&Request<'_>>,
        state: &Rc<State>,
        tasks: &mut TaskTable,
        cx: &mut Cx<'_>,
    ) {
        let mut parts = None;
        if let Some(request) = arrived {
            parts = Parts::of(state, request, cx);
            if parts.is_none() {
                return request.ticket(cx).refuse(cx, ErrorCode::OVERLOADED);
            }
        }
        state.lent.lend_with(cx, arrived, || {
            let polling = Polling {
                serving: self,
                tasks,
            };
            let place = polling.serving.place(arrived.is_some());
            let waker = polling.tasks.waker(place.task);
            let is_over = state.poll_lent(place.task, waker, |context| {
                polling.serving.poll(place.slot, parts, context)
            });
            // It has not panicked.
            std::mem::forget(polling);
            match arrived {
                Some(_) if is_over && !state.tickets.is_unanswered() => {}
                Some(_) => self.keep(is_over, tasks),
                None if is_over => self.places.free(self.places.selected()),
                None => {}
            }
        });
    }

    fn select(&mut self, place: FuturePlace) {
        self.places.select(place);
    }

    fn remove(&mut self, place: FuturePlace) {
        if let Some(future) = self.futures.get_mut(place.slot)
            && future.is_some()
        {
            // This comes first, because dropping the future may panic.
            self.places.free(place);
            future.set(None);
        }
    }
}

impl<H, F> Drop for Polling<'_, H, F> {
    /// Inlined, so that the fields need not be in memory while the future is polled.
    #[inline(always)]
    fn drop(&mut self) {
        self.serving.after_panic(self.tasks);
    }
}
