//! Channels: clients that live through failures, for ordinary async programs. Any thread of any
//! runtime can call over a [`Channel`]; a thread of its [`Hub`] has the endpoint. Programs use
//! these types through `dunlin`.
//!
//! | file | what it owns |
//! |---|---|
//! | `channel.rs`, `handle.rs`, `outgoing.rs`, `typed.rs` | the handle, and a call as a future |
//! | `tower.rs`, `through.rs` | channels as tower services, and typed clients over layers |
//! | `hub.rs` | the nexus and endpoint threads |
//! | `letter.rs`, `orders.rs`, `board.rs` | between callers and a thread: calls, orders, states |
//! | `inbox.rs` | what a thread finds |
//! | `resolve.rs` | the sources of a channel's addresses: fixed ones, names, resolvers |
//! | `thread.rs` | a turn of a thread |
//! | `driver.rs`, `driver/links.rs` | a channel's machine over the endpoint: calls, sessions |
//!
//! `dunlin_channel` decides to which server a call goes, and whether it is repeated.
//! `dunlin_mailbox` brings a call to its thread, and its end back.
//!
//! Invariant: a call ends once, or is dropped; the error of a call that was not transmitted never
//! says that it may have run.
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
mod resolve;
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
pub use resolve::Resolve;
#[cfg(feature = "tower")]
pub use through::{Through, ThroughCall, ThroughError};
pub use typed::TypedCall;
