//! One nexus per process: the control plane's sockets, worker threads, wake-ups and the real clock
//! (design §9, §10). `dunlin_control` has the state machines that it drives.
//!
//! [`Nexus`] listens and has the threads; a thread of the user runs an [`Rpc`].
//!
//! | file | its subject |
//! |---|---|
//! | `nexus.rs`, `limits.rs` | the nexus, and the descriptors that it may use |
//! | `rpc.rs`, `transports.rs` | an endpoint as users see it, over any transport |
//! | `reactor.rs` | the control thread |
//! | `listeners.rs` | the sockets at which other processes connect |
//! | `stream.rs`, `streams.rs` | one control connection, and all of them |
//! | `mailbox.rs`, `doorbell.rs` | messages between the control thread and the endpoints |
//! | `idle.rs` | how an endpoint's thread blocks |
//! | `workers.rs` | the threads of background handlers |
//! | `clock.rs` | the real clock |
//! | `publisher.rs` | an endpoint's counters in the memory file of its process (`dunlin_insight`) |
//! | `pulse.rs` | whether the endpoint's thread runs, as other threads see it |
//! | `resolve.rs` | how servers are found |
//! | `events.rs` | events for programs with a `tracing` subscriber |
//! | `ffi.rs` | system calls |

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
