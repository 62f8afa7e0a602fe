//! The state of a `Local`'s endpoint, and the functions that the endpoint calls. When a packet
//! arrives, these functions immediately poll the future that waits for it, within the iteration.
//! When a timer is due or a session changes, they only wake the futures that wait for it.

use std::rc::Rc;
use std::task::Context;

use dunlin_core::{Cx, Done, Request, SessionEvent, Ticket, TimerToken};
use dunlin_nexus::FailedConnect;
use dunlin_service::Error;
use dunlin_wire::ReqType;

use crate::caller::Caller;
use crate::executor::Executor;
use crate::request::OwnedRequest;
use crate::state::State;

/// The state of an endpoint for futures: `nexus.endpoint(Tasks::default())`. Give that endpoint to
/// [`Local::new`](crate::Local::new).
pub struct Tasks {
    pub(super) state: Rc<State>,
    pub(super) executor: Executor,
}

impl Default for Tasks {
    fn default() -> Self {
        let state = Rc::<State>::default();
        let executor = Executor::new(Rc::clone(&state));
        Self { state, executor }
    }
}

impl Tasks {
    /// Keeps the handler of a type. `name` is the name of these requests' spans.
    pub(super) fn serve<H, F>(&mut self, req_type: ReqType, name: &'static str, mut handler: H)
    where
        H: FnMut(OwnedRequest, Caller) -> F + 'static,
        F: Future<Output = Result<(), Error>> + 'static,
    {
        let handler = move |mut request: OwnedRequest, caller| {
            let span = request.begin_span(name);
            let future = span.run(|| handler(request, caller));
            span.around(future)
        };
        self.executor.serve(req_type, handler);
    }

    /// Polls tasks that something other than a packet woke; `main` polls the future of `block_on`.
    pub(super) fn poll_ready(&mut self, cx: &mut Cx<'_>, main: impl FnOnce(&mut Context<'_>)) {
        let Self { state, executor } = self;
        state.end_abandoned(cx);
        // Tasks that these futures spawn wait for the next round.
        for future in state.take_spawned() {
            executor.adopt(future, state, cx);
        }
        if executor.poll_ready(state, cx) {
            executor.poll_main(state, cx, main);
        }
    }
}

/// The handler of all types that are served: makes the request's future, and polls it. A request
/// that is answered during the first poll keeps no ticket, as with a dispatch handler.
pub(super) fn on_arrival(tasks: &mut Tasks, request: Request<'_>, cx: &mut Cx<'_>) {
    tasks.executor.begin(&request, &tasks.state, cx);
}

/// Drops the handler's future for a request that the client has given up.
pub(super) fn on_given_up(tasks: &mut Tasks, ticket: Ticket, cx: &mut Cx<'_>) {
    tasks.executor.give_up(ticket, cx);
}

/// The continuation: offers the result of a call to the task that waits for it.
pub(super) fn on_done(tasks: &mut Tasks, done: Done, cx: &mut Cx<'_>) {
    let Tasks { state, executor } = tasks;
    let state = &**state;
    let Some(task) = state.calls.waiting(&done) else {
        return on_stray(tasks, done, cx);
    };
    state.calls.offer(done);
    executor.poll(task, state, cx);
    state.calls.end_offer();
}

/// Ends a call whose result cannot be offered.
#[cold]
#[inline(never)]
fn on_stray(tasks: &mut Tasks, done: Done, cx: &mut Cx<'_>) {
    let Tasks { state, executor } = tasks;
    let wake = |future| state.wake(future);
    if let Some(task) = state.calls.end_stray(done, cx, wake) {
        executor.poll_apart(task, state, cx);
        state.calls.end_offer();
    }
}

pub(super) fn on_timer(tasks: &mut Tasks, _: TimerToken, cx: &mut Cx<'_>) {
    let state = &tasks.state;
    let mut timers = state.timers.borrow_mut();
    while let Some(future) = timers.pop_due(cx.now()) {
        state.wake(future);
    }
    timers.arm(cx);
}

pub(super) fn on_session(tasks: &mut Tasks, event: SessionEvent, _: &mut Cx<'_>) {
    tasks.state.on_session(event);
}

pub(super) fn on_connect_failed(tasks: &mut Tasks, failed: FailedConnect, _: &mut Cx<'_>) {
    tasks.state.keep_failed(failed);
    tasks.state.wake_for_sessions();
}

impl std::fmt::Debug for Tasks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tasks")
            .field("tasks", &self.executor.tasks())
            .finish_non_exhaustive()
    }
}
