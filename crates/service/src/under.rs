//! The trace that a call passes on: a call that is made to serve a request belongs to the request's
//! trace.

use crate::context::Context;
use crate::meta::Meta;
use crate::spans;
use crate::trace::TraceParent;

impl Meta {
    /// Adds the trace of the request that `context` belongs to. Adds none if there is one already,
    /// or if these metadata have arrived and have no room for a trace. With the feature `tracing`,
    /// the trace continues with the request's own span, if that is entered.
    pub fn under(&mut self, context: &Context<'_>) {
        if let Some(trace) = trace_under(context) {
            self.add_trace(trace);
        }
    }
}

/// The trace for a call that is made to serve the request of `context`.
pub(crate) fn trace_under(context: &Context<'_>) -> Option<TraceParent> {
    spans::current_or(context.metadata().trace_parent())
}
