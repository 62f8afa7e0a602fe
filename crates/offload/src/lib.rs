//! Handlers of typed services on the threads of another executor, such as a runtime's. The endpoint
//! keeps its own thread: there, each request is a small future, which passes the request on and
//! waits for the response.
//!
//! ```text
//!   endpoint's thread          mailbox                executor's threads
//!   Offload::answer  ── request ──▶ slot ──▶ Dispatcher ── spawn ──▶ handler's future
//!          ◀────────────────────── slot ◀── response ──────────────────┘
//! ```
//!
//! | file | what it owns |
//! |---|---|
//! | `spawn.rs` | the executor: the one function that it must have |
//! | `offload.rs` | the service on the endpoint's side |
//! | `call.rs` | one request on the endpoint's side, until its response is there |
//! | `letter.rs` | the content of a slot: the request on its way, and the response |
//! | `desk.rs` | the mailbox that both sides share, and its end |
//! | `dispatcher.rs` | the task that takes requests from the mailbox and spawns their handlers |
//! | `request.rs` | a request as its handler has it |
//! | `handler.rs` | the future of one handler: its cancellation and its panics |
//!
//! The mailbox is that of channels, with the endpoint as its caller and the executor as its owner.
//! So a burst of requests wakes the executor once and a burst of responses the endpoint once; the
//! number of requests is limited; and a request that its client gives up is dropped on both sides.
//!
//! Copies: the request goes over in the msgbuf that the endpoint made of it. The response is
//! encoded into the same msgbuf if it fits, otherwise into memory of the slot, and copied from
//! there into the response of the endpoint.
//!
//! Invariant: each request that the endpoint passes on ends, whatever becomes of the executor. A
//! request whose handler has begun and does not finish ends with `HANDLER_FAILED`; one whose
//! handler has not begun ends with `SHUTTING_DOWN`.
#![forbid(unsafe_code)]

mod call;
mod desk;
mod dispatcher;
mod handler;
mod letter;
mod offload;
mod request;
mod spawn;

pub use offload::Offload;
pub use request::OffloadedRequest;
pub use spawn::Spawn;
