//! The asynchronous face (design §11): an endpoint, and the futures that one thread runs on it. No
//! runtime is needed, [`Local::block_on`] drives both; beside a runtime, [`Local::turn`] and the
//! endpoint's descriptor do.
//!
//! ```
//! use std::time::Duration;
//! use dunlin::{Local, Nexus, ReqType, Shm, Tasks};
//!
//! const DOUBLE: ReqType = ReqType(1);
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let nexus = Nexus::bind("127.0.0.1:0")?;
//! let mut local = Local::new(nexus.endpoint::<Shm, _>(Tasks::default())?);
//! local.serve(DOUBLE, |request, _| async move {
//!     let doubled: Vec<u8> = request.data().iter().map(|byte| 2 * byte).collect();
//!     request.reply(doubled)
//! });
//! // An endpoint may call itself.
//! let session = local.connect(nexus.address())?;
//! let reply = local.block_on(|cx| async move {
//!     let request = cx.copy(&[1, 2, 3])?;
//!     Ok::<_, dunlin::AsyncError>(cx.call(session, DOUBLE, request)
//!         .deadline(Duration::from_secs(5)).await?)
//! })?;
//! assert_eq!(reply.data(), [2, 4, 6]);
//! # Ok(())
//! # }
//! ```
//!
//! One round: an iteration of the endpoint, whose handlers and continuations only note what came
//! (`state.rs`); then futures of new requests are made, and whoever was woken is polled, all with
//! the endpoint at rest. What they issue leaves with the next iteration.

mod call;
mod caller;
mod failed;
mod port;
mod ready;
mod request;
mod spawn;
mod state;
mod task;
mod timer;

use std::cell::RefCell;
use std::io;
use std::net::ToSocketAddrs;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use dunlin_core::{Counters, Nanos, Session};
use dunlin_nexus::{ConnectError, ConnectOptions, Endpoint, Open};
use dunlin_service::{AsyncService, Error, META};
use dunlin_wire::ReqType;

pub use call::{Call, Reply};
pub use caller::Caller;
pub use failed::Failed;
pub use request::OwnedRequest;
pub use state::Tasks;
pub use timer::Sleep;

use port::{Hub, Port};
use spawn::{Boxes, Handlers, Serving, Slab};
use state::{Arrival, State};
use task::{MAIN, Place, Task, TaskTable};

/// Iterations for which a `Local` that is dropped waits for its calls to end.
const LAST_ITERATIONS: usize = 1000;

/// An endpoint with the futures of its thread.
pub struct Local<T: Open> {
    hub: Rc<Hub<T>>,
    state: Rc<State>,
    serving: Vec<Served>,
    /// Place in `serving` and one, by request type.
    by_type: Vec<u32>,
    boxes: Boxes,
    box_tasks: Vec<u32>,
    tasks: TaskTable,
    /// Kept between rounds for its memory.
    queue: Vec<u32>,
}

/// The handlers of a type, and the tasks of their slots.
struct Served {
    handlers: Box<dyn Handlers>,
    tasks: Vec<u32>,
}

impl<T: Open> Local<T> {
    /// Takes over an endpoint: `Local::new(nexus.endpoint(Tasks::default())?)`.
    pub fn new(mut endpoint: Endpoint<T, Tasks>) -> Self {
        endpoint.on_completion(state::on_done);
        endpoint.on_timer(state::on_timer);
        endpoint.on_session(state::on_session);
        endpoint.on_given_up(state::on_given_up);
        let state = Rc::clone(&endpoint.app().0);
        state.remote.set_doorbell(endpoint.waker());
        let hub = Rc::new(Hub {
            endpoint: RefCell::new(Some(endpoint)),
            state: Rc::clone(&state),
        });
        let mut local = Self {
            hub,
            state,
            serving: Vec::new(),
            by_type: Vec::new(),
            boxes: Boxes::default(),
            box_tasks: Vec::new(),
            tasks: TaskTable::default(),
            queue: Vec::new(),
        };
        let main = local.tasks.add(Place::Main, &local.state.remote);
        debug_assert_eq!(main, MAIN);
        local
    }

