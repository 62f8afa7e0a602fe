//! Channels: clients that live through failures, for ordinary async programs. Any thread of any
//! runtime can call over a [`Channel`]; a thread of its [`Hub`] has the endpoint. Programs use
//! these types through `dunlin`.
//!
//! | file | what it owns |
//! |---|---|
//! | `channel.rs`, `handle.rs`, `outgoing.rs`, `typed.rs` | the handle, and a call as a future |
//! | `notice.rs` | typed notifications |
//! | `plan.rs` | the addresses and options of a channel, for its thread |
//! | `tower.rs`, `through.rs` | channels as tower services, and typed clients over layers |
//! | `hub.rs` | the nexus and endpoint threads |
//! | `letter.rs`, `body.rs` | between callers and a thread: a call, and the bytes of its request |
//! | `orders.rs`, `board.rs` | between callers and a thread: orders, states |
//! | `inbox.rs` | the events that a thread has not handled yet |
//! | `figures.rs` | the figures that tools show |
//! | `resolve.rs`, `names.rs` | the sources of addresses: fixed ones, names, resolvers |
//! | `thread.rs`, `waking.rs` | a turn of a thread, and when it wakes tasks |
//! | `driver.rs`, `driver/links.rs` | a channel's machine over the endpoint: calls, links |
//! | `trunks.rs` | the sessions of a thread, which its channels share |
//!
//! `dunlin_channel` decides to which server a call goes, whether it is repeated, and whose call is
//! the next one on a shared session.
//! `dunlin_mailbox` brings a call to its thread, and its end back.
//!
//! Invariant: a call ends once, or is dropped; the error of a call that was not transmitted never
//! says that it may have run.
#![forbid(unsafe_code)]

mod board;
mod body;
mod channel;
mod driver;
mod error;
mod figures;
mod handle;
mod hub;
mod inbox;
mod letter;
mod names;
mod notice;
mod orders;
mod outgoing;
mod plan;
mod resolve;
mod thread;
#[cfg(feature = "tower")]
mod through;
#[cfg(feature = "tower")]
mod tower;
mod trunks;
mod typed;
mod waking;

pub use board::{AddressState, ChannelState};
pub use channel::{Channel, ChannelBuilder, Watch};
pub use dunlin_channel::{Backoff, Counters, Pick, Retry, State, key_of};
pub use error::{AddressError, ChannelError, HubError, Reasons};
pub use hub::{Hub, HubBuilder};
pub use notice::Notice;
pub use outgoing::{Answer, Outgoing, Permit};
pub use plan::ChannelOptions;
#[cfg(feature = "tower")]
pub use through::{Through, ThroughCall, ThroughError};
pub use typed::TypedCall;
