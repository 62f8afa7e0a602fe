//! Handlers of typed services on the threads of another executor, such as a runtime's. The endpoint
//! keeps its own thread. There, each request is a small future, which passes the request on and
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
//! | `spawn.rs` | the trait of an executor |
//! | `offload.rs` | the service on the endpoint's side |
//! | `call.rs` | one request on the endpoint's side, until it ends |
//! | `burst.rs` | when the endpoint wakes the dispatcher |
//! | `letter.rs` | the content of a slot: the request on its way, and the response |
//! | `desk.rs` | the mailbox that both sides share, and its end |
//! | `dispatcher.rs` | the task that takes requests from the mailbox and spawns their handlers |
//! | `request.rs` | a request as its handler has it |
//! | `handler.rs` | the future of one handler: its cancellation and its panics |
//!
//! The mailbox is of the kind that channels use (`dunlin_mailbox`), with the endpoint as its caller
//! and the executor as its owner. A burst of requests wakes the executor once (`burst.rs`), and a
//! burst of responses the endpoint once. The number of requests is limited. A request that its
//! client gives up is dropped on both sides.
//!
//! Copies: the endpoint passes on the msgbuf with its copy of the request. The response is encoded
//! into the same msgbuf if it fits, otherwise into memory of the slot. The endpoint copies it from
//! there into its own response.
//!
//! Invariant: each request that the endpoint passes on ends, unless the executor keeps a future
//! that it never runs. A request whose handler has begun and does not finish ends with
//! `HANDLER_FAILED`; one whose handler has not begun ends with `SHUTTING_DOWN`.
#![forbid(unsafe_code)]

mod burst;
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
