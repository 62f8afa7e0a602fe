//! A server before its start: its services, threads and options.

use std::fmt;
use std::net::ToSocketAddrs;
use std::sync::Arc;
use std::time::Duration;

use dunlin_local::{Local, ServiceRequest};
use dunlin_nexus::{EndpointBuilder, EndpointError, Nexus, NexusBuilder, Rpc};
use dunlin_service::AsyncService;
use dunlin_transport::auto::Auto;
#[cfg(feature = "tower")]
use tower_service::Service;

use crate::error::ServeError;
#[cfg(feature = "tower")]
use crate::layer::{Handlers, Inbound, Layer, Methods};
use crate::limited::{LimitedRpc, OfLimited};
use crate::limits::{self, Gate, Limits};
use crate::running::{Drained, Endpoint, Running, Times};
use crate::signals::Caught;
use crate::thread::{Make, OfFutures, OfPolls, Seat, ServerThread};

/// The default limit for a drain.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

/// The default time after which a thread counts as stuck.
const STUCK: Duration = Duration::from_secs(1);

/// The shortest time after which a thread may count as stuck. It must be longer than a tenth of a
/// second, because a busy thread writes the time of its last turn only ten times a second.
const LEAST_STUCK: Duration = Duration::from_millis(250);

/// Builds servers; see [`Server::builder`].
#[derive(Debug)]
pub enum Server {}

/// Registers a service of futures with a thread's endpoint. The service's requests first pass the
/// gate, if there is one, and then the layers, if there are some.
type Serve =
    Arc<dyn Fn(&mut Local<Auto>, &ServerThread, &Layers, Option<&Arc<Gate>>) + Send + Sync>;

/// The layers around all services of futures.
#[cfg(feature = "tower")]
type Layers = Option<Arc<dyn Layer>>;
#[cfg(not(feature = "tower"))]
type Layers = ();

/// Makes a thread whose services of the poll API have limits.
type MakeLimited =
    dyn Fn(usize, EndpointBuilder<Auto>, Limits) -> Result<BoxedSeat, EndpointError> + Send + Sync;

type BoxedSeat = Box<dyn Seat>;

/// The services of a server.
enum Services {
    None,
    /// Each with its own limits, if it has some.
    Futures(Vec<(Serve, Option<Limits>)>),
    Polls(Arc<Make>),
    /// Services of the poll API within limits.
    Limited(Limits, Box<MakeLimited>),
    /// An error: both kinds of services, or a second call of [`ServerBuilder::poll`] or
    /// [`ServerBuilder::poll_within`].
    Mixed,
}

/// A server that has not started: its services, its options and the number of its threads, each of
/// which gets one endpoint.
///
/// ```no_run
/// use dunlin_server::Server;
/// use dunlin_wire::ReqType;
///
/// // Serves until SIGINT or SIGTERM comes, and then drains.
/// let drained = Server::builder()
///     .threads(2)
///     .poll(
///         |_thread| 0_u64,
///         |rpc| {
///             rpc.on(ReqType(1), |count, request, cx| {
///                 *count += 1;
///                 request.reply_bytes(cx, &count.to_le_bytes());
///             });
///         },
///     )
///     .serve("127.0.0.1:31850")?;
/// println!("{} requests were cut off", drained.cut_off);
/// # Ok::<(), dunlin_server::ServeError>(())
/// ```
#[must_use]
pub struct ServerBuilder {
    threads: usize,
    any_port: bool,
    nexus: NexusBuilder,
    endpoint: Arc<Endpoint>,
    services: Services,
    layers: Layers,
    /// The limits of services that have none of their own.
    limits: Limits,
    times: Times,
    /// Whether an additional endpoint answers questions about the server's health.
    health: bool,
    /// The time after which a thread counts as stuck.
    health_stuck: Duration,
    /// Whether the methods can be described, and called by JSON.
    #[cfg(feature = "reflect")]
    reflect: bool,
}

