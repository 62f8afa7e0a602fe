//! Layers of a server: tower services around the handlers of a typed service. `inbound.rs` owns the
//! request on its way through the layers, `handlers.rs` the handlers below them.
//!
//! A layer gets each request before its handler and may hold it back, answer it itself, or drop the
//! handler's future. It runs on the endpoint's thread, so it need not be `Send`.
//!
//! Invariant: a request that a layer drops before the handler has it is refused with `OVERLOADED`,
//! which proves to the client that no handler ran.

mod handlers;
mod inbound;

use std::error::Error as StdError;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use dunlin_local::{Local, ServiceRequest, serve_method_of_service};
use dunlin_service::{AsyncService, Error, META};
use dunlin_transport::auto::Auto;
use dunlin_wire::ReqType;
use pin_project_lite::pin_project;
use tower_service::Service;

use crate::limits::Gate;

pub use handlers::{Handlers, Handling};
pub use inbound::Inbound;

/// Registers the handlers of a service with an endpoint, with layers around them.
pub(crate) trait Layer: Send + Sync {
    fn serve(
        &self,
        local: &mut Local<Auto>,
        handlers: Handlers,
        methods: Methods,
        gate: Option<&Arc<Gate>>,
    );
}

/// Numbers and names of a service's methods.
#[derive(Clone, Copy)]
pub(crate) struct Methods {
    numbers: &'static [u16],
    names: &'static [&'static str],
}

impl Methods {
    pub(crate) const fn of<S: AsyncService<ServiceRequest>>() -> Self {
        Self {
            numbers: S::METHODS,
            names: S::NAMES,
        }
    }
}

impl<W, L> Layer for W
where
    W: Fn(Handlers) -> L + Send + Sync,
    L: Service<Inbound, Response = ()> + Clone + 'static,
    L::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    fn serve(
        &self,
        local: &mut Local<Auto>,
        handlers: Handlers,
        methods: Methods,
        gate: Option<&Arc<Gate>>,
    ) {
        register(local, self(handlers), methods, gate);
    }
}

/// Serves a typed service on the program's own endpoint, with a layer around its handlers.
/// [`ServerBuilder::layer`](crate::ServerBuilder::layer) says what a layer does.
pub fn serve_layered<S, L>(local: &mut Local<Auto>, service: S, layer: impl FnOnce(Handlers) -> L)
where
    S: AsyncService<ServiceRequest>,
    L: Service<Inbound, Response = ()> + Clone + 'static,
    L::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    local.add_service::<S>();
    let layered = layer(Handlers::of(service));
    register(local, layered, Methods::of::<S>(), None);
}

/// Registers the handlers of all methods.
fn register<L>(local: &mut Local<Auto>, layered: L, methods: Methods, gate: Option<&Arc<Gate>>)
where
    L: Service<Inbound, Response = ()> + Clone + 'static,
{
    for (place, number) in methods.numbers.iter().enumerate() {
        let name = methods.names.get(place).copied().unwrap_or_default();
        for req_type in [*number, *number | META] {
            let (req_type, layered) = (ReqType(req_type), layered.clone());
            match gate.map(Arc::clone) {
                None => {
                    serve_method_of_service(local, req_type, name, move |request, _| {
                        through(&layered, request, name)
                    });
                }
                Some(gate) => {
                    serve_method_of_service(local, req_type, name, move |request, caller| {
                        let layered = layered.clone();
                        let answer = move |request| through(&layered, request, name);
                        Arc::clone(&gate).pass(request, caller, answer)
                    })
                }
            }
        }
    }
}

/// Sends a request through the layers. If they are ready, they get it at once; otherwise they are
/// asked again when the future is polled, with the waker of its task.
#[inline]
fn through<L>(layered: &L, request: ServiceRequest, name: &'static str) -> Through<L, L::Future>
where
    L: Service<Inbound, Response = ()> + Clone,
{
    let (mut layered, inbound) = (layered.clone(), Inbound::new(request, name));
    match layered.poll_ready(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(ready) => Through::passed(ready, layered, inbound),
        Poll::Pending => Through::Waiting {
            waiting: (layered, inbound),
        },
    }
}

pin_project! {
    /// A request on its way through the layers.
    #[project = Now]
    #[project_replace = Before]
    enum Through<L, F> {
        /// The layers are not ready.
        Waiting { waiting: (L, Inbound) },
        /// The layers have the request.
        Passed { #[pin] future: F },
        /// A layer has failed. That dropped the request, which answers the client.
        Over,
    }
}

impl<L: Service<Inbound>> Through<L, L::Future> {
    #[inline(always)]
    fn passed(ready: Result<(), L::Error>, mut layered: L, inbound: Inbound) -> Self {
        match ready {
            Ok(()) => Self::Passed {
                future: layered.call(inbound),
            },
            Err(_) => Self::Over,
        }
    }

    /// Asks the layers again, and gives them the request if they are ready.
    #[cold]
    #[inline(never)]
    fn pass(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Now::Waiting { waiting } = self.as_mut().project() else {
            return Poll::Ready(());
        };
        let ready = ready!(waiting.0.poll_ready(context));
        if let Before::Waiting { waiting } = self.as_mut().project_replace(Self::Over) {
            let (layered, inbound) = waiting;
            self.set(Self::passed(ready, layered, inbound));
        }
        Poll::Ready(())
    }
}

impl<L: Service<Inbound>> Future for Through<L, L::Future> {
    type Output = Result<(), Error>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        if let Self::Waiting { .. } = *self {
            ready!(self.as_mut().pass(context));
        }
        if let Now::Passed { future } = self.project() {
            let _ = ready!(future.poll(context));
        }
        Poll::Ready(Ok(()))
    }
}
