//! The endpoint with its futures, and the rounds that run both.

use std::cell::RefCell;
use std::io;
use std::net::ToSocketAddrs;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use dunlin_core::{Counters, Cx, Nanos, Session};
use dunlin_nexus::{ConnectError, ConnectOptions, Open, Rpc};
use dunlin_service::{AsyncService, Error, META};
use dunlin_wire::ReqType;

use crate::caller::Caller;
use crate::executor::Executor;
use crate::request::OwnedRequest;
use crate::service_request::{ServiceRequest, serve_method_of_service};
use crate::state::{Port, State};
use crate::tasks::{self, Tasks};
use crate::wake::{MAIN, WakeBy};

/// Iterations for which a `Local` that is being dropped waits for its calls to end.
const LAST_ITERATIONS: usize = 1000;

/// An endpoint until its `Local` is dropped.
struct Hub<T: Open>(RefCell<Option<Rpc<T, Tasks>>>);

/// An endpoint with the futures of its thread.
pub struct Local<T: Open> {
    hub: Rc<Hub<T>>,
    state: Rc<State>,
}

impl<T: Open> Port for Hub<T> {
    fn with(&self, run: &mut dyn FnMut(&mut Cx<'_>)) -> bool {
        let Ok(mut endpoint) = self.0.try_borrow_mut() else {
            return false;
        };
        let Some(endpoint) = endpoint.as_mut() else {
            return false;
        };
        run(&mut endpoint.cx());
        true
    }
}

impl<T: Open> Local<T> {
    /// Takes over an endpoint: `Local::new(nexus.endpoint(Tasks::default())?)`.
    pub fn new(mut endpoint: Rpc<T, Tasks>) -> Self {
        endpoint.on_completion(tasks::on_done);
        endpoint.on_timer(tasks::on_timer);
        endpoint.on_session(tasks::on_session);
        endpoint.on_connect_failed(tasks::on_connect_failed);
        endpoint.on_given_up(tasks::on_given_up);
        let doorbell = endpoint.waker();
        let state = Rc::clone(&endpoint.app().state);
        state.remote.set_doorbell(doorbell);
        let hub = Rc::new(Hub(RefCell::new(Some(endpoint))));
        let port: Weak<dyn Port> = Rc::<Hub<T>>::downgrade(&hub);
        let _ = state.port.set(port);
        Self { hub, state }
    }

    /// The endpoint, for futures.
    pub fn caller(&self) -> Caller {
        Caller::new(Rc::clone(&self.state))
    }

    /// Registers an asynchronous handler. It is called for each request of this type, and its
    /// future runs until it ends. If the future ends with an error or drops the request, or if the
    /// handler panics, the client gets an error.
    ///
    /// If the client cancels the request, its deadline passes or its session closes, the future is
    /// dropped where it waits, together with the calls that it waits for. Spawn a task that must
    /// run to its end ([`Caller::spawn`]).
    pub fn serve<H, F>(&mut self, req_type: ReqType, handler: H)
    where
        H: FnMut(OwnedRequest, Caller) -> F + 'static,
        F: Future<Output = Result<(), Error>> + 'static,
    {
        self.serve_method(req_type, "", handler);
    }

