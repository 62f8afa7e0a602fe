//! Registration of handlers on behalf of services: the trait [`Register`], which [`Endpoint`] and
//! every type built on an endpoint implement.

use std::any::Any;

use dunlin_wire::ReqType;

use crate::endpoint::rpc::Endpoint;
use crate::handler::table::{BatchFn, DispatchFn};
use crate::time::Clock;
use crate::transport::Transport;

/// Facts about a service that a layer above the endpoint stores and reads back. The endpoint only
/// keeps them.
pub type Facts = &'static (dyn Any + Send + Sync);

/// An endpoint with the user's state `App`, on which handlers can be registered.
pub trait Register<App> {
    /// Registers a handler, as [`Endpoint::on`] does.
    fn register(&mut self, req_type: ReqType, run: DispatchFn<App>);

    /// Registers a batch handler, as [`Endpoint::on_batch_up_to`] does.
    fn register_batch(&mut self, req_type: ReqType, max_response: usize, run: BatchFn<App>);

    /// Notes the name of the service to which the handlers belong. Most endpoints ignore it.
    fn add_service(&mut self, _name: &'static str) {}

    /// Keeps facts about the service to which the handlers belong. Most endpoints ignore them.
    fn add_facts(&mut self, _facts: Facts) {}
}

impl<T: Transport, C: Clock, App> Endpoint<T, C, App> {
    /// A request type for which a second handler has replaced the first. Services that were
    /// developed independently may use the same numbers.
    pub const fn registered_twice(&self) -> Option<ReqType> {
        self.engine.handlers.twice()
    }
}

impl<T: Transport, C: Clock, App> Register<App> for Endpoint<T, C, App> {
    fn register(&mut self, req_type: ReqType, run: DispatchFn<App>) {
        self.on(req_type, run);
    }

    fn register_batch(&mut self, req_type: ReqType, max_response: usize, run: BatchFn<App>) {
        self.on_batch_up_to(req_type, max_response, run);
    }
}
