//! One nexus per process: the control plane's sockets, worker threads, wake-ups and the real clock
//! (design §9, §10). `dunlin_control` has the state machines that it drives.
//!
//! [`Nexus`] listens and has the threads; a thread of the user runs an [`Rpc`]. `reactor.rs` is the
//! control thread, `listeners.rs` has the sockets at which other processes connect, `stream.rs` is
//! one control connection, `mailbox.rs` and `doorbell.rs` connect the control thread to the
//! endpoints, `idle.rs` blocks an endpoint's thread, `publisher.rs` publishes an endpoint's
//! counters in the memory file of its process (`dunlin_insight`), `pulse.rs` shows other threads
//! whether the endpoint's thread runs, and `resolve.rs` finds servers.

mod clock;
mod doorbell;
mod error;
mod events;
mod ffi;
mod idle;
mod limits;
mod listeners;
mod mailbox;
mod nexus;
mod publisher;
mod pulse;
mod reactor;
mod resolve;
mod rpc;
mod stream;
mod streams;
mod transports;
mod workers;

pub use clock::TscClock;
pub use dunlin_control::{ConnectFailure, FailedConnect};
pub use error::{ConnectError, EndpointError, NexusError};
pub use idle::Idle;
pub use nexus::{DEFAULT_PORT, InsightTcp, Nexus, NexusBuilder};
pub use publisher::OwnFn;
pub use pulse::Pulse;
pub use resolve::Resolve;
pub use rpc::{ConnectOptions, EndpointBuilder, FailedFn, PeerServing, Rpc, ServingFn};
pub use transports::{Open, Opened, Reach};
pub use workers::WorkerOptions;
