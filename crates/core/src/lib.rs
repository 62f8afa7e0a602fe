//! The Dunlin endpoint as a state machine without input or output: sessions, slots, credits,
//! loss, handlers (design §3, §5; eRPC §4, §5).
//!
//! Start reading at `endpoint/event_loop.rs`: one iteration, from top to bottom, is the packet
//! path. The transport, the clock, randomness, memory and worker threads are arguments, so the
//! simulator runs this code unchanged.
//!
//! | folder | what it owns |
//! |---|---|
//! | `endpoint/` | control flow of an iteration, the program's handle, how handlers run |
//! | `handler/` | the user's functions: their table and their arguments |
//! | `protocol/` | the parts below as one state, and which event reaches which part |
//! | `session/` | the session table; opening and closing; round trips |
//! | `client/` | requests that this side issues |
//! | `server/` | requests that the other side issues |
//! | `transfer/` | messages of more than one packet |
//! | `context/` | the moment, the work that is due, notices, names of peers |
//! | `congestion/` | the rate at which a session sends, and packets that wait for their time |
//! | `packet/` | making packets of open sessions from bytes, and packets on their way out |
//! | `observe/` | counters, histograms, and the tap for traces |
//!
//! Each folder needs only folders that come later in this order: endpoint, handler, protocol,
//! server, transfer, client, congestion, context, session, packet, observe. All may use the files
//! of the root:
//!
//! | file | what it has |
//! |---|---|
//! | `handle.rs`, `call.rs` | the handles of an endpoint's parts; the description of a call |
//! | `config.rs`, `scheme.rs` | every option and limit; the schemes of congestion control |
//! | `transport.rs`, `time.rs` | what a transport and a clock must do |
//! | `error.rs`, `law.rs` | why operations fail; the laws that an endpoint checks |
//! | `slab.rs`, `ordered.rs`, `rng.rs` | tables with free places; maps in order; random numbers |
//! | `mutant.rs` | planted bugs, only with the feature `mutants` |
#![forbid(unsafe_code)]

mod call;
mod client;
pub mod config;
mod congestion;
mod context;
mod endpoint;
mod error;
mod handle;
mod handler;
mod law;
#[cfg(feature = "mutants")]
pub mod mutant;
mod observe;
pub mod ordered;
mod packet;
mod protocol;
mod rng;
mod scheme;
mod server;
mod session;
mod slab;
#[cfg(test)]
mod tests;
pub mod time;
mod transfer;
pub mod transport;

pub use call::{CallOptions, Done, Tag};
pub use config::{Config, ConfigError, SessionOptions};
pub use congestion::{CongestionControl, Sample};
pub use context::peers::Peer;
pub use endpoint::event_loop::Progress;
pub use endpoint::lifecycle::Lifecycle;
pub use endpoint::register::{Facts, Register};
pub use endpoint::rpc::Endpoint;
pub use error::{CallError, CallErrorKind, CloseReason, HandleError, OpenError, RpcError};
pub use handle::{CallId, EndpointNum, Session, Ticket, TimerToken};
pub use handler::background::{BackgroundRequest, Job, Workers};
pub use handler::batch::{Batch, BatchItem};
pub use handler::context::Cx;
pub use handler::refusal::{Refuse, of_handler};
pub use handler::request::{DeferredRequest, Request};
pub use handler::table::{BatchFn, CompletionFn, DispatchFn, GivenUpFn, SessionFn, TimerFn};
pub use law::{Check, Law};
pub use observe::counters::{Counters, Drops};
pub use observe::histogram::{Histogram, Histograms};
pub use observe::tap::{PacketLen, Seen, Tap};
pub use rng::Rng;
pub use scheme::{Bypasses, BytesPerSec, Scheme, UnknownScheme};
pub use session::lifecycle::{
    Account, Challenged, Closed, Question, Remote, Report, SessionEvent, SessionInfo, SessionOffer,
};
pub use time::{Clock, Nanos};
