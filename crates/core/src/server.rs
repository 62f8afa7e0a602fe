//! The server side: requests that peers issue, from their acceptance until the server knows that
//! the response has arrived. `requests.rs` has their state. `server/events.rs` brings events to
//! requests and to reassembly, and `inbound.rs` has the values that these parts exchange.

pub(crate) mod events;
pub(crate) mod inbound;
pub(crate) mod requests;
