//! All futures of a `Local`, and how the executor polls one: it lends the endpoint to the future,
//! and notes the number of its task, by which events wake it.
//!
//! A future that panics is dropped at once. Within an iteration, the panic then propagates to the
//! endpoint, which catches it like a panic of a dispatch handler or a continuation. With a second
//! guard here, the compiler would inline no poll.
//!
//! `budget.toml` has the instructions of a call and of a request, in its section `faces`.

use std::rc::Rc;
use std::task::Context;

use dunlin_core::{Cx, Request, Ticket};
use dunlin_service::Error;
use dunlin_wire::ReqType;

use crate::caller::Caller;
use crate::request::OwnedRequest;
use crate::served::{FuturePlace, Places};
use crate::spawn::{Handlers, Serving};
use crate::state::{Spawned, State};
use crate::task::{HandlerSlot, Origin, Task, TaskTable};
use crate::wake::MAIN;

/// The futures of a `Local`, in their tasks.
pub(super) struct Executor {
    served: Vec<Box<dyn Handlers>>,
    /// Indices into `served`, by request type.
    by_type: Vec<u32>,
    tasks: TaskTable,
    /// Tasks for spawned futures that are free now.
    vacant: Vec<u32>,
    /// Kept between rounds so that its memory is reused.
    queue: Vec<u32>,
}

/// A poll of a spawned future in progress. Dropping this drops the future, because it has panicked.
/// It has only this field, because its fields stay in registers while the future is polled; `State`
/// knows the rest.
struct Polling<'a>(&'a mut Executor);

impl Executor {
    pub(super) fn new(state: Rc<State>) -> Self {
        Self {
            served: Vec::new(),
            by_type: Vec::new(),
            tasks: TaskTable::new(state),
            vacant: Vec::new(),
            queue: Vec::new(),
        }
    }

    pub(super) fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// Registers the handler of a type.
    pub(super) fn serve<H, F>(&mut self, req_type: ReqType, handler: H)
    where
        H: FnMut(OwnedRequest, Caller) -> F + 'static,
        F: Future<Output = Result<(), Error>> + 'static,
    {
        let index = self.served.len();
        let places = Places::new(index, &mut self.tasks);
        self.served.push(Box::new(Serving::new(handler, places)));
        let at = usize::from(req_type.0);
        if self.by_type.len() <= at {
            self.by_type.resize(at + 1, u32::MAX);
        }
        self.by_type[at] = u32::try_from(index).expect("request types are 16 bits");
    }

    /// Makes the future of a request, and polls it. If it is not ready, its task polls it from then
    /// on. A panic propagates to the endpoint, after the future was dropped. While the `Local` is
    /// being dropped, it serves no requests: they end without an answer.
    #[inline(always)]
    pub(super) fn begin(&mut self, request: &Request<'_>, state: &Rc<State>, cx: &mut Cx<'_>) {
        let index = self.by_type.get(usize::from(request.req_type().0));
        if let Some(index) = index
            && let Some(handlers) = self.served.get_mut(*index as usize)
        {
            handlers.run(Some(request), state, &mut self.tasks, cx);
        }
    }

    /// Takes a spawned future over, and polls it for the first time.
    pub(super) fn adopt(&mut self, future: Spawned, state: &State, cx: &mut Cx<'_>) {
        let task = match self.vacant.pop() {
            Some(task) => task,
            None => {
                self.vacant.reserve(self.tasks.len() + 1);
                self.tasks.add(Origin::Vacant)
            }
        };
        self.tasks.at(task).place = Origin::Spawned(future);
        self.poll_contained(task, state, cx);
    }

    /// Like [`Self::poll`], outside of the endpoint's functions: the panic ends here.
    #[inline(never)]
    fn poll_contained(&mut self, task: u32, state: &State, cx: &mut Cx<'_>) {
        state.contain(|| self.poll_apart(task, state, cx));
    }

    /// Like [`Self::poll`], as a function of its own.
    #[inline(never)]
    pub(super) fn poll_apart(&mut self, task: u32, state: &State, cx: &mut Cx<'_>) {
        self.poll_task::<false>(task, state, cx);
    }