impl Server {
    /// A server without services, with one thread.
    pub fn builder() -> ServerBuilder {
        ServerBuilder {
            threads: 1,
            any_port: false,
            nexus: Nexus::builder(),
            endpoint: Arc::new(|builder| builder),
            services: Services::None,
            layers: Layers::default(),
            limits: Limits::default(),
            times: Times {
                delay: Duration::ZERO,
                timeout: DRAIN_TIMEOUT,
            },
            health: true,
            health_stuck: STUCK,
            #[cfg(feature = "reflect")]
            reflect: false,
        }
    }
}

impl ServerBuilder {
    /// Sets the number of threads, at least one. Each has an endpoint and its own services.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// Whether the server takes one of the next hundred ports if its own is taken. By default, a
    /// taken port is an error.
    pub fn any_port(mut self, any: bool) -> Self {
        self.any_port = any;
        self
    }

    /// Sets the options of the nexus, except its port and [`Self::any_port`].
    pub fn nexus(mut self, nexus: NexusBuilder) -> Self {
        self.nexus = nexus;
        self
    }

    /// Changes the options of the endpoints.
    pub fn endpoint(
        mut self,
        change: impl Fn(EndpointBuilder<Auto>) -> EndpointBuilder<Auto> + Send + Sync + 'static,
    ) -> Self {
        self.endpoint = Arc::new(change);
        self
    }

    /// Adds a service whose methods are futures. For a trait `Kv` with the attribute `service`,
    /// that is a `KvServer`. Each thread makes its own service with `make`, which can capture an
    /// `Arc` with the state that all threads share.
    pub fn service<S: AsyncService<ServiceRequest>>(
        self,
        make: impl Fn(ServerThread) -> S + Send + Sync + 'static,
    ) -> Self {
        self.add(None, make)
    }

    /// Like [`Self::service`], for a service with limits of its own, in place of those of
    /// [`Self::limits`].
    pub fn service_within<S: AsyncService<ServiceRequest>>(
        self,
        limits: Limits,
        make: impl Fn(ServerThread) -> S + Send + Sync + 'static,
    ) -> Self {
        self.add(Some(limits), make)
    }

    /// Sets the limits of each service of futures that has none of its own. They apply to each
    /// service separately, and outside of its layers.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Puts layers around the handlers of each service of futures: `layer` gets the handlers of a
    /// service on one thread, and returns a tower service around them. Requests go through clones
    /// of it, on the endpoint's thread: a clone that was ready serves the next request of its
    /// method too, and one that was not ready stays with the request that waits for it. To limit
    /// all threads and services together, let `layer` capture one limit and share it. A second call
    /// replaces the layers of the first.
    ///
    /// If a layer drops a request before the handler has got it, the request ends with `OVERLOADED`
    /// and has not run. If a layer drops the handler's future, the request ends with
    /// `HANDLER_FAILED`.
    #[cfg(feature = "tower")]
    pub fn layer<L>(mut self, layer: impl Fn(Handlers) -> L + Send + Sync + 'static) -> Self
    where
        L: Service<Inbound, Response = ()> + Clone + 'static,
        L::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.layers = Some(Arc::new(layer));
        self
    }

    fn add<S: AsyncService<ServiceRequest>>(
        mut self,
        limits: Option<Limits>,
        make: impl Fn(ServerThread) -> S + Send + Sync + 'static,
    ) -> Self {
        let serve: Serve = Arc::new(move |local, thread, layers, gate| {
            serve(local, make(thread.clone()), layers, gate);
        });
        self.services = match self.services {
            Services::None => Services::Futures(vec![(serve, limits)]),
            Services::Futures(mut all) => {
                all.push((serve, limits));
                Services::Futures(all)
            }
            Services::Polls(_) | Services::Limited(..) | Services::Mixed => Services::Mixed,
        };
        self
    }