    /// The endpoint, for futures.
    pub fn caller(&self) -> Caller {
        let port: Rc<dyn Port> = Rc::clone(&self.hub) as _;
        Caller { port }
    }

    /// Registers an asynchronous handler: called for each request of this type, its future runs
    /// until it ends. If that is with an error, or the request is dropped, or the handler panics,
    /// the client gets an error.
    ///
    /// If the client cancels the request, or its deadline passes, or its session closes, the future
    /// is dropped where it waits, and with it the calls that it waits for. What must run to its end
    /// is spawned ([`Caller::spawn`]).
    pub fn serve<H, F>(&mut self, req_type: ReqType, handler: H)
    where
        H: FnMut(OwnedRequest, Caller) -> F + 'static,
        F: Future<Output = Result<(), Error>> + 'static,
    {
        self.serving.push(Served {
            handlers: Box::new(Serving::new(handler)),
            tasks: Vec::new(),
        });
        let index = usize::from(req_type.0);
        if self.by_type.len() <= index {
            self.by_type.resize(index + 1, 0);
        }
        self.by_type[index] =
            u32::try_from(self.serving.len()).expect("fewer than 2^32 handlers fit in memory");
        self.endpoint(|endpoint| endpoint.on(req_type, state::on_arrival));
    }

    /// Serves a typed service: all its methods, each request as a future. `KvServer(service)` of
    /// the attribute [`service`](macro@dunlin_service::service) is one.
    pub fn serve_typed<S: AsyncService<OwnedRequest>>(&mut self, service: S) {
        let service = Rc::new(service);
        for number in S::METHODS {
            for req_type in [*number, *number | META] {
                let service = Rc::clone(&service);
                self.serve(ReqType(req_type), move |request, _| {
                    Rc::clone(&service).answer(request)
                });
            }
        }
    }

    /// Runs a future until it ends, and with it everything that was spawned and is served. While
    /// nothing happens, the thread blocks as the endpoint's `Idle` says.
    pub fn block_on<F: Future>(&mut self, begin: impl FnOnce(Caller) -> F) -> F::Output {
        let mut main = pin!(begin(self.caller()));
        let mut output = None;
        self.state.ready.borrow_mut().push(MAIN);
        loop {
            self.round(Nanos::MAX, &mut |context| {
                if let Poll::Ready(value) = main.as_mut().poll(context) {
                    output = Some(value);
                }
            });
            if let Some(output) = output {
                return output;
            }
        }
    }

    /// One round, which does not block: for a thread that has its own loop. True if it did
    /// something.
    pub fn turn(&mut self) -> bool {
        self.round(Nanos::ZERO, &mut |_| {})
    }

    /// Prepares a wait outside: until the descriptor is readable, `driver` is woken, and not longer
    /// than the span that this returns. `None`: there is something to do already. Behind the wait
    /// comes [`Self::unpark`].
    pub fn park(&mut self, driver: &Waker) -> Option<Duration> {
        if !self.state.is_idle() {
            return None;
        }
        *self.state.driver.borrow_mut() = Some(driver.clone());
        self.endpoint(Endpoint::park)
    }