    /// Like [`Self::serve`], with a name for the spans of these requests, such as `Kv.get`.
    pub fn serve_method<H, F>(&mut self, req_type: ReqType, name: &'static str, handler: H)
    where
        H: FnMut(OwnedRequest, Caller) -> F + 'static,
        F: Future<Output = Result<(), Error>> + 'static,
    {
        self.endpoint(|endpoint| {
            endpoint.app_mut().serve(req_type, name, handler);
            endpoint.on(req_type, tasks::on_arrival);
        });
    }

    /// Serves a typed service: all its methods, each request as a future. `KvServer(service)`,
    /// which the attribute `service` makes, is such a service.
    pub fn serve_typed<S: AsyncService<ServiceRequest>>(&mut self, service: S) {
        self.add_service::<S>();
        let service = Rc::new(service);
        for (place, number) in S::METHODS.iter().enumerate() {
            let name = S::NAMES.get(place).copied().unwrap_or_default();
            for req_type in [*number, *number | META] {
                let service = Rc::clone(&service);
                serve_method_of_service(self, ReqType(req_type), name, move |request, _| {
                    Rc::clone(&service).answer(request)
                });
            }
        }
    }

    /// Notes the name and the facts of a service whose handlers the program registers itself.
    pub fn add_service<S: AsyncService<ServiceRequest>>(&mut self) {
        self.endpoint(|endpoint| {
            endpoint.add_service(S::NAME);
            S::FACTS
                .into_iter()
                .for_each(|facts| endpoint.add_facts(facts));
        });
    }

    /// Runs a future until it ends, and meanwhile all spawned futures and all handlers. While
    /// nothing happens, the thread blocks as the endpoint's `Idle` demands.
    pub fn block_on<F: Future>(&mut self, begin: impl FnOnce(Caller) -> F) -> F::Output {
        let mut main = pin!(begin(self.caller()));
        let mut output = None;
        self.state.wake(WakeBy::Task(MAIN));
        loop {
            self.round(Nanos::MAX, |context| {
                if let Poll::Ready(value) = main.as_mut().poll(context) {
                    output = Some(value);
                }
            });
            if let Some(output) = output {
                return output;
            }
        }
    }

    /// Runs one round, without blocking: for a thread that has its own loop. Returns true if the
    /// round did something.
    pub fn turn(&mut self) -> bool {
        self.round(Nanos::ZERO, |_| {})
    }

    /// Prepares the endpoint for a wait of the caller. The caller waits until the descriptor is
    /// readable, until `driver` is woken, or for the span that this returns, whichever comes first.
    /// `None` means that there is something to do already. After the wait, call [`Self::unpark`].
    pub fn park(&mut self, driver: &Waker) -> Option<Duration> {
        if !self.state.is_idle() {
            return None;
        }
        *self.state.driver.borrow_mut() = Some(driver.clone());
        self.endpoint(Rpc::park)
    }

    /// A descriptor that becomes readable when something arrives for a parked endpoint.
    ///
    /// # Errors
    /// If the process has no descriptor left.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        self.endpoint(|endpoint| endpoint.as_fd().try_clone_to_owned())
    }

    /// Ends the wait of [`Self::park`].
    pub fn unpark(&mut self) {
        *self.state.driver.borrow_mut() = None;
        self.endpoint(Rpc::unpark);
    }

    /// Begins to open a session; see [`Rpc::connect`]. [`Caller::connected`] waits for it, and
    /// returns the reason if it cannot be made.
    ///
    /// # Errors
    /// As for [`Rpc::connect`].
    pub fn connect(&mut self, address: impl ToSocketAddrs) -> Result<Session, ConnectError> {
        self.connect_with(address, &ConnectOptions::default())
    }

    /// Like [`Self::connect`], with options.
    ///
    /// # Errors
    /// As for [`Rpc::connect_with`].
    pub fn connect_with(
        &mut self,
        address: impl ToSocketAddrs,
        options: &ConnectOptions,
    ) -> Result<Session, ConnectError> {
        self.endpoint(|endpoint| endpoint.connect_with(address, options))
    }

    /// The endpoint's counters.
    pub fn counters(&self) -> Counters {
        self.endpoint(|endpoint| *endpoint.counters())
    }

    /// Lends the endpoint itself to `look`, for uses that a `Local` has no function for: counters
    /// of the transport, options of a session. Do not replace its functions for events, such as
    /// `on_completion`: they belong to the `Local`. Give calls that `look` issues tags below 2^20,
    /// because larger tags may be those of the `Local`'s own calls; their results are dropped.
    pub fn inspect<R>(&mut self, look: impl FnOnce(&mut Rpc<T, Tasks>) -> R) -> R {
        self.endpoint(look)
    }