    /// Polls the future of a task that is not `MAIN`, if there is one. If the future panics, it is
    /// dropped, with all that it holds, such as a request without an answer; and the panic
    /// propagates.
    #[inline(always)]
    pub(super) fn poll(&mut self, task: u32, state: &State, cx: &mut Cx<'_>) {
        self.poll_task::<true>(task, state, cx);
    }

    /// Polls a task. `WITHIN` (the continuation) changes no behaviour: it makes two copies of this
    /// code, so that the compiler inlines both.
    #[inline(always)]
    fn poll_task<const WITHIN: bool>(&mut self, task: u32, state: &State, cx: &mut Cx<'_>) {
        let place = self.tasks.find(task).map(|task| &task.place);
        if !matches!(place, Some(Origin::Spawned(_))) {
            return self.poll_other(task, cx);
        }
        state.lent.lend(cx, || {
            let mut polling = Polling(self);
            polling.run::<WITHIN>(task, state);
            std::mem::forget(polling);
        });
    }

    /// Drops the future of a handler whose client no longer waits, and with it the calls and
    /// requests that the future holds. If the task has a future for a newer request by now, that
    /// future stays.
    pub(super) fn give_up(&mut self, ticket: Ticket, cx: &mut Cx<'_>) {
        let Some(task) = self.tasks.of(ticket) else {
            return;
        };
        let state = Rc::clone(&self.tasks.state);
        let Task { waker, place, .. } = self.tasks.at(task);
        let Origin::Handler(HandlerSlot { served, slot }) = *place else {
            return;
        };
        let handlers = &mut self.served[served];
        let is_whole = state.contain(|| {
            state.poll(task, waker, cx, |_| {
                handlers.remove(FuturePlace { slot, task })
            });
        });
        // A future that panics while it is dropped is gone as well.
        if !is_whole {
            state.on_panic();
        }
    }

    /// Polls the future of a task for handlers, if there is one.
    #[inline(never)]
    fn poll_other(&mut self, task: u32, cx: &mut Cx<'_>) {
        if let Some(Task { place, .. }) = self.tasks.find(task)
            && let Origin::Handler(HandlerSlot { served, slot }) = *place
        {
            self.served[served].select(FuturePlace { slot, task });
            let state = Rc::clone(&self.tasks.state);
            self.served[served].run(None, &state, &mut self.tasks, cx);
        }
    }

    /// Drops the spawned future that is polled, because it is over, and frees its place.
    #[inline(never)]
    fn end_spawned(&mut self) {
        let task = self.tasks.state.current.last();
        // This comes first, because dropping the future may panic.
        self.vacant.push(task);
        self.tasks.at(task).place = Origin::Vacant;
    }

    /// Drops the spawned future that is polled, because it has panicked.
    #[cold]
    #[inline(never)]
    fn after_panic(&mut self) {
        let state = Rc::clone(&self.tasks.state);
        let task = state.current.last();
        state.on_panic();
        let place = std::mem::replace(&mut self.tasks.at(task).place, Origin::Vacant);
        // If dropping the future has panicked, its place is vacant already.
        if let Origin::Spawned(future) = place {
            self.vacant.push(task);
            if !state.contain(|| drop(future)) {
                state.on_panic();
            }
        }
        state.calls.end_offer();
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
                _ => self.poll_contained(task, state, cx),
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
        state.poll(MAIN, waker, cx, main);
    }
}

impl Polling<'_> {
    #[inline(always)]
    fn run<const WITHIN: bool>(&mut self, task: u32, state: &State) {
        let Self(executor) = self;
        let Some(Task { waker, place, .. }) = executor.tasks.find(task) else {
            return;
        };
        let Origin::Spawned(future) = place else {
            return;
        };
        let poll = |context: &mut Context<'_>| future.as_mut().poll(context).is_ready();
        if state.poll_lent(task, waker, poll) {
            executor.end_spawned();
        }
    }
}

impl Drop for Polling<'_> {
    /// Inlined, so that the field need not be in memory while the future is polled.
    #[inline(always)]
    fn drop(&mut self) {
        self.0.after_panic();
    }
}