    /// A descriptor that becomes readable when something comes for a parked endpoint.
    ///
    /// # Errors
    /// If the process has as many descriptors as it may.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        self.endpoint(|endpoint| endpoint.as_fd().try_clone_to_owned())
    }

    /// Ends what [`Self::park`] began, whatever came.
    pub fn unpark(&mut self) {
        *self.state.driver.borrow_mut() = None;
        self.endpoint(Endpoint::unpark);
    }

    /// Begins to make a session; see [`Endpoint::connect`]. [`Caller::connected`] waits for it.
    ///
    /// # Errors
    /// As for [`Endpoint::connect`].
    pub fn connect(&mut self, address: impl ToSocketAddrs) -> Result<Session, ConnectError> {
        self.connect_with(address, &ConnectOptions::default())
    }

    /// Like [`Self::connect`], with options.
    ///
    /// # Errors
    /// As for [`Endpoint::connect_with`].
    pub fn connect_with(
        &mut self,
        address: impl ToSocketAddrs,
        options: &ConnectOptions,
    ) -> Result<Session, ConnectError> {
        self.endpoint(|endpoint| endpoint.connect_with(address, options))
    }

    /// What happened so far.
    pub fn counters(&self) -> Counters {
        self.endpoint(|endpoint| *endpoint.counters())
    }

    /// Looks at the endpoint for what this has no function for: counters of the transport, options
    /// of a session. Its functions (`on_completion` and so on) belong to the `Local`.
    pub fn inspect<R>(&mut self, look: impl FnOnce(&mut Endpoint<T, Tasks>) -> R) -> R {
        self.endpoint(look)
    }

    /// Futures of handlers and spawned ones that ended with a panic.
    pub fn panics(&self) -> u64 {
        self.state.panics.get()
    }

    /// Bytes of msgbufs that are in use, and how many there are.
    pub fn pool_use(&self) -> (usize, usize) {
        self.endpoint(|endpoint| endpoint.pool_use())
    }

    /// Timers that are kept, those of dropped futures included.
    pub fn timers(&self) -> usize {
        self.state.timers.borrow().len()
    }

    /// The index by which others connect to this endpoint.
    pub fn index(&self) -> u16 {
        self.endpoint(|endpoint| endpoint.index())
    }

    fn endpoint<R>(&self, run: impl FnOnce(&mut Endpoint<T, Tasks>) -> R) -> R {
        let mut endpoint = self.hub.endpoint.borrow_mut();
        run(endpoint.as_mut().expect("the endpoint stays until the end"))
    }

    /// See the file. `main` polls the future of `block_on`.
    fn round(&mut self, limit: Nanos, main: &mut dyn FnMut(&mut Context<'_>)) -> bool {
        let busy = self.endpoint(|endpoint| {
            let progress = endpoint.iterate(|tasks| match tasks.0.is_idle() {
                true => limit,
                false => Nanos::ZERO,
            });
            progress.busy
        });
        if self.state.is_idle() {
            return busy;
        }
        self.endpoint(|endpoint| {
            // Reads the clock, once for all futures of the round.
            let mut cx = endpoint.cx();
            for ticket in self.state.abandoned.borrow_mut().drain(..) {
                cx.abandon(ticket);
            }
        });
        self.state.polling.set(true);
        let polling = Polling(Rc::clone(&self.state));
        self.state.wake_others();
        self.adopt_spawned();
        self.begin_handlers();
        self.drop_given_up();
        self.poll_ready(main);
        drop(polling);
        true
    }

    /// Makes the futures of requests that have come, and polls each for the first time.
    fn begin_handlers(&mut self) {
        loop {
            let arrival = self.state.arrivals.borrow_mut().pop_front();
            let Some(arrival) = arrival else { return };
            self.begin_handler(arrival);
        }
    }

    fn begin_handler(&mut self, arrival: Arrival) {
        let index = self.by_type[usize::from(arrival.req_type.0)] as usize - 1;
        let ticket = arrival.ticket;
        let caller = self.caller();
        let request = OwnedRequest::new(Rc::clone(&caller.port), arrival);
        let handlers = &mut self.serving[index].handlers;
        let begun = catch_unwind(AssertUnwindSafe(|| handlers.begin(request, caller)));
        let Ok(slot) = begun else {
            return self.count_panic();
        };
        if slot == self.serving[index].tasks.len() {
            let task = self.tasks.add(
                Place::Handler {
                    serving: index,
                    slot,
                },
                &self.state.remote,
            );
            self.serving[index].tasks.push(task);
        }
        let task = self.serving[index].tasks[slot];
        self.tasks.assign(ticket, task);
        self.poll_task(task, &mut |_| {});
    }

    /// Drops the futures of handlers whose clients do not wait any more, and with them what they
    /// call and hold. A future that was made for another request since then stays.
    fn drop_given_up(&mut self) {
        loop {
            let ticket = self.state.given_up.borrow_mut().pop();
            let Some(ticket) = ticket else { return };
            if let Some(Place::Handler { serving, slot }) = self.tasks.place_of(ticket) {
                let handlers = &mut self.serving[serving].handlers;
                if catch_unwind(AssertUnwindSafe(|| handlers.remove(slot))).is_err() {
                    self.count_panic();
                }
            }
        }
    }

    fn adopt_spawned(&mut self) {
        loop {
            let future = self.state.spawned.borrow_mut().pop();
            let Some(future) = future else { return };
            let slot = self.boxes.insert(future);
            if slot == self.box_tasks.len() {
                let task = self.tasks.add(Place::Spawned { slot }, &self.state.remote);
                self.box_tasks.push(task);
            }
            self.state.ready.borrow_mut().push(self.box_tasks[slot]);
        }
    }

    fn poll_ready(&mut self, main: &mut dyn FnMut(&mut Context<'_>)) {
        let mut queue = std::mem::take(&mut self.queue);
        {
            let mut ready = self.state.ready.borrow_mut();
            if self.state.remote.any() {
                self.state.remote.drain(self.tasks.wakers(), &mut ready);
            }
            ready.take(&mut queue);
        }
        for &task in &queue {
            self.state.ready.borrow_mut().forget(task);
            self.poll_task(task, main);
        }
        queue.clear();
        self.queue = queue;
    }

    fn poll_task(&mut self, task: u32, main: &mut dyn FnMut(&mut Context<'_>)) {
        let Task { waker, place, .. } = self.tasks.at(task);
        let mut context = Context::from_waker(waker);
        let (slab, slot): (&mut dyn Slab, usize) = match *place {
            Place::Main => {
                return self.state.as_current(task, waker, || main(&mut context));
            }
            Place::Handler { serving, slot } => (&mut *self.serving[serving].handlers, slot),
            Place::Spawned { slot } => (&mut self.boxes, slot),
        };
        let state = &self.state;
        let polled = catch_unwind(AssertUnwindSafe(|| {
            state.as_current(task, waker, || slab.poll(slot, &mut context))
        }));
        if polled.is_err() {
            // What the future holds is dropped, and with it a request that it has not answered.
            let _ = catch_unwind(AssertUnwindSafe(|| slab.remove(slot)));
            self.count_panic();
        }
    }

    fn count_panic(&self) {
        self.state.panics.set(self.state.panics.get() + 1);
    }

    /// Drops all futures that this has; their requests are answered with an error, their calls
    /// cancelled.
    fn drop_futures(&mut self) {
        self.serving.clear();
        self.boxes = Boxes::default();
        self.state.spawned.take();
        self.endpoint(|endpoint| {
            let mut cx = endpoint.cx();
            for arrival in self.state.arrivals.take() {
                cx.abandon(arrival.ticket);
            }
        });
    }
}

/// While it lives, futures are polled.
struct Polling(Rc<State>);

impl Drop for Polling {
    fn drop(&mut self) {
        self.0.polling.set(false);
    }
}

impl<T: Open> Drop for Local<T> {
    /// Ends all sessions and calls. Futures elsewhere that wait for a call get an error.
    fn drop(&mut self) {
        self.drop_futures();
        self.endpoint(|endpoint| {
            let sessions: Vec<_> = endpoint.sessions().collect();
            for session in sessions {
                endpoint.disconnect(session);
            }
        });
        for _ in 0..LAST_ITERATIONS {
            self.endpoint(|endpoint| endpoint.iterate(|_| Nanos::ZERO));
            if self.state.calls.borrow().pending() == 0 {
                break;
            }
        }
        // Timers and sessions never end now, so whoever waits for one looks.
        self.state.wake_all();
        let endpoint = self.hub.endpoint.borrow_mut().take();
        self.state.wake_others();
        drop(endpoint);
    }
}

impl<T: Open> std::fmt::Debug for Local<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Local")
            .field("tasks", &self.tasks.len())
            .finish_non_exhaustive()
    }
}
