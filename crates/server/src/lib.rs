//! Servers for ordinary programs. Each thread of a server has one endpoint, on which its services
//! run. A server shuts down cleanly when the process is asked to end (rule C14), and says whether
//! it serves (rule C15). Programs name these types through `dunlin`.
//!
//! | file | what it owns |
//! |---|---|
//! | `builder.rs` | the services and options, before the start |
//! | `running.rs` | the threads, and the end of all of them |
//! | `thread.rs` | the life of one thread: it serves, drains, ends |
//! | `own.rs` | the server's own endpoint, which answers questions, and its thread |
//! | `health.rs` | the answers about health |
//! | `health_endpoint.rs` | health of programs without a `Server` |
//! | `reflection.rs` | the answers about methods |
//! | `reflection/converter.rs` | the thread that makes them |
//! | `ask.rs` | asks another server's endpoint for questions |
//! | `health/question.rs` | asks another server about its health |
//! | `reflection/client.rs` | calls methods of another server by JSON |
//! | `phase.rs` | the phase in which all threads are |
//! | `signals.rs` | SIGINT and SIGTERM |
//! | `layer.rs`, `layer/` | tower services around the handlers |
//! | `limits.rs`, `limited.rs` | limits of a service: messages, calls at once, time |
//! | `error.rs` | why a server does not start |
//!
//! Invariant: a request that has reached a handler is answered, unless the drain exceeds its limit
//! or the server is dropped.
#![forbid(unsafe_code)]

mod ask;
mod builder;
mod error;
mod health;
mod health_endpoint;
#[cfg(feature = "tower")]
mod layer;
mod limited;
mod limits;
mod own;
mod phase;
#[cfg(feature = "reflect")]
mod reflection;
mod running;
mod signals;
mod thread;

pub use builder::{Server, ServerBuilder};
pub use error::ServeError;
pub use health::{HealthError, HealthState, ask_health};
pub use health_endpoint::HealthEndpoint;
#[cfg(feature = "tower")]
pub use layer::{Handlers, Handling, Inbound, serve_layered};
pub use limited::LimitedRpc;
pub use limits::Limits;
#[cfg(feature = "reflect")]
pub use reflection::{ReflectError, Reflector};
pub use running::{Drained, Running};
pub use thread::ServerThread;
