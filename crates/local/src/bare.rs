//! Futures on an endpoint of core, without a nexus: for programs that count instructions and bring
//! their own clocks, transports and sessions.

use std::rc::Rc;

use dunlin_core::transport::Transport;
use dunlin_core::{Clock, Endpoint};
use dunlin_service::Error;
use dunlin_wire::ReqType;

use crate::caller::Caller;
use crate::request::OwnedRequest;
use crate::tasks::{self, Tasks};

/// An endpoint with its futures. It has no main future, and futures that need a nexus, such as
/// futures that connect, never end.
pub struct Bare<T: Transport, C> {
    endpoint: Endpoint<T, C, Tasks>,
}

impl<T: Transport, C: Clock> Bare<T, C> {
    /// Takes over an endpoint.
    pub fn new(mut endpoint: Endpoint<T, C, Tasks>) -> Self {
        endpoint.on_completion(tasks::on_done);
        endpoint.on_timer(tasks::on_timer);
        endpoint.on_session(tasks::on_session);
        endpoint.on_given_up(tasks::on_given_up);
        Self { endpoint }
    }

    /// The endpoint, for futures. It works while they are polled.
    pub fn caller(&self) -> Caller {
        Caller::new(Rc::clone(&self.endpoint.app().state))
    }

    /// Registers an asynchronous handler; see [`Local::serve`](crate::Local::serve).
    pub fn serve<H, F>(&mut self, req_type: ReqType, handler: H)
    where
        H: FnMut(OwnedRequest, Caller) -> F + 'static,
        F: Future<Output = Result<(), Error>> + 'static,
    {
        self.endpoint.app_mut().serve(req_type, "", handler);
        self.endpoint.on(req_type, tasks::on_arrival);
    }

    /// Runs one round, without blocking.
    #[inline]
    pub fn turn(&mut self) {
        let state = Rc::clone(&self.endpoint.app().state);
        state.lent.run(|| {
            self.endpoint.run_once();
            if !state.is_idle() {
                state.settle();
                state.wake_others();
                let (tasks, mut cx) = self.endpoint.with();
                tasks.poll_ready(&mut cx, |_| {});
            }
        });
    }

    /// The endpoint itself, for its msgbufs and counters.
    pub const fn endpoint(&mut self) -> &mut Endpoint<T, C, Tasks> {
        &mut self.endpoint
    }
}

impl<T: Transport, C> std::fmt::Debug for Bare<T, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bare").finish_non_exhaustive()
    }
}
