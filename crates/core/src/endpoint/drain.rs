//! Drain (rule C14): once it has begun, the endpoint refuses requests before they reach a handler
//! of the program. Requests that handlers already have continue. Called by the owner of an endpoint
//! that is about to end.
//!
//! Draining replaces the handlers in their table, so no request needs a check.

use dunlin_wire::ErrorCode;

use crate::endpoint::rpc::Endpoint;
use crate::handler::context::Cx;
use crate::handler::refusal::Refuse;
use crate::handler::request::Request;
use crate::time::Clock;
use crate::transport::Transport;

impl<T: Transport, C: Clock, App> Endpoint<T, C, App> {
    /// From now on, answers requests of every registered type with [`ErrorCode::SHUTTING_DOWN`] and
    /// counts them in `turned_away`, including partly arrived requests and requests that wait for a
    /// slow handler. Requests that handlers already have are not affected: deferred and background
    /// requests must still be answered.
    pub fn drain(&mut self) {
        self.engine.handlers.replace_all(turn_away);
    }

    /// The number of requests that handlers have not answered yet, including requests whose clients
    /// have gone. Visits every request.
    pub fn requests_under_way(&self) -> usize {
        self.engine.core.requests.under_way()
    }
}

fn turn_away<App>(_: &mut App, request: Request<'_>, cx: &mut Cx<'_>) {
    cx.core.context.stats.on_turned_away();
    request.refuse(cx, ErrorCode::SHUTTING_DOWN);
}
