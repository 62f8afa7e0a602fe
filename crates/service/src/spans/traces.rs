//! The numbers that an exporting library has for spans.

use std::fmt;
use std::sync::OnceLock;

use tracing::Span;

use crate::trace::TraceParent;

static TRACES: OnceLock<Box<dyn Traces>> = OnceLock::new();

/// A library that exports spans, such as OpenTelemetry. The package `examples/otel` has an
/// implementation.
pub trait Traces: Send + Sync + 'static {
    /// The trace of a span, and the span's number there. `None`: the library does not know the
    /// span.
    fn trace_of(&self, span: &Span) -> Option<TraceParent>;

    /// Makes a span the child of `parent`, a span of another process. The child is new: no code has
    /// entered it.
    fn set_parent(&self, span: &Span, parent: TraceParent);
}

/// The process has its [`Traces`] already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TracesSet;

/// Sets the library that numbers the spans of this process. Without it, spans begin and end, but
/// those of two processes do not find each other.
///
/// # Errors
/// If one is set already.
pub fn set_traces(traces: impl Traces) -> Result<(), TracesSet> {
    TRACES.set(Box::new(traces)).map_err(|_| TracesSet)
}

/// The trace of a span, if the span is recorded.
pub(super) fn trace_of(span: &Span) -> Option<TraceParent> {
    let traces = TRACES.get().filter(|_| !span.is_disabled())?;
    traces.trace_of(span)
}

/// Makes a new span the child of a span of another process. `parent` is called only if there is a
/// library that can do that.
pub(super) fn set_parent(span: &Span, parent: impl FnOnce() -> Option<TraceParent>) {
    let traces = TRACES.get().filter(|_| !span.is_disabled());
    if let Some((traces, parent)) = traces.and_then(|traces| Some((traces, parent()?))) {
        traces.set_parent(span, parent);
    }
}

/// The trace for a call that is made to serve a request with the trace `given`: the trace of the
/// span that is entered now, or `given` itself if that span belongs to another trace.
pub(crate) fn current_or(given: Option<TraceParent>) -> Option<TraceParent> {
    let own = trace_of(&Span::current());
    let fits = |own: &TraceParent| given.is_none_or(|given| own.trace() == given.trace());
    own.filter(fits).or(given)
}

impl fmt::Display for TracesSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the library that numbers the spans of this process is set already")
    }
}

impl std::error::Error for TracesSet {}
