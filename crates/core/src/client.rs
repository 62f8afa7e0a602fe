//! The client side: requests that this endpoint issues, from the call to its completion.
//!
//! `client/call.rs` has a call as its user sees it, `client/calls.rs` the part that owns them all.

pub(crate) mod call;
pub(crate) mod calls;
mod slot;
