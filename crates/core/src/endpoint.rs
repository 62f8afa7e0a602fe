//! The endpoint as a whole: `endpoint/event_loop.rs` is one iteration, from top to bottom; a
//! program holds `endpoint/rpc.rs`, the control plane `endpoint/lifecycle.rs`; `endpoint/plain.rs`
//! is the common path, `endpoint/dispatch.rs` and `endpoint/arrived.rs` run handlers. `protocol.rs`
//! has the state that they work on.

mod arrived;
mod dispatch;
pub(crate) mod event_loop;
pub(crate) mod lifecycle;
mod plain;
pub(crate) mod register;
pub(crate) mod rpc;
mod tapping;
