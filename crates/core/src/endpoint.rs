//! The endpoint as a whole: `endpoint/event_loop.rs` is one iteration, from top to bottom;
//! `endpoint/rpc.rs` is what a program holds, `endpoint/lifecycle.rs` what the control plane holds;
//! `endpoint/core.rs` the parts of both, and `endpoint/client.rs` and `endpoint/server.rs` how
//! events reach them; `endpoint/scan.rs` and `endpoint/timers.rs` what time does.

pub(crate) mod agenda;
mod client;
pub(crate) mod context;
pub(crate) mod core;
pub(crate) mod event_loop;
mod laws;
pub(crate) mod lifecycle;
pub(crate) mod moment;
pub(crate) mod plain;
pub(crate) mod rpc;
pub(crate) mod scan;
mod server;
mod sessions;
pub(crate) mod timers;
