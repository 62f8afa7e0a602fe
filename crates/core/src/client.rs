//! The client side: requests that this endpoint issues, from the call to its completion.
//!
//! `client/call.rs` has one call's state, `calls.rs` what its packets do, `client/backlog.rs` the
//! calls that wait for a slot or a credit, `client/abort.rs` deadlines, cancellation and failure.

mod abort;
mod backlog;
pub(crate) mod call;
pub(crate) mod calls;
