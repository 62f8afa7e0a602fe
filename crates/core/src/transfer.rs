//! Messages of more than one packet, at both sides.
//!
//! A large request leaves in `client.rs` and is put together in `server.rs`; `arrived.rs` hands it
//! to its handler. A large response leaves in `server.rs`, packet by packet as `client.rs` asks for
//! it, and is put together in `client_response.rs`. `scoreboard.rs` has what has left and arrived.

pub(crate) mod arrived;
pub(crate) mod client;
mod client_response;
pub(crate) mod reassembly;
pub(crate) mod scoreboard;
pub(crate) mod server;
