//! The client side: requests that this endpoint issues, from the call to its completion.
//!
//! `client/calls.rs` is the part that owns them all, and `client/slot.rs` one of its slots;
//! `client/inquiries.rs` is what the other side is asked about those that get nowhere.

pub(crate) mod calls;
pub(crate) mod inquiries;
mod slot;
