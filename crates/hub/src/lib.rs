//! Channels: clients that live through failures, for ordinary async programs. A [`Channel`] is
//! called from any thread and any runtime; a thread of its [`Hub`] has the endpoint.
//! Programs name these through `dunlin`.
//!
//! | file | what it owns |
//! |---|---|
//! | `channel.rs`, `handle.rs`, `outgoing.rs`, `typed.rs` | the handle, and a call as a future |
//! | `tower.rs`, `through.rs` | channels as tower services, and typed clients over layers |
//! | `hub.rs` | the nexus and endpoint threads |
//! | `letter.rs`, `orders.rs`, `board.rs` | between callers and a thread: calls, orders, states |
//! | `inbox.rs` | what a thread finds |
//! | `thread.rs` | a turn of a thread |
//! | `driver.rs`, `driver/links.rs` | a channel's machine over the endpoint: calls, sessions |
//!
//! Where a call goes, and if it is repeated, `dunlin_channel` decides; how it reaches its thread,
//! and how its end comes back, is `dunlin_mailbox`.
//!
//! Invariant: a call ends in one way, or is dropped; a call that was not transmitted is never said
//! to have perhaps run.
#![forbid(unsafe_code)]

mod board;
mod channel;
mod driver;
mod error;
mod handle;
mod hub;
mod inbox;
mod letter;
mod orders;
mod outgoing;
mod plan;
mod thread;
#[cfg(feature = "tower")]
mod through;
#[cfg(feature = "tower")]
mod tower;
mod typed;

pub use board::{AddressState, ChannelState};
pub use channel::{Channel, ChannelBuilder, Watch};
pub use dunlin_channel::{Backoff, Pick, Retry, State};
pub use error::{AddressError, ChannelError, HubError, Reasons};
pub use hub::{Hub, HubBuilder};
pub use outgoing::{Answer, Outgoing, Permit};
pub use plan::ChannelOptions;
#[cfg(feature = "tower")]
pub use through::{Through, ThroughCall, ThroughError};
pub use typed::TypedCall;
