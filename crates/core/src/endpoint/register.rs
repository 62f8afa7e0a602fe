//! Registration of handlers on behalf of services. [`Endpoint`] implements it, and so does each
//! type that is built on one.

use dunlin_wire::ReqType;

use crate::endpoint::rpc::Endpoint;
use crate::handler::table::DispatchFn;
use crate::time::Clock;
use crate::transport::Transport;

/// An endpoint with the user's state `App`, on which handlers can be registered.
pub trait Register<App> {
    /// Registers a handler, as [`Endpoint::on`] does.
    fn register(&mut self, req_type: ReqType, run: DispatchFn<App>);
}

impl<T: Transport, C: Clock, App> Register<App> for Endpoint<T, C, App> {
    fn register(&mut self, req_type: ReqType, run: DispatchFn<App>) {
        self.on(req_type, run);
    }
}