    /// Serves on the poll API: `state` makes the state of the thread with the given number, and
    /// `on` registers its handlers (`KvPoll::register`). They cannot have [`Self::limits`]; see
    /// [`Self::poll_within`].
    pub fn poll<A: 'static>(
        mut self,
        state: impl Fn(usize) -> A + Send + Sync + 'static,
        on: fn(&mut Rpc<Auto, A>),
    ) -> Self {
        let make: Arc<Make> = Arc::new(move |index, builder| {
            let mut rpc = builder.build(state(index))?;
            on(&mut rpc);
            Ok(Box::new(OfPolls(rpc)))
        });
        self.services = match self.services {
            Services::None => Services::Polls(make),
            _ => Services::Mixed,
        };
        self
    }

    /// Like [`Self::poll`], with limits for each service that `on` registers, and for handlers that
    /// belong to none. Each thread runs an equal part of [`Limits::max_calls`]; a call counts while
    /// the program keeps its request. A request that the program keeps for longer than
    /// [`Limits::timeout`] ends with `TIMED_OUT`, and the function of [`LimitedRpc::on_given_up`]
    /// gets its ticket. These limits replace those of [`Self::limits`].
    pub fn poll_within<A: 'static>(
        mut self,
        limits: Limits,
        state: impl Fn(usize) -> A + Send + Sync + 'static,
        on: fn(&mut LimitedRpc<A>),
    ) -> Self {
        let make: Box<MakeLimited> = Box::new(move |index, builder, limits| {
            let seat = OfLimited::new(state(index), limits, builder, on)?;
            Ok(Box::new(seat))
        });
        self.services = match self.services {
            Services::None => Services::Limited(limits, make),
            _ => Services::Mixed,
        };
        self
    }

    /// Sets how long the server goes on serving after it was asked to end, so that a load balancer
    /// can remove it first. During that time, it answers questions about its health with "not
    /// serving". The default is zero.
    pub fn drain_delay(mut self, span: Duration) -> Self {
        self.times.delay = span;
        self
    }

    /// Sets the limit for a drain, 30 s by default. Requests that are left after it are cut off.
    pub fn drain_timeout(mut self, span: Duration) -> Self {
        self.times.timeout = span;
        self
    }

    /// Sets whether an additional endpoint answers questions about the server's health, as `dunlin
    /// health` asks them; by default, one does. Its index is the number of threads, and its thread
    /// runs no service. It has the options of [`Self::endpoint`], except that it takes any free UDP
    /// port and blocks at once when it is idle.
    pub fn health(mut self, on: bool) -> Self {
        self.health = on;
        self
    }

    /// Sets the time after which a thread that makes no turn counts as stuck: 1 s by default, and
    /// at least 0.25 s. While a thread is stuck, the server answers questions about its health with
    /// "not serving".
    pub fn health_stuck(mut self, span: Duration) -> Self {
        self.health_stuck = span.max(LEAST_STUCK);
        self
    }

    /// Sets whether clients may ask for the server's services and methods, and call methods by
    /// JSON, as `dunlin list` and `dunlin call` do; by default, they may not. This concerns only
    /// services whose trait has `#[service(reflect)]`. The endpoint of [`Self::health`] answers,
    /// and a call takes the same path as any other.
    #[cfg(feature = "reflect")]
    pub fn reflect(mut self, on: bool) -> Self {
        self.reflect = on;
        self
    }

    /// Serves until SIGINT or SIGTERM comes, and then drains. A second signal ends the process
    /// immediately, with an exit code of 128 plus the signal's number.
    ///
    /// # Errors
    /// As for [`Self::start`]; or signals cannot be caught.
    pub fn serve(self, at: impl ToSocketAddrs + fmt::Debug) -> Result<Drained, ServeError> {
        // The first signal must drain the server, so signals are caught before any client can use
        // the server.
        let signals = Caught::new().map_err(ServeError::Signals)?;
        let running = self.start(at)?;
        signals.wait();
        Ok(running.drain())
    }

    /// Starts the threads and returns. The program handles signals itself.
    ///
    /// # Errors
    /// The port is taken, two methods have one number, or another reason in [`ServeError`].
    pub fn start(self, at: impl ToSocketAddrs + fmt::Debug) -> Result<Running, ServeError> {
        let longest = self.services.longest_message(self.limits);
        let make = self.services.make(self.layers, self.limits, self.threads)?;
        let nexus = self.nexus.any_port(self.any_port).bind(at);
        let nexus = nexus.map_err(ServeError::Nexus)?;
        let mut running = Running::new(nexus, self.times);
        // If a thread does not start, the drop of `running` ends the others.
        for _ in 0..self.threads {
            running.spawn(&make, &self.endpoint, longest)?;
        }
        running.answer_questions(
            self.health.then_some(self.health_stuck),
            &self.endpoint,
            #[cfg(feature = "reflect")]
            self.reflect,
        )?;
        Ok(running)
    }
}

