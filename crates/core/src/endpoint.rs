//! The endpoint as a whole: `endpoint/event_loop.rs` is one iteration, from top to bottom;
//! `endpoint/rpc.rs` is what a program holds, `endpoint/lifecycle.rs` what the control plane holds;
//! `endpoint/plain.rs` is the common path, `endpoint/dispatch.rs` and `endpoint/arrived.rs` run
//! handlers. `protocol.rs` has the state behind them.

mod arrived;
mod dispatch;
pub(crate) mod event_loop;
pub(crate) mod lifecycle;
mod plain;
pub(crate) mod register;
pub(crate) mod rpc;
mod tapping;
