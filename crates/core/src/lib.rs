//! The Dunlin endpoint as a state machine without input or output: sessions, slots, credits,
//! loss, handlers, the control plane's machines (design §3, §5, §6; eRPC §4, §5).
//!
//! Start reading at `event_loop.rs`: one iteration, from top to bottom, is the packet path. The
//! transport, the clock, randomness, memory and worker threads are arguments, so the simulator
//! runs this code unchanged.
//!
//! | file | what it owns |
//! |---|---|
//! | `event_loop.rs`, `dispatch.rs` | control flow of an iteration, running handlers |
//! | `rx.rs` | from bytes to packets of open sessions |
//! | `session.rs`, `lifecycle.rs` | the session table; opening and closing |
//! | `call.rs`, `client.rs`, `backlog.rs`, `abort.rs` | requests that this side issues |
//! | `work.rs`, `server.rs` | requests that the other side issues |
//! | `scan.rs`, `timers.rs` | what time does |
//! | `congestion.rs`, `congestion/` | the schemes: at what rate a session may send |
//! | `pacing.rs`, `wheel.rs` | packets that wait for their time |
//! | `tx_queue.rs` | packets on their way out |
//! | `request.rs`, `batch.rs`, `background.rs`, `context.rs` | what the user sees |
//! | `counters.rs`, `histogram.rs` | what is counted and measured |
//! | `tap.rs` | who is shown packets, for traces |
//! | `control/` | handshake, links and failure detector, without I/O |
#![forbid(unsafe_code)]

mod abort;
mod arrived;
mod background;
mod backlog;
mod batch;
mod call;
#[cfg(any(test, fuzzing, feature = "check"))]
pub mod check;
mod client;
pub mod config;
mod congestion;
mod context;
pub mod control;
mod counters;
mod dispatch;
mod error;
mod event_loop;
mod handlers;
mod histogram;
mod incoming;
mod large_response;
mod lifecycle;
#[cfg(feature = "mutants")]
pub mod mutant;
mod outgoing;
mod pacing;
mod proto;
mod request;
mod rng;
mod rpc;
mod rtt;
mod rx;
mod scan;
mod server;
mod session;
mod tap;
pub mod time;
mod timers;
mod transfer;
pub mod transport;
mod tx_queue;
mod wheel;
mod work;

pub use background::{BackgroundRequest, Job, Workers};
pub use batch::{Batch, BatchItem};
pub use call::{CallId, CallOptions, Done, Tag};
pub use config::{Config, ConfigError, SessionOptions};
pub use congestion::{Bypasses, BytesPerSec, CongestionControl, Sample, Scheme, UnknownScheme};
pub use context::Cx;
pub use counters::{Counters, Drops};
pub use error::{CallError, CallErrorKind, CloseReason, OpenError, RpcError};
pub use event_loop::Progress;
pub use handlers::{BatchFn, CompletionFn, DispatchFn, GivenUpFn, SessionFn, TimerFn};
pub use histogram::{Histogram, Histograms};
pub use lifecycle::{Closed, Remote, SessionEvent, SessionInfo, SessionOffer};
pub use request::{Held, Request, Ticket};
pub use rng::Rng;
pub use rpc::Rpc;
pub use session::Session;
pub use tap::{Seen, Tap};
pub use time::{Clock, Nanos};
pub use timers::TimerToken;
