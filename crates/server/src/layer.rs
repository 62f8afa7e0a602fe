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
            let (req_type, mut layered) = (ReqType(req_type), layered.clone());
            match gate.map(Arc::clone) {
                None => {
                    serve_method_of_service(local, req_type, name, move |request, _| {
                        through(&mut layered, request, name)
                    });
                }
                Some(gate) => {
                    serve_method_of_service(local, req_type, name, move |request, caller| {
                        let mut layered = layered.clone();
                        let answer = move |request| through(&mut layered, request, name);
                        Arc::clone(&gate).pass(request, caller, answer)
                    })
                }
            }
        }
    }
}

/// Sends a request through the layers. If they are ready, they get it at once, and then serve the
/// next request. Otherwise the request keeps them, because what they have begun to wait for belongs
/// to it, and a clone serves the next request.
#[inline]
fn through<L>(layered: &mut L, request: ServiceRequest, name: &'static str) -> Through<L, L::Future>
where
    L: Service<Inbound, Response = ()> + Clone,
{
    let inbound = Inbound::new(request, name);
    match layered.poll_ready(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(())) => Through::Passed {
            future: layered.call(inbound),
        },
        other => Through::held(other.is_pending(), layered, inbound),
    }
}

pin_project! {
    /// A request on its way through the layers.
    #[project = Now]
    enum Through<L, F> {
        /// The layers have the request.
        Passed { #[pin] future: F },
        /// The layers are not ready, or a layer has failed. That drops the request, which answers
        /// the client.
        Waiting { waiting: Waiting<L> },
    }
}

/// A request and the layers that were not ready for it, if there are any. They are asked again with
/// each poll, with the waker of the task.
struct Waiting<L>(Option<(L, Inbound)>);

impl<L> Drop for Waiting<L> {
    #[inline]
    fn drop(&mut self) {
        if self.0.is_some() {
            drop_rarely(self.0.take());
        }
    }
}

/// Drops a value that is rarely there. This is a function of its own, because otherwise the
/// compiler would not inline the drop of the value that contains it.
#[cold]
#[inline(never)]
fn drop_rarely<T>(rare: T) {
    drop(rare);
}

impl<L: Service<Inbound>> Through<L, L::Future> {
    /// Holds a request for which the layers are not ready, or drops it, because a layer has failed.
    /// Either way a clone takes the layers' place.
    #[cold]
    #[inline(never)]
    fn held(is_pending: bool, layered: &mut L, inbound: Inbound) -> Self
    where
        L: Clone,
    {
        let spare = layered.clone();
        let layered = std::mem::replace(layered, spare);
        Self::Waiting {
            waiting: Waiting(is_pending.then_some((layered, inbound))),
        }
    }

    /// Asks the layers again, and gives them the request if they are ready.
    #[cold]
    #[inline(never)]
    fn pass(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if let Now::Waiting { waiting } = self.as_mut().project()
            && let Some((layered, _)) = &mut waiting.0
        {
            let ready = ready!(layered.poll_ready(context));
            if let Some((mut layered, inbound)) = waiting.0.take()
                && ready.is_ok()
            {
                let future = layered.call(inbound);
                self.set(Self::Passed { future });
            }
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
