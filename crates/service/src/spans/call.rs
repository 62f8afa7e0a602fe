//! The span of a call over a channel. The task that makes the call begins and ends it; the thread
//! that carries the call out only counts attempts, in [`Hops`].

use std::fmt::Display;

use dunlin_core::Peer;
use dunlin_wire::{ErrorCode, ReqType};
use tracing::field::{Empty, display};
use tracing::{Span, info_span};

use crate::frame::META;
use crate::meta::{Meta, TRACE};

use super::{split, traces};

/// The span of a call. Its parent is the span in which the call was made, although it begins only
/// with the call's first poll.
#[derive(Debug)]
pub struct CallSpan {
    stage: Stage,
    method: &'static str,
    /// The program has added metadata with the key of traces.
    has_given: bool,
}

#[derive(Debug)]
enum Stage {
    New { parent: Span },
    Begun(Span),
}

/// The attempts of a call so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hops {
    attempts: u32,
    /// The server of the last attempt.
    peer: Option<Peer>,
}

impl Hops {
    /// Counts an attempt that is sent.
    pub fn on_attempt(&mut self, peer: impl FnOnce() -> Option<Peer>) {
        self.attempts += 1;
        self.peer = peer();
    }
}

impl CallSpan {
    /// The span of a call that is made now.
    pub fn new() -> Self {
        Self {
            stage: Stage::New {
                parent: Span::current(),
            },
            method: "",
            has_given: false,
        }
    }

    /// The span of a copy of this call.
    pub fn of_copy(&self) -> Self {
        Self {
            method: self.method,
            has_given: self.has_given,
            ..Self::new()
        }
    }

    /// Notes the method that the call calls.
    pub fn on_method(&mut self, method: &'static str) {
        self.method = method;
    }

    /// Notes that the program has added metadata with this key.
    pub fn on_meta(&mut self, key: &str) {
        self.has_given |= key == TRACE;
    }

    /// Begins the span, and puts its trace into the metadata of the call. `None`: the call ends
    /// before it is sent, or its request has no place for metadata. A trace that the program has
    /// given goes to the server as it is.
    pub fn begin(&mut self, req_type: Option<ReqType>, meta: Option<&mut Meta>) {
        let Stage::New { parent } = &self.stage else {
            return;
        };
        let span = info_span!(
            target: "dunlin::client",
            parent: parent,
            "call",
            otel.name = self.method,
            otel.kind = "client",
            service = Empty,
            method = Empty,
            peer = Empty,
            attempts = Empty,
            code = Empty,
            error = Empty,
            otel.status_code = Empty,
        );
        if !span.is_disabled() {
            match (split(self.method), req_type) {
                (("", ""), Some(req_type)) => _ = span.record("method", req_type.0 & !META),
                (("", ""), None) => {}
                ((service, method), _) => {
                    span.record("service", service).record("method", method);
                }
            }
        }
        if let Some(meta) = meta {
            let given = meta.view().trace_parent();
            let of_parent = traces::trace_of(parent).map(|trace| trace.trace());
            // The call is made for a request whose span is not entered here.
            if of_parent != given.map(|given| given.trace()) {
                traces::set_parent(&span, || given);
            }
            if let Some(own) = traces::trace_of(&span).filter(|_| !self.has_given) {
                meta.set_trace(own);
            }
        }
        self.stage = Stage::Begun(span);
    }

    /// The call has ended: with a response, or with an error, and with the code that the server
    /// sent, if it did.
    pub fn on_end(&self, hops: Hops, end: Result<(), (&dyn Display, Option<ErrorCode>)>) {
        let Some(span) = self.begun() else { return };
        note(span, hops);
        match end {
            Ok(()) => _ = span.record("code", "ok"),
            Err((error, code)) => {
                match code {
                    Some(code) => span.record("code", display(code)),
                    None => span.record("code", "no answer"),
                };
                span.record("error", display(error));
                span.record("otel.status_code", "ERROR");
            }
        }
    }

    /// The program drops the call before its end.
    pub fn on_drop(&self) {
        if let Some(span) = self.begun() {
            span.record("code", display(ErrorCode::CANCELLED));
        }
    }

    /// The span, if it has begun and is recorded.
    fn begun(&self) -> Option<&Span> {
        match &self.stage {
            Stage::Begun(span) if !span.is_disabled() => Some(span),
            _ => None,
        }
    }
}

fn note(span: &Span, hops: Hops) {
    span.record("attempts", hops.attempts);
    if let Some(process) = hops.peer.and_then(|peer| peer.process) {
        span.record("peer", display(process));
    }
}

impl Default for CallSpan {
    fn default() -> Self {
        Self::new()
    }
}
