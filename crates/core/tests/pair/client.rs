//! Calls, from the client's side.

mod backlog;
mod calls;
mod inquiries;
mod loss;
mod messages;
mod proofs;
