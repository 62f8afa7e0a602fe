//! Two endpoints, one clock that the test sets, and a wire that the test can inspect. The tests
//! show every rule of the slot protocol as a sequence of packets. Their folders are those of the
//! crate's sources, without `observe`, because tests in all folders check counters.
#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

mod client;
mod congestion;
mod endpoint;
mod handler;
mod packet;
mod server;
mod session;
mod transfer;
