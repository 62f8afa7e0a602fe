//! The endpoint as a whole. `endpoint/event_loop.rs` is one iteration, from top to bottom;
//! `endpoint/idle.rs` is for iterations without frames, and `endpoint/plain.rs` is the common path;
//! `endpoint/dispatch.rs` and `endpoint/arrived.rs` run handlers, `endpoint/transmit.rs` ends an
//! iteration, and `endpoint/drain.rs` refuses requests before the endpoint ends. A program works
//! with the `Endpoint` of `endpoint/rpc.rs`, the control plane with the handle of
//! `endpoint/lifecycle.rs`. `protocol.rs` has the state.

mod arrived;
mod dispatch;
mod drain;
pub(crate) mod event_loop;
mod idle;
pub(crate) mod lifecycle;
mod plain;
mod prefetch;
pub(crate) mod register;
pub(crate) mod rpc;
mod tapping;
mod transmit;
