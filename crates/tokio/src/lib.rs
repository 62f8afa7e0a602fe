//! Dunlin in tokio programs: the parts that need tokio. `dunlin` itself needs no runtime. Clients
//! need none of this crate: calls over a `dunlin::Channel` are `Send`, so tasks of any runtime can
//! make them.
//!
//! | a tokio program | uses |
//! |---|---|
//! | runs handlers on the runtime | [`OnTokio`] |
//! | drains a server on SIGINT and SIGTERM, or at another moment | [`drain_on_signal`], [`drain`] |
//! | has an endpoint among the tasks of a thread | [`drive`] |
//! | repeats or hedges calls in layers of tower | `Repeat`, with the feature `tower` |
//!
//! | file | what it owns |
//! |---|---|
//! | `handlers.rs` | the runtime as an executor of handlers |
//! | `shutdown.rs` | the end of a server |
//! | `driver.rs` | the task that runs an endpoint |
//! | `descriptor.rs` | the endpoint's descriptor in tokio's reactor |
//! | `policy.rs` | which calls layers may send twice |

// Only `descriptor.rs` has unsafe code.
#![deny(unsafe_code)]

#[cfg(doctest)]
mod book;
#[expect(unsafe_code, reason = "tokio asks for a promise about the descriptor")]
mod descriptor;
mod driver;
mod handlers;
#[cfg(feature = "tower")]
mod policy;
mod shutdown;

pub use driver::drive;
pub use handlers::{OnTokio, Tokio};
#[cfg(feature = "tower")]
pub use policy::Repeat;
pub use shutdown::{drain, drain_on_signal};