    /// The number of futures, of handlers or spawned, that ended with a panic.
    pub fn panics(&self) -> u64 {
        self.state.panics()
    }

    /// The bytes of msgbufs in use, and the number of msgbufs.
    pub fn pool_use(&self) -> (usize, usize) {
        self.endpoint(|endpoint| endpoint.pool_use())
    }

    /// The number of timers that are kept, including timers of dropped futures.
    pub fn timers(&self) -> usize {
        self.state.timers.borrow().len()
    }

    /// The index by which others connect to this endpoint.
    pub fn index(&self) -> u16 {
        self.endpoint(|endpoint| endpoint.index())
    }

    fn endpoint<R>(&self, run: impl FnOnce(&mut Rpc<T, Tasks>) -> R) -> R {
        let mut endpoint = self.hub.0.borrow_mut();
        run(endpoint.as_mut().expect("the endpoint stays until the end"))
    }

    /// Runs one round; `main` polls the future of `block_on`.
    fn round(&mut self, limit: Nanos, main: impl FnOnce(&mut Context<'_>)) -> bool {
        self.state.lent.run(|| self.round_here(limit, main))
    }

    fn round_here(&self, limit: Nanos, main: impl FnOnce(&mut Context<'_>)) -> bool {
        let progress = self.endpoint(|endpoint| {
            endpoint.iterate(|tasks| match tasks.state.is_idle() {
                true => limit,
                false => Nanos::ZERO,
            })
        });
        if self.state.is_idle() {
            return progress.busy;
        }
        self.state.settle();
        self.grant_wishes();
        self.state.wake_others();
        self.endpoint(|endpoint| {
            let (tasks, mut cx) = endpoint.with();
            tasks.poll_ready(&mut cx, main);
        });
        true
    }

    /// Begins the sessions that futures have asked for.
    fn grant_wishes(&self) {
        for wish in self.state.take_wishes() {
            let future = self
                .endpoint(|endpoint| wish.grant(|to, options| endpoint.connect_with(to, options)));
            self.state.wake(future);
        }
    }

    /// Drops all futures of this `Local`. Their requests are answered with an error, and their
    /// calls are cancelled.
    fn drop_futures(&self) {
        let spawned = self.state.take_spawned();
        self.endpoint(|endpoint| {
            let (tasks, mut cx) = endpoint.with();
            let none = Executor::new(Rc::clone(&self.state));
            let executor = std::mem::replace(&mut tasks.executor, none);
            self.state.lent.lend(&mut cx, || drop((executor, spawned)));
        });
    }
}

impl<T: Open> Drop for Local<T> {
    /// Ends all sessions and calls. Futures in other executors that wait for a call get an error.
    fn drop(&mut self) {
        // Sessions end before the futures: no handler has failed, so no client must get an answer
        // that reports a failure.
        self.endpoint(|endpoint| {
            let sessions: Vec<_> = endpoint.sessions().collect();
            for session in sessions {
                // This cannot fail, because the sessions are the endpoint's own, and live.
                let _ = endpoint.disconnect(session);
            }
        });
        self.drop_futures();
        for _ in 0..LAST_ITERATIONS {
            let running = self.endpoint(|endpoint| {
                endpoint.iterate(|_| Nanos::ZERO);
                endpoint.call_count()
            });
            if running == 0 {
                break;
            }
        }
        // From now on no timer fires and no session ends, so the futures that wait for one must
        // check now.
        self.state.wake_all();
        let endpoint = self.hub.0.borrow_mut().take();
        self.state.wake_others();
        drop(endpoint);
    }
}

impl<T: Open> std::fmt::Debug for Local<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Local")
            .field("panics", &self.state.panics())
            .finish_non_exhaustive()
    }
}
