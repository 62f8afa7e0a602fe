//! Spans of `tracing`, for the feature of that name: one for each call of a channel and one for
//! each request of a server. Without the feature, the types here have no fields, and their
//! functions do nothing.
//!
//! | target, span | begins | ends |
//! |---|---|---|
//! | `dunlin::client`, `call` | at the call's first poll | with the call |
//! | `dunlin::server`, `request` | before layers and handler | when the handler's future is gone |
//!
//! A library that exports spans gives them numbers, by which spans of two processes find each
//! other. Only that library knows the numbers, so the program tells Dunlin how to get them: by
//! [`Traces`], which it sets once with [`set_traces`].
//!
//! Callers: `dunlin_hub` for calls, `dunlin_local`, `dunlin_offload` and `poll.rs` for requests.

#[cfg(not(feature = "tracing"))]
mod absent;
#[cfg(feature = "tracing")]
mod call;
#[cfg(feature = "tracing")]
mod request;
#[cfg(feature = "tracing")]
mod traces;

#[cfg(not(feature = "tracing"))]
pub use absent::{CallSpan, Hops, RequestSpan, Traced};
#[cfg(feature = "tracing")]
pub use call::{CallSpan, Hops};
#[cfg(feature = "tracing")]
pub use request::{RequestSpan, Traced};
#[cfg(feature = "tracing")]
pub use traces::{Traces, TracesSet, set_traces};

#[cfg(not(feature = "tracing"))]
pub(crate) use absent::current_or;
#[cfg(feature = "tracing")]
pub(crate) use traces::current_or;

/// The service and the method of a name such as `Kv.get`.
#[cfg(feature = "tracing")]
fn split(name: &'static str) -> (&'static str, &'static str) {
    name.rsplit_once('.').unwrap_or(("", name))
}
