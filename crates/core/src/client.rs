//! The client side: requests that this endpoint issues, from the call to its completion.
//!
//! `client/calls.rs` is the part that owns them all, and `client/slot.rs` one of its slots.

pub(crate) mod calls;
mod slot;
