//! The span of a request.

use dunlin_core::Peer;
use dunlin_wire::{ErrorCode, ReqType};
use tracing::field::{Empty, display};
use tracing::instrument::{Instrument, Instrumented};
use tracing::{Span, info_span};

use crate::frame::{self, META};

use super::{split, traces};

/// A future that enters a span at each poll.
pub type Traced<F> = Instrumented<F>;

/// The span of a request, or none.
#[derive(Clone, Debug)]
pub struct RequestSpan(Span);

impl Default for RequestSpan {
    fn default() -> Self {
        Self(Span::none())
    }
}

impl RequestSpan {
    /// Begins the span of a request with these bytes. `method` is the name of its method, or empty;
    /// `peer` finds the client.
    pub fn begin(
        method: &'static str,
        req_type: ReqType,
        data: &[u8],
        peer: impl FnOnce() -> Option<Peer>,
    ) -> Self {
        // The span that is entered here, if any, did not cause the request, so it is not its
        // parent.
        let span = info_span!(
            target: "dunlin::server",
            parent: None,
            "request",
            otel.name = method,
            otel.kind = "server",
            service = Empty,
            method = Empty,
            peer = Empty,
            code = Empty,
            otel.status_code = Empty,
        );
        if span.is_disabled() {
            return Self(span);
        }
        traces::set_parent(&span, || match req_type.0 & META {
            0 => None,
            _ => frame::read(data).ok()?.1.trace_parent(),
        });
        match split(method) {
            ("", "") => _ = span.record("method", req_type.0 & !META),
            (service, method) => _ = span.record("service", service).record("method", method),
        }
        if let Some(process) = peer().and_then(|peer| peer.process) {
            span.record("peer", display(process));
        }
        Self(span)
    }

    /// The span that is entered now.
    pub fn current() -> Self {
        Self(Span::current())
    }

    /// Runs code within the span.
    pub fn run<R>(&self, run: impl FnOnce() -> R) -> R {
        self.0.in_scope(run)
    }

    /// Has a future enter the span at each poll.
    pub fn around<F>(self, future: F) -> Traced<F> {
        future.instrument(self.0)
    }

    /// The request is answered with a response.
    pub fn on_response(&self) {
        self.0.record("code", "ok");
    }

    /// The handler answers the request with an error.
    pub fn on_reject(&self, code: ErrorCode) {
        self.on_refuse(dunlin_core::of_handler(code));
    }

    /// The request ends with an error.
    pub fn on_refuse(&self, code: ErrorCode) {
        self.0.record("code", display(code));
        self.0.record("otel.status_code", "ERROR");
    }

    /// The request is dropped without an answer. `is_cancelled` finds out whether its client has
    /// given it up.
    pub fn on_drop(&self, is_cancelled: impl FnOnce() -> bool) {
        if self.0.is_disabled() {
            return;
        }
        match is_cancelled() {
            true => _ = self.0.record("code", display(ErrorCode::CANCELLED)),
            false => self.on_refuse(ErrorCode::HANDLER_FAILED),
        }
    }
}