impl Services {
    /// The greatest limit of a service for messages. `limits`: for services without limits of their
    /// own.
    fn longest_message(&self, limits: Limits) -> Option<usize> {
        match self {
            Self::Limited(own, _) => own.longest_message(),
            Self::Futures(all) => {
                let of = |(_, own): &(Serve, Option<Limits>)| own.unwrap_or(limits);
                all.iter().filter_map(|it| of(it).longest_message()).max()
            }
            Self::None | Self::Polls(_) | Self::Mixed => None,
        }
    }

    fn make(self, layers: Layers, limits: Limits, threads: usize) -> Result<Arc<Make>, ServeError> {
        match self {
            Self::None => Err(ServeError::NoService),
            #[cfg(feature = "tower")]
            Self::Polls(_) | Self::Limited(..) if layers.is_some() => {
                Err(ServeError::LayersOfPolls)
            }
            Self::Polls(_) if limits != Limits::default() => Err(ServeError::LimitsOfPolls),
            Self::Mixed => Err(ServeError::Mixed),
            Self::Polls(make) => Ok(make),
            Self::Limited(limits, make) => {
                let limits = limits.of_thread(threads);
                Ok(Arc::new(move |index, builder| make(index, builder, limits)))
            }
            Self::Futures(all) => {
                // All threads share the gate of a service.
                let gated =
                    |(serve, own): (Serve, Option<Limits>)| (serve, own.unwrap_or(limits).gate());
                let all: Vec<_> = all.into_iter().map(gated).collect();
                Ok(Arc::new(move |index, builder| {
                    let serve = |local: &mut Local<Auto>, thread: &ServerThread| {
                        for (serve, gate) in &all {
                            serve(local, thread, &layers, gate.as_ref());
                        }
                    };
                    Ok(Box::new(OfFutures::new(index, builder, serve)?))
                }))
            }
        }
    }
}

#[cfg(feature = "tower")]
fn serve<S: AsyncService<ServiceRequest>>(
    local: &mut Local<Auto>,
    service: S,
    layers: &Layers,
    gate: Option<&Arc<Gate>>,
) {
    match layers {
        Some(layers) => {
            local.add_service::<S>();
            layers.serve(local, Handlers::of(service), Methods::of::<S>(), gate);
        }
        None => limits::serve(local, service, gate),
    }
}

#[cfg(not(feature = "tower"))]
fn serve<S: AsyncService<ServiceRequest>>(
    local: &mut Local<Auto>,
    service: S,
    (): &Layers,
    gate: Option<&Arc<Gate>>,
) {
    limits::serve(local, service, gate);
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder")
            .field("threads", &self.threads)
            .field("limits", &self.limits)
            .field("times", &self.times)
            .field("health", &self.health)
            .field("health_stuck", &self.health_stuck)
            .finish_non_exhaustive()
    }
}
