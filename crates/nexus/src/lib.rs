//! One nexus per process: the control plane's sockets, worker threads, wake-ups and the real
//! clock (design §9, §10). The state machines it drives are in `dunlin_control`.
//!
//! [`Nexus`] listens and has the threads; [`Endpoint`] is what a thread of the user runs.
//! `reactor.rs` is the control thread, `stream.rs` one of its connections, `mailbox.rs` and
//! `doorbell.rs` the way between it and the endpoints, `idle.rs` how an endpoint blocks, `insight/`
//! what others can see of a running process.

mod clock;
mod doorbell;
mod endpoint;
mod error;
mod events;
mod ffi;
mod idle;
pub mod insight;
mod mailbox;
mod nexus;
mod reactor;
mod stream;
mod transports;
mod workers;

pub use clock::TscClock;
pub use endpoint::{ConnectOptions, Endpoint, EndpointBuilder};
pub use error::{ConnectError, EndpointError, NexusError};
pub use idle::Idle;
pub use nexus::{DEFAULT_PORT, Nexus, NexusBuilder};
pub use transports::{Open, Opened};
pub use workers::WorkerOptions;
