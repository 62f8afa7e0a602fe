//! The client side: requests that this endpoint issues, from the call to its completion.
//!
//! `client/calls.rs` owns the calls, `client/slot.rs` is one slot, `client/kept.rs` lists the slots
//! that keep their entry in the table of calls, and `client/inquiries.rs` asks the peer about calls
//! that make no progress.

pub(crate) mod calls;
pub(crate) mod inquiries;
mod kept;
mod slot;
