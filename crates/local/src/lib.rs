//! The asynchronous face: an endpoint, and the futures that one thread runs on it. Without a
//! runtime, [`Local::block_on`] drives both; in a task of a runtime, [`Local::turn`] and the
//! endpoint's descriptor do.
//!
//! ```
//! use std::time::Duration;
//! use dunlin_local::{Local, Tasks};
//! use dunlin_nexus::Nexus;
//! use dunlin_transport::shm::Shm;
//! use dunlin_wire::ReqType;
//!
//! const DOUBLE: ReqType = ReqType(1);
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let nexus = Nexus::bind("127.0.0.1:0")?;
//! let mut local = Local::new(nexus.endpoint::<Shm, _>(Tasks::default())?);
//! local.serve(DOUBLE, |request, _| async move {
//!     let doubled: Vec<u8> = request.data().iter().map(|byte| 2 * byte).collect();
//!     request.reply(doubled)
//! });
//! // An endpoint may call itself.
//! let session = local.connect(nexus.address())?;
//! let reply = local.block_on(|cx| async move {
//!     let request = cx.copy(&[1, 2, 3])?;
//!     Ok::<_, dunlin_service::Error>(cx.call(session, DOUBLE, request)
//!         .deadline(Duration::from_secs(5)).await?)
//! })?;
//! assert_eq!(reply.data(), [2, 4, 6]);
//! # Ok(())
//! # }
//! ```
//!
//! One turn is an iteration of the endpoint. For each event, the endpoint calls a handler or
//! continuation, which polls the future that waits for the event and lends the endpoint to it
//! (`tasks.rs`). After the iteration, the tasks that other events woke are polled (`executor.rs`);
//! their calls leave with the next iteration.

// Only `lent.rs` is an exception.
#![deny(unsafe_code)]

mod bare;
mod call;
mod caller;
mod calls;
mod connect;
mod events;
mod executor;
mod failed;
#[expect(unsafe_code, reason = "a poll has no parameter for the endpoint")]
mod lent;
mod local;
mod look_up;
mod not_connected;
mod ready;
mod request;
mod served;
mod service_request;
mod sleep;
mod spawn;
mod state;
mod strays;
mod task;
mod tasks;
mod tickets;
mod timers;
mod wake;
mod wishes;

pub use bare::Bare;
pub use call::{Call, Reply};
pub use caller::Caller;
pub use events::Events;
pub use failed::Failed;
pub use local::Local;
pub use not_connected::NotConnected;
pub use request::OwnedRequest;
pub use service_request::{ServiceRequest, serve_method_of_service};
pub use sleep::Sleep;
pub use tasks::Tasks;
