//! The Dunlin endpoint as a state machine without input or output: sessions, slots, credits,
//! loss, handlers (design §3, §5; eRPC §4, §5).
//!
//! Start reading at `endpoint/event_loop.rs`: one iteration, from top to bottom, is the packet
//! path. The transport, the clock, randomness, memory and worker threads are arguments, so the
//! simulator runs this code unchanged.
//!
//! | folder | what it owns |
//! |---|---|
//! | `endpoint/` | control flow of an iteration, what a program holds, what time does |
//! | `handler/` | the user's functions: their table, how they run, what they are given |
//! | `session/` | the session table; opening and closing; round trips |
//! | `client/` | requests that this side issues |
//! | `server/` | requests that the other side issues |
//! | `transfer/` | messages of more than one packet |
//! | `congestion/` | at what rate a session may send, and packets that wait for their time |
//! | `packet/` | from bytes to packets of open sessions, and packets on their way out |
//! | `observe/` | what is counted, measured, and shown to a trace |
//!
//! `config.rs` has every limit, `transport.rs` and `time.rs` what is asked of a transport and a
//! clock.
#![forbid(unsafe_code)]

mod client;
pub mod config;
mod congestion;
mod endpoint;
mod error;
mod handler;
mod law;
#[cfg(feature = "mutants")]
pub mod mutant;
mod observe;
mod packet;
mod rng;
mod server;
mod session;
mod slab;
#[cfg(test)]
mod tests;
pub mod time;
mod transfer;
pub mod transport;

pub use client::call::{CallId, CallOptions, Done, Tag};
pub use config::{Config, ConfigError, SessionOptions};
pub use congestion::{Bypasses, BytesPerSec, CongestionControl, Sample, Scheme, UnknownScheme};
pub use endpoint::event_loop::Progress;
pub use endpoint::lifecycle::Lifecycle;
pub use endpoint::rpc::Rpc;
pub use endpoint::timers::TimerToken;
pub use error::{CallError, CallErrorKind, CloseReason, OpenError, RpcError};
pub use handler::background::{BackgroundRequest, Job, Workers};
pub use handler::batch::{Batch, BatchItem};
pub use handler::context::Cx;
pub use handler::register::Register;
pub use handler::request::{DeferredRequest, Request, Ticket};
pub use handler::table::{BatchFn, CompletionFn, DispatchFn, GivenUpFn, SessionFn, TimerFn};
pub use law::{Check, Law};
pub use observe::counters::{Counters, Drops};
pub use observe::histogram::{Histogram, Histograms};
pub use observe::tap::{Seen, Tap};
pub use rng::Rng;
pub use session::lifecycle::{Closed, Remote, SessionEvent, SessionInfo, SessionOffer};
pub use session::table::Session;
pub use time::{Clock, Nanos};
