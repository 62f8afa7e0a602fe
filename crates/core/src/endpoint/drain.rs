//! Drain (rule C14): from some moment on, requests that arrive are refused before a handler of the
//! program has them, and those that handlers have go on. Called by the owner of an endpoint that
//! ends.
//!
//! The table of handlers is exchanged, so a request's way through the endpoint asks for nothing.

use dunlin_wire::ErrorCode;

use crate::endpoint::rpc::Endpoint;
use crate::handler::context::Cx;
use crate::handler::refusal::Refuse;
use crate::handler::request::Request;
use crate::time::Clock;
use crate::transport::Transport;

impl<T: Transport, C: Clock, App> Endpoint<T, C, App> {
    /// Answers requests of every registered type with [`ErrorCode::SHUTTING_DOWN`] from now on,
    /// also those that have arrived in part or wait for a slow handler. It counts them in
    /// `turned_away`. Requests that handlers have are not affected: deferred and background ones
    /// are still to be answered.
    pub fn drain(&mut self) {
        self.engine.handlers.replace_all(turn_away);
    }

    /// Requests that handlers have and have not answered, also those whose clients have gone. Looks
    /// at all requests.
    pub fn requests_under_way(&self) -> usize {
        self.engine.core.requests.under_way()
    }
}

fn turn_away<App>(_: &mut App, request: Request<'_>, cx: &mut Cx<'_>) {
    cx.core.context.stats.on_turned_away();
    request.refuse(cx, ErrorCode::SHUTTING_DOWN);
}
