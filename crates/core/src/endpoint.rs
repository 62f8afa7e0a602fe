//! The endpoint as a whole: `endpoint/event_loop.rs` is one iteration, from top to bottom;
//! `endpoint/rpc.rs` is what a program holds, `endpoint/lifecycle.rs` what the control plane holds;
//! `endpoint/proto.rs` the protocol's state; `endpoint/scan.rs` and `endpoint/timers.rs` what time
//! does.

pub(crate) mod agenda;
pub(crate) mod event_loop;
pub(crate) mod lifecycle;
pub(crate) mod moment;
pub(crate) mod plain;
pub(crate) mod proto;
pub(crate) mod rpc;
pub(crate) mod scan;
pub(crate) mod timers;
